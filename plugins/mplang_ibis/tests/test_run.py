"""Tables at parties: results against plain Python, and several parties."""

from __future__ import annotations

import collections
import datetime
from decimal import Decimal

import ibis
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
from ibis_programs import SALES, SHOPS, at, rows, sales
from mplang_tables import arrow, table, to_tensor

import mplang_core as mp
from mplang_core.errors import PartyError
from mplang_core.ext import Failure

# -- results


def test_filter_and_columns(sim, mode):
    found = rows(
        sim, lambda: at("P0", lambda t: t.filter(t.rate > 0)[["id", "rate"]], sales()), mode
    )
    assert found == [{k: r[k] for k in ("id", "rate")} for r in SALES if (r["rate"] or 0) > 0]


def test_all_columns_as_they_are(sim, mode):
    assert rows(sim, lambda: at("P0", lambda t: t, sales()), mode) == SALES


def test_group_by_with_nulls(sim, mode):
    def fn(t):
        out = t.group_by("shop").agg(n=t.count(), ids=t.id.count(), total=t.price.sum())
        return out.order_by("shop")

    groups = collections.defaultdict(list)
    for row in SALES:
        groups[row["shop"]].append(row)
    expected = [
        {
            "shop": shop,
            "n": len(groups[shop]),
            "ids": sum(r["id"] is not None for r in groups[shop]),
            "total": sum(r["price"] for r in groups[shop] if r["price"] is not None),
        }
        for shop in sorted(groups, key=lambda shop: (shop is None, shop))
    ]
    found = rows(sim, lambda: at("P0", fn, sales()), mode)
    assert found == expected


def test_joins(sim, mode):
    def program():
        shops = at("P0", table(SHOPS))
        inner = at("P0", lambda s, c: s.join(c, "shop").select("id", "city"), sales(), shops)
        outer = at("P0", lambda s, c: s.left_join(c, "shop").select("id", "city"), sales(), shops)
        return inner, outer

    inner, outer = mp.fetch(sim, mp.evaluate(sim, program, mode=mode))
    cities = dict(zip(SHOPS["shop"], SHOPS["city"], strict=True))
    key = str
    pairs = [(r["id"], cities[r["shop"]]) for r in SALES if r["shop"] in ("a", "b")]
    assert sorted(map(tuple, (r.values() for r in inner.to_pylist())), key=key) == sorted(
        pairs, key=key
    )
    rest = [(r["id"], None) for r in SALES if r["shop"] not in ("a", "b")]  # null is not a key
    assert sorted(map(tuple, (r.values() for r in outer.to_pylist())), key=key) == sorted(
        pairs + rest, key=key
    )


def test_dates_strings_and_decimals(sim, mode):
    def fn(t):
        return t.select(
            month=t.day.month(),
            after=t.day + ibis.interval(days=1),
            text=t.day.strftime("%d.%m.%Y"),
            loud=t.shop.upper() + "!",
            size=t.shop.length(),
            double=t.price.cast("decimal(12, 2)") * 2,
            weekday=t.day.day_of_week.index(),
        )

    def apply(value, fn):
        return None if value is None else fn(value)

    def midnight(day):
        return datetime.datetime(day.year, day.month, day.day) + datetime.timedelta(days=1)

    found = rows(sim, lambda: at("P0", fn, sales()), mode)
    for mine, row in zip(found, SALES, strict=True):
        assert mine["month"] == apply(row["day"], lambda d: d.month)
        after = mine["after"]
        if isinstance(after, datetime.datetime):
            assert after == apply(row["day"], midnight)
        else:
            assert after == apply(row["day"], lambda d: d + datetime.timedelta(days=1))
        assert mine["text"] == apply(row["day"], lambda d: d.strftime("%d.%m.%Y"))
        assert mine["loud"] == apply(row["shop"], lambda s: s.upper() + "!")
        assert mine["size"] == apply(row["shop"], len)
        assert mine["double"] == apply(row["price"], lambda p: p * 2)
        assert mine["weekday"] == apply(row["day"], lambda d: d.weekday())


def test_a_sum_of_int64_is_int64(sim, mode):
    """DuckDB's is a decimal128(38, 0)."""
    result = mp.evaluate(sim, lambda: at("P0", lambda t: t.agg(s=t.id.sum()), sales()), mode=mode)
    assert result.base_type == mp.TableType((("s", "int64"),))
    assert mp.fetch(sim, result).to_pylist() == [{"s": 6 + 2**53 + 1}]


def test_a_sum_that_does_not_fit_is_an_error_that_names_the_column(sim, mode):
    def program():
        x = at("P0", table({"secret": [2**62, 2**62]}))
        return at("P0", lambda t: t.agg(total=t.secret.sum()), x)

    with pytest.raises(PartyError, match=r"column 'total' is decimal128\(38, 0\).*int64") as error:
        mp.evaluate(sim, program, mode=mode)
    assert str(2**63) not in str(error.value)


def test_the_reason_of_duckdb_is_told_with_the_column_and_leaves_no_party(sim, mode):
    def program():
        x = at("P0", table({"s": ["12", "SECRET"]}))
        return at("P0", lambda t: t.select(n=t.s.cast("int64"), s=t.s), x)

    reason = r"failed in ibis\.run.*column 'n'.*Conversion Error: Could not convert string 'SECRET'"
    with pytest.raises(PartyError, match=reason) as error:
        mp.evaluate(sim, program, mode=mode)
    told = Failure.public(error.value)  # what host and peers of a worker learn
    assert "SECRET" not in told.text
    assert "Conversion" not in told.text


@pytest.mark.parametrize(
    ("fn", "reason"),
    [
        (lambda t: t.mutate(f=t.a // t.b), r"column 'f': .*out of range"),
        (lambda t: t.mutate(f=t.a * 2**62), r"column 'f': .*Overflow in multiplication of INT64"),
        (lambda t: t.mutate(f=t.b.ln()), r"column 'f': .*cannot take logarithm of zero"),
        (lambda t: t.filter(t.b.ln() > 0), r"DuckDB fails: .*cannot take logarithm of zero"),
        (lambda t: t.agg(f=t.s.cast("date").max()), r"column 'f': .*date"),
    ],
)
def test_each_failure_on_data_has_its_reason(sim, fn, reason):
    with pytest.raises(PartyError, match=reason):
        mp.evaluate(sim, lambda: at("P0", fn, at("P0", table({"a": [7], "b": [0], "s": ["x"]}))))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True, None, False]),
        *(pa.array([0, None, 1], getattr(pa, f"{s}int{n}")()) for s in ("", "u") for n in (8, 64)),
        pa.array([1.5, None, float("inf")], pa.float32()),
        pa.array([-0.0, None, 1e300]),
        pa.array(["", None, "x\0y\n"]),
        pa.array([b"", None, b"\0\xff"], pa.binary()),
        pa.array([0, None, -1], pa.date32()),
        pa.array([0, None, 86_399_999_999], pa.time64("us")),
        *(pa.array([0, None, -1], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
        pa.array([0, None, -1], pa.timestamp("us", "UTC")),
        pa.array([Decimal("1.5"), None, Decimal("-9.9")], pa.decimal128(2, 1)),
        pa.array([Decimal(10) ** 37, None, Decimal(0)], pa.decimal128(38, 0)),
        pa.array([], pa.string()),
        pa.array([], pa.int64()),
    ],
    ids=lambda column: str(column.type),
)
def test_each_type_comes_back_from_sql(sim, column):
    def program():
        return at("P0", lambda t: t.select(t.x, y=t.x), at("P0", table(pa.table({"x": column}))))

    result = mp.evaluate(sim, program)
    found = mp.fetch(sim, result)
    assert arrow.type_of(found) == result.base_type
    if not pa.types.is_time(column.type):  # Ibis has one type of times, in nanoseconds
        assert found.column("y").type == column.type
    assert found.column("y").to_pylist() == column.to_pylist()


def test_the_same_rows_in_the_same_order_each_time(sim):
    data = {"k": [i * 7919 % 1000 for i in range(20_000)]}

    def program():
        return at("P0", lambda t: t.group_by("k").agg(n=t.count()), at("P0", table(data)))

    one, other = (mp.fetch(sim, mp.evaluate(sim, program)) for _ in range(2))
    assert one.equals(other)


def test_a_feop_is_compiled_for_a_table_on_a_device_by_its_type(sim):
    def program():
        x = sales()
        return at("P0", lambda t: t.agg(n=t.count()), x), at("P0", lambda x: x + 1, mp.put("P0", 1))

    counted, added = mp.fetch(sim, mp.evaluate(sim, program))
    assert counted.to_pylist() == [{"n": 5}]
    assert added == 2


def test_programs_come_back_from_text_and_bytes(sim):
    def program():
        return at("P0", lambda t: t.filter(t.rate > 0), sales())

    made = mp.trace(mp.TraceContext(sim.cluster_spec), program)
    again = mp.parse(made.compiler_ir())
    mp.verify(again)
    assert again.digest == made.program.digest
    again = mp.ir.from_bytes(mp.ir.to_bytes(made.program))
    (result,) = sim.evaluate(again, [])
    assert sim.fetch(result)[0].num_rows == 2


# -- several parties


def test_each_party_filters_its_own_table_and_jax_scales_it(sim, mode):
    ages, pays = [17, 18, 44, 70], [0.0, 1.0, 2.0, 3.0]

    def program():
        results = []
        for party, keep in (("P0", 18), ("P1", 44)):
            people = at(party, table({"age": ages, "pay": pays}))
            adults = at(party, lambda t, keep=keep: t.filter(t.age >= keep)[["pay"]], people)
            x = at(party, to_tensor, adults, rows=sum(age >= keep for age in ages))
            results.append(at(party, lambda x: jnp.log1p(x) * 10, x))
        return results

    first, second = mp.evaluate(sim, program, mode=mode)
    assert (first.pmask, second.pmask) == (mp.Mask(0b01), mp.Mask(0b10))
    assert str(first.base_type) == "f64[3, 1]"
    np.testing.assert_allclose(mp.fetch(sim, first), np.log1p([[1.0], [2.0], [3.0]]) * 10)
    np.testing.assert_allclose(mp.fetch(sim, second), np.log1p([[2.0], [3.0]]) * 10)


def test_a_table_is_put_at_another_party(sim, mode):
    def program():
        there = mp.put("P1", at("P0", lambda t: t.filter(t.id > 1), sales()))
        shops = at("P1", table(SHOPS))
        return at("P1", lambda s, c: s.join(c, "shop").select("id", "city"), there, shops)

    found = rows(sim, program, mode)
    assert sorted(found, key=lambda row: row["id"]) == [
        {"id": 2, "city": "Basel"},
        {"id": 3, "city": "Bern"},
    ]


def test_a_table_does_not_move_unless_told(sim):
    with pytest.raises(mp.errors.DisclosureError, match="mp.put"):
        mp.evaluate(sim, lambda: at("P1", lambda t: t, sales()))
