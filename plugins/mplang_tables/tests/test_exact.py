"""Money, dates, times, bools and numbers become integers and come back, without a lost digit."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mplang_tables import (
    arrow,
    cast,
    fill_nulls,
    from_integers,
    from_padded,
    from_tensor,
    table,
    to_integers,
    to_masked,
    to_padded,
    to_tensor,
)
from table_programs import at

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

UTC = datetime.UTC


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(2), timeout=20.0) as made:
        yield made


def run(sim, program):
    return mp.fetch(sim, mp.evaluate(sim, program))


def alone(cells, kind):
    return pa.table({"n": pa.array([1] * len(cells), pa.int64()), "c": pa.array(cells, kind)})


def counted(cells, kind, unit):
    """Return a program of a column as integers, and back."""

    def program():
        x = at("P0", to_integers, at("P0", table(alone(cells, kind))), column="c", unit=unit)
        return x, at("P0", from_integers, x, column="c", unit=unit, type=str(kind))

    return program


DAY = datetime.date(1970, 1, 3)
NOON = datetime.datetime(1970, 1, 1, 12)


@pytest.mark.parametrize(
    ("cells", "kind", "unit", "integers"),
    [
        (["12.50", None, "-0.05"], pa.decimal128(12, 2), "cents", [1250, None, -5]),
        (["12.5", "0.1"], pa.decimal128(12, 1), "cents", [1250, 10]),
        (["12.50", "3.00"], pa.decimal128(38, 2), "0.1", [125, 30]),
        (["12.5000"], pa.decimal128(12, 4), "cents", [1250]),
        (["92233720368547758.07", "-92233720368547758.08"], pa.decimal128(38, 2), "cents",
         [2**63 - 1, -(2**63)]),
        (["0." + "0" * 17 + "1"], pa.decimal128(38, 38), "0." + "0" * 17 + "1", [1]),
        ([], pa.decimal128(12, 2), "cents", []),
        ([True, None, False], pa.bool_(), "1", [1, None, 0]),
        ([3, -4], pa.int8(), "cents", [300, -400]),
        ([2**63 - 1], pa.uint64(), "1", [2**63 - 1]),
        ([DAY, None], pa.date32(), "days", [2, None]),
        ([DAY], pa.date32(), "s", [2 * 86_400]),
        ([NOON, None], pa.timestamp("us"), "s", [43_200, None]),
        ([NOON - datetime.timedelta(1)], pa.timestamp("ns"), "s", [-43_200]),
        ([datetime.datetime(2024, 2, 29)], pa.timestamp("ms"), "days", [19_782]),
        ([NOON.replace(tzinfo=UTC)], pa.timestamp("us", "UTC"), "ms", [43_200_000]),
        ([datetime.time(23, 59, 59)], pa.time64("us"), "s", [86_399]),
        ([datetime.time(0, 0, 1)], pa.time64("ns"), "ns", [10**9]),
        ([], pa.timestamp("s"), "days", []),
        ([None], pa.timestamp("s"), "days", [None]),
    ],
)  # fmt: skip
def test_a_column_is_counted_in_a_unit_and_comes_back(sim, cells, kind, unit, integers):
    if pa.types.is_decimal(kind):
        cells = [None if each is None else Decimal(each) for each in cells]
    counts, again = run(sim, counted(cells, kind, unit))
    assert counts.schema.field("c").type == pa.int64()
    assert counts.column("c").to_pylist() == integers
    assert again.equals(alone(cells, kind))


def test_money_and_dates_are_what_python_and_numpy_count(sim):
    random = np.random.default_rng(4)
    money = [Decimal(int(each)).scaleb(-2) for each in random.integers(-(10**9), 10**9, 300)]
    days = random.integers(-30_000, 60_000, 300).astype("datetime64[D]")
    times = days.astype("datetime64[us]") + random.integers(0, 86_400 * 10**6, 300)
    data = pa.table({"pay": pa.array(money, pa.decimal128(12, 2)), "day": days, "at": times})

    def program():
        x = at("P0", table(data))
        for column, unit in (("pay", "cents"), ("day", "days"), ("at", "us")):
            x = at("P0", to_integers, x, column=column, unit=unit)
        return at("P0", to_tensor, x, rows=300)

    found = run(sim, program)
    assert found[:, 0].tolist() == [int(each * 100) for each in money]
    np.testing.assert_array_equal(found[:, 1], days.astype(np.int64))
    np.testing.assert_array_equal(found[:, 2], times.astype(np.int64))


@pytest.mark.parametrize(
    ("cell", "kind", "unit"),
    [
        (Decimal("77777.123"), pa.decimal128(12, 3), "cents"),
        (Decimal("92233720368547758.08"), pa.decimal128(38, 2), "cents"),
        (77777, pa.int64(), "0." + "0" * 17 + "1"),
        (2**63 + 77777, pa.uint64(), "1"),
        (NOON.replace(microsecond=777), pa.timestamp("us"), "ms"),
        (datetime.datetime(2024, 1, 1, 7), pa.timestamp("s"), "days"),
    ],
)
def test_what_is_no_whole_number_of_a_unit_is_refused_without_telling_it(sim, cell, kind, unit):
    with pytest.raises(
        PartyError, match="column 'c' has values that are not a whole number"
    ) as error:
        mp.evaluate(sim, counted([cell], kind, unit))
    assert re.search(r"table_programs\.py:\d+.*table\.to_integers", str(error.value))
    assert "777" not in str(error.value)
    assert error.value.rank == 0


@pytest.mark.parametrize(
    ("number", "kind", "unit"),
    [
        (1234567, "decimal128(6, 2)", "cents"),
        (1234567, "decimal128(9, 1)", "cents"),
        (1234567, "bool", "1"),
        (1234567, "int8", "1"),
        (-1234567, "uint64", "1"),
        (1234567, "date32[day]", "s"),
        (86_400, "time64[us]", "s"),
        (-1234567, "time64[ns]", "s"),
        (2**40, "date32[day]", "days"),
        (2**62, "timestamp[us]", "s"),
    ],
)
def test_numbers_that_are_none_of_a_type_are_refused_without_telling_them(sim, number, kind, unit):
    def program():
        x = at("P0", table({"c": [number]}))
        return at("P0", from_integers, x, column="c", unit=unit, type=kind)

    message = re.escape(
        f"column 'c' has numbers that, in the unit '{unit}', are outside of the type"
    )
    with pytest.raises(PartyError, match=message) as error:
        mp.evaluate(sim, program)
    assert str(abs(number)) not in str(error.value)


@pytest.mark.parametrize(
    ("op", "kind", "attrs", "message"),
    [
        (to_integers, pa.string(), {"unit": "1"}, "'c' is of the type string; decimals, integers"),
        (to_integers, pa.float64(), {"unit": "1"}, "'c' is of the type double; decimals, integers"),
        (to_integers, pa.date32(), {"unit": "cents"}, "whose unit is days, s, ms, us or ns: 'cen"),
        (to_integers, pa.date32(), {}, "whose unit is days, s, ms, us or ns: '1'"),
        (to_integers, pa.int64(), {"unit": "days"}, "whose unit is 1, cents, or a part such as"),
        (to_integers, pa.int64(), {"unit": "0.5"}, "got '0.5'"),
        (to_integers, pa.int64(), {"unit": "dollars"}, "got 'dollars'"),
        (to_integers, pa.int64(), {"column": "d"}, "no column 'd'; there are n, c"),
        (from_integers, pa.float64(), {"type": "bool"}, "double; units are counted by integers"),
        (from_integers, pa.int64(), {"type": "string"}, "is of the type string; decimals"),
        (from_integers, pa.int64(), {"type": "date32[day]"}, "whose unit is days"),
        (from_integers, pa.int64(), {"type": "decimal(12, 2)"}, "'c' is of the type 'decimal(12,"),
    ],
)
def test_units_that_do_not_fit_are_refused_while_tracing(sim, op, kind, attrs, message):
    attrs = {"column": "c", **attrs}
    with pytest.raises(TraceError, match=re.escape(message)):
        mp.evaluate(sim, lambda: at("P0", op, at("P0", table(alone([], kind))), **attrs))


# -- nulls


FRAME = pd.DataFrame({"a": [1.5, None, 3.0, None], "b": [None, 2.0, 5.5, None]})


@pytest.mark.parametrize("rows", [4, 7])
def test_null_cells_count_for_nothing(sim, mode, rows):
    def program():
        cells = at("P0", to_masked, at("P0", table(FRAME)), rows=rows)
        return cells, at("P0", lambda c: (c.count(), c.sum(), c.mean(), c.filled(-1)), cells)

    cells, found = mp.fetch(sim, mp.evaluate(sim, program, mode=mode))
    assert cells.values.shape == cells.valid.shape == (rows, 2)
    count, total, mean, filled = found
    np.testing.assert_array_equal(count, FRAME.count())
    np.testing.assert_array_equal(total, FRAME.sum())
    np.testing.assert_array_equal(mean, FRAME.mean())
    np.testing.assert_array_equal(filled[:4], FRAME.fillna(-1))
    assert (filled[4:] == -1).all()


def test_two_parties_take_a_mean_of_columns_with_nulls_on_shares(sim):
    def program():
        x, y = (mp.seal(at(p, to_masked, at(p, table(FRAME)), rows=6)) for p in ("P0", "P1"))
        mean = mp.device("SP0")(lambda x, y: (x.sum() + y.sum()) / (x.count() + y.count()))(x, y)
        return mp.reveal(mean, to="P1")

    np.testing.assert_allclose(run(sim, program), FRAME.mean(), atol=1e-6)


@pytest.mark.parametrize(
    ("cells", "kind", "value", "filled"),
    [
        ([1, None], pa.int8(), 0, [1, 0]),
        ([0.5, None], pa.float32(), -1, [0.5, -1.0]),
        ([0.5, None], pa.float64(), 0.1, [0.5, 0.1]),
        ([True, None], pa.bool_(), False, [True, False]),
        (["a", None], pa.string(), "none", ["a", "none"]),
        ([None, None], pa.int64(), 2**63 - 1, [2**63 - 1] * 2),
        ([], pa.int64(), 0, []),
    ],
)
def test_nulls_are_filled(sim, cells, kind, value, filled):
    def program():
        return at("P0", fill_nulls, at("P0", table(alone(cells, kind))), columns="c", value=value)

    with pytest.raises(TraceError, match="columns"):
        run(sim, program)
    data = alone(cells, kind)
    found = run(
        sim, lambda: at("P0", fill_nulls, at("P0", table(data)), columns=("c",), value=value)
    )
    assert found.column("c").to_pylist() == filled
    assert found.schema == data.schema


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int8(), 128),
        (pa.int64(), 0.0),
        (pa.int64(), True),
        (pa.bool_(), 0),
        (pa.string(), 0),
        (pa.int64(), "0"),
        (pa.float32(), 1e39),
        (pa.float64(), float("nan")),
        (pa.date32(), 0),
        (pa.decimal128(5, 2), 0),
    ],
)
def test_a_value_that_is_none_of_a_column_does_not_fill_it(sim, kind, value):
    with pytest.raises(TraceError, match=r"column 'c' is of the type .*, got"):
        mp.evaluate(
            sim,
            lambda: at(
                "P0", fill_nulls, at("P0", table(alone([], kind))), columns=("c",), value=value
            ),
        )


# -- back from tensors


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int64(), pa.uint64(), pa.float64()], ids=str)
def test_padded_rows_become_the_table_that_they_were(sim, mode, kind):
    data = pa.table({c: pa.array([1, 0, 1]).cast(kind) for c in "ab"})

    def program():
        padded = at("P0", to_padded, at("P0", table(data)), rows=5)
        return at("P1", from_padded, mp.put("P1", padded), columns=("a", "b"))

    assert mp.fetch(sim, mp.evaluate(sim, program, mode=mode)).equals(data)


def test_null_cells_become_nulls_again(sim):
    nan = pa.table({"a": pa.array([float("nan"), None], from_pandas=False), "b": [1.0, 2.0]})
    for data in (pa.Table.from_pandas(FRAME[:3]), nan):

        def program(data=data):
            cells = at("P0", to_masked, at("P0", table(data)), rows=5)
            return at("P0", from_padded, cells, columns=("a", "b"))

        found, wanted = run(sim, program), arrow.plain(data)
        assert str(found.to_pydict()) == str(wanted.to_pydict())  # NaN, and no null


@pytest.mark.parametrize(
    ("valid", "message"),
    [
        (np.ones(3, bool), "expected bools for the rows or the cells"),
        (np.ones((2, 3), bool), "expected bools for the rows or the cells"),
        (np.ones(2), "expected bools for the rows or the cells"),
    ],
)
def test_what_is_no_padded_is_refused(sim, valid, message):
    def program():
        x, y = mp.put("P0", np.ones((2, 2))), mp.put("P0", valid)
        return at("P0", from_padded, x, y, columns=("a", "b"))

    with pytest.raises(TraceError, match=message):
        mp.evaluate(sim, program)


def test_a_result_on_shares_becomes_a_table_with_names_and_types(sim):
    kind = mp.TableType((("kids", "int8"), ("cents", "int64"), ("ok", "bool")))
    data = pa.table({"kids": [1, 2], "cents": [1250, 99], "ok": [1, 0]})

    def program():
        x = mp.seal(at("P0", to_tensor, at("P0", table(data)), rows=2))
        doubled = mp.device("SP0")(lambda x: x * jnp_row(2, 2, 1))(x)
        x = mp.reveal(doubled, to="P1")
        x = at("P1", from_tensor, x, columns=("kids", "cents", "ok"))
        x = at("P1", cast, x, type=kind)
        return at("P1", from_integers, x, column="cents", unit="cents", type="decimal128(9, 2)")

    found = run(sim, program)
    assert [str(each) for each in found.schema.types] == ["int8", "decimal128(9, 2)", "bool"]
    assert found.to_pydict() == {
        "kids": [2, 4],
        "cents": [Decimal("25.00"), Decimal("1.98")],
        "ok": [True, False],
    }


def jnp_row(*numbers):
    import jax.numpy as jnp

    return jnp.array(numbers)


@pytest.mark.parametrize(
    ("number", "kind", "fits"),
    [
        (3.0, "int8", True), (3.5, "int8", False), (300.0, "int8", False), (-1.0, "uint8", False),
        (float("nan"), "int64", False), (float("inf"), "int64", False), (2.0**63, "int64", False),
        (2.0**53, "int64", True), (1.0, "bool", True), (2.0, "bool", False), (0.5, "float", True),
        (0.1, "float", False), (1e39, "float", False), (float("nan"), "float", True),
        (2**53 + 1, "double", False), (2**24 + 1, "float", False), (2**31, "double", True),
        (2**63 - 1, "double", False), (7, "bool", False),
    ],
)  # fmt: skip
def test_numbers_are_cast_where_they_stay_what_they_are(sim, number, kind, fits):
    dtype = pa.float64() if isinstance(number, float) else pa.int64()

    def program():
        x = at("P0", table({"c": pa.array([number], dtype, from_pandas=False)}))
        return at("P0", cast, x, type=mp.TableType((("c", kind),)))

    if fits:
        found = run(sim, program)
        assert str(found.schema.field("c").type) == kind
        np.testing.assert_array_equal(found.column("c").to_numpy(), [number])
        return
    with pytest.raises(PartyError, match=f"column 'c' has numbers outside of the type {kind}"):
        mp.evaluate(sim, program)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ((("d", "int64"),), "the columns are c, declared are d"),
        ((("c", "string"),), "is of the type int64, and is not cast to string"),
        ((("c", "decimal128(5, 2)"),), "dates and times are made of integers in a unit"),
        ((("c", "int"),), "'c' is of the type 'int'"),
    ],
)
def test_types_that_are_no_numbers_are_not_cast_to(sim, kind, message):
    with pytest.raises(TraceError, match=re.escape(message)):
        mp.evaluate(
            sim, lambda: at("P0", cast, at("P0", table({"c": [1]})), type=mp.TableType(kind))
        )
