"""Tables at parties: results against plain Python, tensors, bytes, several parties."""

from __future__ import annotations

import collections
import contextlib
import datetime
import doctest
import importlib
import pathlib
import re
import subprocess
import sys
from decimal import Decimal

import duckdb
import ibis
import jax.numpy as jnp
import mplang_ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from mplang_ibis import arrow, from_tensor, ibis_compile, query, table, to_tensor

import mplang_core as mp
from mplang_core.errors import KernelError, PartyError, TraceError, WireError
from mplang_core.ir.compressed_text import pack
from mplang_core.runtime import decode, encode

DAY = datetime.date
SALES = [
    {"id": 1, "shop": "a", "price": Decimal("1.10"), "day": DAY(2024, 2, 29), "rate": 0.5},
    {"id": 2, "shop": "b", "price": Decimal("2.25"), "day": DAY(2024, 3, 1), "rate": None},
    {"id": 3, "shop": "a", "price": None, "day": DAY(2023, 12, 31), "rate": -1.0},
    {"id": 2**53 + 1, "shop": None, "price": Decimal("99999999.99"), "day": None, "rate": 4.0},
    {"id": None, "shop": "ü'; --", "price": Decimal("-0.01"), "day": DAY(1969, 1, 1), "rate": 0.0},
]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("shop", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("rate", pa.float64()),
    ]
)
SHOPS = {"shop": ["a", "b", "c", None], "city": ["Bern", "Basel", "Zug", "Chur"]}


@pytest.fixture
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(2), timeout=20.0) as made:
        yield made


@pytest.fixture(params=["standard", "launch"])
def mode(request):
    return request.param


def sales():
    return mp.device("P0")(table(pa.Table.from_pylist(SALES, SCHEMA)))()


def at(party, op, *args, **attrs):
    return mp.device(party)(op)(*args, **attrs)


def rows(sim, program, mode):
    result = mp.evaluate(sim, program, mode=mode)
    found = mp.fetch(sim, result)
    assert arrow.type_of(found) == result.base_type
    return found.to_pylist()


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
    rest = [(r["id"], None) for r in SALES if r["shop"] not in ("a", "b")]  # null is no key
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


def test_a_value_is_in_no_message(sim, mode):
    def program():
        x = at("P0", table({"s": ["12", "SECRET"]}))
        return at("P0", lambda t: t.select(n=t.s.cast("int64")), x)

    with pytest.raises(PartyError, match=r"party 0 failed in ibis\.run.*ConversionExc") as error:
        mp.evaluate(sim, program, mode=mode)
    assert "SECRET" not in str(error.value)


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


# -- tensors


NUMBERS = [pa.bool_(), pa.int8(), pa.uint64(), pa.int64(), pa.float32(), pa.float64()]


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_tables_become_tensors_and_come_back(sim, mode, kind, count):
    data = pa.table({c: pa.array([i % 2 for i in range(count)]).cast(kind) for c in "ab"})

    def program():
        x = at("P0", to_tensor, at("P0", table(data)), rows=count)
        return x, at("P0", from_tensor, x, columns=("a", "b"))

    tensor, again = mp.evaluate(sim, program, mode=mode)
    found = mp.fetch(sim, tensor)
    assert found.shape == (count, 2)
    assert found.dtype == kind.to_pandas_dtype()
    np.testing.assert_array_equal(found[:, 0], data.column("a").to_numpy())
    assert mp.fetch(sim, again).equals(data)


def test_jax_takes_a_tensor_of_a_table(sim, mode):
    def program():
        x = at("P0", table({"a": [1.0, 2.0], "b": [3.0, 5.0]}))
        return at("P0", lambda x: x.sum(axis=0) / 2, at("P0", to_tensor, x, rows=2))

    np.testing.assert_allclose(mp.fetch(sim, mp.evaluate(sim, program, mode=mode)), [1.5, 4.0])


def test_nulls_have_no_place_in_a_tensor(sim, mode):
    def program():
        x = at("P0", table({"fine": [8, 9], "holed": [123456789, None]}))
        return at("P0", to_tensor, x, rows=2)

    with pytest.raises(PartyError, match=r"column 'holed' has nulls.*fill or drop them") as error:
        mp.evaluate(sim, program, mode=mode)
    assert error.value.rank == 0
    assert "123456789" not in str(error.value)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_another_number_of_rows_is_refused(sim, mode, count):
    def program():
        return at("P0", to_tensor, at("P0", table({"a": [111, 222, 333]})), rows=count)

    message = rf"the table does not have the {count} rows declared"
    with pytest.raises(PartyError, match=message) as error:
        mp.evaluate(sim, program, mode=mode)
    assert not any(value in str(error.value) for value in ("111", "222", "333"))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda: at("P0", to_tensor, sales(), rows=5), r"no place for 'shop' \(string\), 'price'"),
        (
            lambda: at("P0", to_tensor, at("P0", table({"a": [1], "b": [1.5]})), rows=1),
            "cast the columns to one",
        ),
        (lambda: at("P0", to_tensor, at("P0", table({"a": [1]})), rows=-1), "no tensor has"),
        (lambda: at("P0", to_tensor, at("P0", table({"a": [1]}))), "rows"),
        (lambda: at("P0", from_tensor, mp.put("P0", [1, 2]), columns=("a",)), r"expected a tensor"),
        (lambda: at("P0", from_tensor, mp.put("P0", [[1, 2]]), columns=("a",)), r"\[rows, 1\]"),
        (lambda: at("P0", from_tensor, mp.put("P0", [[1, 2]]), columns=("a", "A")), "two columns"),
        (lambda: at("P0", from_tensor, mp.put("P0", [[1]]), columns=(1,)), "named by strings"),
        (lambda: at("P0", from_tensor, mp.put("P0", [[1j]]), columns=("a",)), "no place for c128"),
        (lambda: at("P0", table({"a": [1], "b": [1, 2]})), "no table"),
        (lambda: at("P0", table({"a": [[1]]})), "'a' is of the type 'list<"),
        (lambda: at("P0", table({"a": [None]})), "'a' is of the type 'null'"),
        (lambda: at("P0", table({})), "1 to 4096 columns"),
        (lambda: at("P0", table([1, 2])), "test_run.py"),
    ],
)
def test_what_does_not_fit_is_refused_while_tracing(sim, program, message):
    with pytest.raises(TraceError, match=message) as error:
        mp.evaluate(sim, program)
    assert "test_run.py:" in str(error.value)


# -- bytes


TYPES = st.sampled_from(
    [
        (pa.bool_(), st.booleans()),
        (pa.int8(), st.integers(-128, 127)),
        (pa.uint64(), st.integers(0, 2**64 - 1)),
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.float32(), st.floats(width=32, allow_nan=False)),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.string(), st.text(st.characters(codec="utf-8"))),
        (pa.binary(), st.binary()),
        (pa.date32(), st.dates()),
        (pa.timestamp("us"), st.datetimes()),
        (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
    ]
)


@st.composite
def tables(draw):
    size = draw(st.integers(0, 20))
    columns = {}
    for i in range(draw(st.integers(1, 4))):
        kind, values = draw(TYPES)
        cells = draw(st.lists(st.none() | values, min_size=size, max_size=size))
        columns[f"c{i}"] = pa.array(cells, kind)
    return pa.table(columns)


def written(value):
    header, buffers = encode(arrow.type_of(value), value)
    return header, [bytes(buffer) for buffer in buffers]


@given(tables())
@settings(deadline=None, max_examples=100)
def test_a_table_comes_back_from_bytes(value):
    kind = arrow.type_of(value)
    found = decode(kind, *written(value))
    assert found.equals(value)
    assert found.schema == arrow.schema(kind)


@given(tables(), st.data())
@settings(deadline=None, max_examples=300)
def test_damaged_bytes_are_a_wire_error_or_a_table_of_that_type(value, data):
    header, buffers = written(value)
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(buffers) - 1))
        raw = bytearray(buffers[i])
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        buffers[i] = bytes(raw[: data.draw(st.sampled_from([None, -1, len(raw) // 2]))])
        buffers[i] += data.draw(st.sampled_from([b"", b"", b"\0", b"\xff" * 8]))
    rows = header["rows"] + data.draw(st.sampled_from([0, 0, 1, -1, 2**31, 2**62]))
    kind = arrow.type_of(value)
    try:
        found = decode(kind, {"rows": rows}, buffers)
    except WireError:
        return
    assert found.schema == arrow.schema(kind)
    found.validate(full=True)
    with contextlib.suppress(duckdb.Error, KernelError):  # a date that is out of SQL's range
        assert query.run("SELECT * FROM x", {"x": found}, kind).num_rows == found.num_rows


def test_a_slice_is_written_without_the_rest():
    value = pa.table({"s": ["SECRET" * 100, "a", "SECRET" * 100], "n": [1, 2, 3]}).slice(1, 1)
    header, buffers = written(value)
    assert sum(map(len, buffers)) == 8 + 1 + 8
    assert decode(arrow.type_of(value), header, buffers).to_pylist() == [{"s": "a", "n": 2}]
    flags = pa.table({"b": [False, True, True, True, None, None]}).slice(0, 1)
    assert written(flags)[1][1] == b"\0"


def test_several_chunks_are_written_as_one():
    value = pa.concat_tables([pa.table({"a": ["x", None]}), pa.table({"a": ["y"]})])
    assert value.column("a").num_chunks == 2
    assert decode(arrow.type_of(value), *written(value)).to_pydict() == {"a": ["x", None, "y"]}


def test_a_table_is_read_without_a_copy_and_cannot_be_changed_by_who_sent_it():
    value = pa.table({"n": list(range(1000))})
    kind = arrow.type_of(value)
    _, (_, raw) = written(value)
    found = arrow.read(kind, 1000, [b"", raw])
    start = np.frombuffer(raw, np.uint8).ctypes.data
    assert found.column("n").chunk(0).buffers()[1].address == start
    writable = bytearray(b"?" + raw)
    found = arrow.read(kind, 1000, [b"", memoryview(writable)[1:]])
    unaligned = arrow.read(kind, 1000, [b"", memoryview(bytes(writable))[1:]])
    assert unaligned.column("n").chunk(0).buffers()[1].address % 16 == 0
    writable[:] = bytes(len(writable))
    assert found.equals(value)
    assert unaligned.equals(value)


KIND = mp.TableType((("a", "int64"),))
TEXT = mp.TableType((("a", "string"),))


def offsets(*values):
    return np.int32(values).tobytes()


@pytest.mark.parametrize(
    ("kind", "header", "buffers"),
    [
        (KIND, {}, [b"", bytes(8)]),
        (KIND, {"rows": 1, "x": 1}, [b"", bytes(8)]),
        (KIND, {"rows": -1}, [b"", bytes(8)]),
        (KIND, {"rows": True}, [b"", bytes(8)]),
        (KIND, {"rows": 1.0}, [b"", bytes(8)]),
        (KIND, {"rows": "1"}, [b"", bytes(8)]),
        (KIND, {"rows": 0}, [b"", bytes(8)]),
        (KIND, {"rows": 2}, [b"", bytes(8)]),
        (KIND, {"rows": 2**61}, [b"", b""]),
        (KIND, {"rows": 1}, []),
        (KIND, {"rows": 1}, [bytes(8)]),
        (KIND, {"rows": 1}, [b"", b"", bytes(8)]),
        (KIND, {"rows": 1}, [b"", bytes(7)]),
        (KIND, {"rows": 1}, [b"", bytes(9)]),
        (KIND, {"rows": 1}, [bytes(2), bytes(8)]),
        (KIND, {"rows": 1}, [b"", 8]),
        (KIND, {"rows": 1}, [None, bytes(8)]),
        (TEXT, {"rows": 1}, [b"", offsets(0), b""]),
        (TEXT, {"rows": 1}, [b"", offsets(0, 2), b"a"]),
        (TEXT, {"rows": 1}, [b"", offsets(-1, 1), b"a"]),
        (TEXT, {"rows": 2}, [b"", offsets(0, 2, 1), b"ab"]),
        (TEXT, {"rows": 1}, [b"", offsets(0, 1), b"\xff"]),
        (mp.TableType((("a", "decimal128(2, 0)"),)), {"rows": 1}, [b"", b"\xff" * 15 + b"\x7f"]),
        (mp.TableType((("a", "time64[us]"),)), {"rows": 1}, [b"", b"\xff" * 8]),
    ],
)
def test_what_is_no_such_table_is_refused(kind, header, buffers):
    with pytest.raises(WireError, match="what came is no table"):
        decode(kind, header, buffers)


@pytest.mark.parametrize("value", [None, {"a": [1]}, pa.table({"a": [[1]]}), np.ones(3)])
def test_what_is_no_table_is_not_written(value):
    with pytest.raises(WireError, match="cannot write a table"):
        encode(KIND, value)


def test_a_literal_of_another_type_than_it_says_is_refused(sim):
    from mplang_ibis import literal

    wrong = {"rows": 1, "data": (b"", b"12345"), "type": KIND}
    with pytest.raises(PartyError, match=r"ibis\.literal: the data is no table"):
        mp.evaluate(sim, lambda: at("P0", literal, **wrong))


def test_an_op_does_not_believe_that_an_operand_is_what_the_program_says(sim):
    """A worker may get any value; here the table has another type than the SQL declares."""
    from mplang_ibis import kernels

    class Ctx:
        class op:
            inputs = (type("Value", (), {"type": KIND}),)

    attrs = {"code": pack("SELECT 1 AS a"), "names": ("x",), "gives": KIND, "ibis": ""}
    for value in (pa.table({"a": ["x"]}), np.ones(3), None):
        with pytest.raises(KernelError, match="is not the table"):
            kernels.run(Ctx, value, **attrs)
        with pytest.raises(KernelError, match="is not the table"):
            kernels.to_tensor(Ctx, value, rows=1)


# -- the package


def test_nothing_heavy_is_loaded_before_an_op_runs(sim):
    text = mp.trace(mp.TraceContext(sim.cluster_spec), sales).compiler_ir()
    code = ibis_compile(lambda t: t, mp.FeSignature((KIND,))).pfunc.attrs["code"]
    assert len(code) > 10
    source = (
        "import sys, mplang_core as mp, mplang_ibis.plugin\n"
        "assert [op.name for op in mp.registry.list_ops('ibis')]\n"
        f"mp.verify(mp.parse({text!r}))\n"
        "print([m for m in ('ibis', 'duckdb', 'pyarrow', 'sqlglot', 'pandas', 'jax') "
        "if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_core_loads_none_of_it():
    source = (
        "import sys, mplang_core\n"
        "print([m for m in ('mplang_ibis', 'ibis', 'duckdb', 'pyarrow', 'sqlglot', 'pandas') "
        "if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_each_op_describes_itself_with_an_example():
    ops = {meta.name for meta in mp.registry.list_ops("ibis")}
    assert ops == {"ibis.compile", "ibis.literal", "ibis.to_tensor", "ibis.from_tensor"}
    for name in mplang_ibis.__all__:
        doc = getattr(mplang_ibis, name).__doc__
        assert all(part in doc for part in ("Returns:", "Raises:", "Example:")), name


@pytest.mark.parametrize("name", ["arrow", "frontend", "ops", "query"])
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"mplang_ibis.{name}")
    with np.printoptions(legacy=False):
        found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed


def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (pathlib.Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    namespace = {"__name__": "__main__"}
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
