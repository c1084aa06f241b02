"""Tables become tensors and come back; what does not fit is refused."""

from __future__ import annotations

import re

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
from mplang_tables import (
    Padded,
    encode,
    from_tensor,
    kernels,
    literal,
    one_hot,
    table,
    tabular_kernels,
    to_padded,
    to_tensor,
)
from table_programs import KIND, at

import mplang_core as mp
from mplang_core.errors import KernelError, PartyError, TraceError

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
        (
            lambda: at("P0", to_tensor, at("P0", table({"shop": ["a"], "n": [1]})), rows=1),
            r"no place for 'shop' \(string\)",
        ),
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
        (lambda: at("P0", table({"a": [1], "b": [1, 2]})), "not a table"),
        (lambda: at("P0", table({"a": [[1]]})), "'a' is of the type 'list<"),
        (lambda: at("P0", table({"a": [None]})), "'a' is of the type 'null'"),
        (lambda: at("P0", table({})), "1 to 4096 columns"),
        (lambda: at("P0", table([1, 2])), "test_tensors.py"),
    ],
)
def test_what_does_not_fit_is_refused_while_tracing(sim, program, message):
    with pytest.raises(TraceError, match=message) as error:
        mp.evaluate(sim, program)
    assert re.match(r"(test_tensors|table_programs)\.py:\d+: ", str(error.value))


def test_a_literal_of_another_type_than_it_says_is_refused(sim):
    wrong = {"rows": 1, "data": (b"", b"12345"), "type": KIND}
    with pytest.raises(PartyError, match=r"table\.literal: the data is not of type table"):
        mp.evaluate(sim, lambda: at("P0", literal, **wrong))


def test_an_op_does_not_believe_that_an_operand_is_what_the_program_says():
    """A worker may get any value; here the table has another type than the program declares."""

    class Ctx:
        class op:
            opcode = "table.to_tensor"
            inputs = (type("Value", (), {"type": KIND}),)

    for value in (pa.table({"a": ["x"]}), np.ones(3), None):
        with pytest.raises(KernelError, match="is not the table"):
            kernels.to_tensor(Ctx, value, rows=1)
        with pytest.raises(KernelError, match="is not the table"):
            tabular_kernels.encode(Ctx, value, column="a", values=(1,), others=True)


# -- numbers of rows that are private


@pytest.mark.parametrize("count", [1, 3, 5])
def test_padding_counts_for_nothing(sim, mode, count):
    data = np.arange(2 * count, dtype=np.float32).reshape(count, 2) + 1

    def program():
        padded = at("P0", to_padded, at("P0", table({"a": data[:, 0], "b": data[:, 1]})), rows=5)
        scaled = at("P0", lambda p: p._replace(values=jnp.log(p.values)), padded)  # log(0) = -inf
        return padded, at("P0", lambda p: (p.count(), p.sum(), p.mean(), p.filled(-1)), scaled)

    padded, found = mp.evaluate(sim, program, mode=mode)
    assert isinstance(padded, Padded)
    assert (padded.values.shape, padded.valid.shape) == ((5, 2), (5,))
    rows, total, mean, filled = mp.fetch(sim, found)
    assert rows == count
    np.testing.assert_allclose(total, np.log(data).sum(axis=0), rtol=1e-6)
    np.testing.assert_allclose(mean, np.log(data).mean(axis=0), rtol=1e-6)
    assert (filled[count:] == -1).all()


def test_two_parties_add_up_rows_whose_number_nobody_learns(sim):
    pay = {"P0": np.float32([1, 2, 3]), "P1": np.float32([10])}

    def program():
        sealed = [
            mp.seal(at(party, to_padded, at(party, table({"pay": rows})), rows=4))
            for party, rows in pay.items()
        ]

        def mean(x, y):
            return (x.sum() + y.sum()) / (x.count() + y.count())

        return mp.reveal(mp.device("SP0")(mean)(*sealed))

    report = mp.analysis.disclosure(mp.trace(mp.TraceContext(sim.cluster_spec), program).program)
    found = mp.fetch(sim, mp.evaluate(sim, program))
    np.testing.assert_allclose(found[0], [16 / 4], atol=1e-3)
    assert "[4, 1]" in str(report)


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_padding_keeps_the_type(sim, kind):
    data = pa.table({"a": pa.array([1, 0]).cast(kind)})
    padded = mp.evaluate(sim, lambda: at("P0", to_padded, at("P0", table(data)), rows=3))
    found = mp.fetch(sim, padded)
    wide = pa.types.is_integer(kind) and kind.bit_width < 64
    assert found.values.dtype == (np.int64 if wide else kind.to_pandas_dtype())
    assert found.values[:, 0].tolist() == [1, 0, 0]
    assert found.valid.tolist() == [True, True, False]


def test_sums_of_integers_do_not_wrap(sim):
    cents = np.int32([900_000_000] * 4)

    def program():
        padded = at("P0", to_padded, at("P0", table({"cents": cents})), rows=10)
        return at("P0", lambda p: (p.sum(), p.mean()), padded)

    total, mean = mp.fetch(sim, mp.evaluate(sim, program))
    assert (total.tolist(), mean.tolist()) == ([3_600_000_000], [900_000_000.0])


def test_what_fills_up_is_not_made_one_of_the_rows_numbers(sim):
    def program(cells, value):
        padded = at("P0", to_padded, at("P0", table({"a": cells})), rows=2)
        return at("P0", lambda p: p.filled(value), padded)

    for cells, value in (([3], 0.5), ([True], -1), ([1.5], 7)):
        found = mp.fetch(sim, mp.evaluate(sim, lambda c=cells, v=value: program(c, v)))
        assert found[:, 0].tolist() == [cells[0], value]


def test_a_padded_outside_of_a_device_says_where_it_belongs(sim):
    def program():
        return at("P0", to_padded, at("P0", table({"a": [1]})), rows=2).mean()

    with pytest.raises(TypeError, match=r"mp\.device\('P0'\)\(lambda p: p\.mean\(\)\)"):
        mp.evaluate(sim, program)


def test_more_rows_than_the_bound_are_refused(sim, mode):
    def program():
        return at("P0", to_padded, at("P0", table({"a": [111, 222]})), rows=1)

    with pytest.raises(PartyError, match="has more than the 1 rows declared") as error:
        mp.evaluate(sim, program, mode=mode)
    assert "222" not in str(error.value)


# -- values of public lists


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["f", "m", "f"], ("f", "m")),
        ([7, 9, 7], (9, 8, 7)),
        ([True, False, True], (False, True)),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ("a", "b")),
    ],
)
def test_values_of_a_list_become_numbers(sim, mode, cells, values):
    def program():
        t = at("P0", table({"n": [1, 2, 3], "c": cells}))
        return (
            at("P0", encode, t, column="c", values=values),
            at("P0", one_hot, t, column="c", values=values, type="double"),
        )

    coded, hot = mp.fetch(sim, mp.evaluate(sim, program, mode=mode))
    there = [values.index(x.as_py() if hasattr(x, "as_py") else x) for x in cells]
    assert coded.to_pydict() == {"n": [1, 2, 3], "c": there}
    assert hot.column_names == ["n", *(f"c_{value}" for value in values)]
    np.testing.assert_array_equal(np.eye(len(values))[there], hot.drop("n").to_pandas().to_numpy())


def test_other_values_and_nulls_are_refused_unless_they_are_expected(sim):
    def program(op, **more):
        t = at("P0", table({"c": ["f", "SECRET", None]}))
        return at("P0", op, t, column="c", values=("m", "f"), **more)

    for op in (encode, one_hot):
        text = f"table.{op.__name__}: column 'c' has nulls, or values that are not in the list"
        with pytest.raises(PartyError, match=text) as error:
            mp.evaluate(sim, lambda op=op: program(op))
        assert "SECRET" not in str(error.value)
    found = mp.fetch(sim, mp.evaluate(sim, lambda: program(encode, others=True)))
    assert found.to_pydict() == {"c": [1, -1, -1]}
    found = mp.fetch(sim, mp.evaluate(sim, lambda: program(one_hot, others=True)))
    assert found.to_pydict() == {"c_m": [0, 0, 0], "c_f": [1, 0, 0]}


@pytest.mark.parametrize(
    ("data", "attrs", "message"),
    [
        ({"a": ["x"]}, {"column": "b", "values": ("x",)}, "no column 'b'; there are a"),
        ({"a": ["x"]}, {"column": "a", "values": ()}, "at least one value"),
        ({"a": ["x"]}, {"column": "a", "values": ("x", "x")}, "each of them once"),
        ({"a": ["x"]}, {"column": "a", "values": (1,)}, "of the type string, got '1'"),
        ({"a": [1]}, {"column": "a", "values": (True,)}, "of the type int64, got 'True'"),
        ({"a": [1]}, {"column": "a", "values": (2**63 - 1, 1.0)}, "of the type int64, got '1.0'"),
        ({"a": pa.array([1], pa.int8())}, {"column": "a", "values": (1, 300)}, "int8, got '300'"),
        ({"a": pa.array([1], pa.uint8())}, {"column": "a", "values": (1, -1)}, "uint8, got '-1'"),
        ({"a": [1]}, {"column": "a", "values": [1, 2]}, "a list of numbers is an array"),
        ({"a": [1.5]}, {"column": "a", "values": (1,)}, "strings and integers are listed"),
        ({"a": [[1]]}, {"column": "a", "values": (1,)}, "'a' is of the type 'list<"),
    ],
)
def test_lists_that_do_not_fit(sim, data, attrs, message):
    for op in (encode, one_hot):
        with pytest.raises(TraceError, match=message):
            mp.evaluate(sim, lambda op=op: at("P0", op, at("P0", table(data)), **attrs))


def test_columns_of_a_list_have_names_that_are_free(sim):
    def program(**more):
        t = at("P0", table({"a": ["x"], "a_x": [1]}))
        return at("P0", one_hot, t, column="a", values=("x",), **more)

    with pytest.raises(TraceError, match="a_x"):
        mp.evaluate(sim, program)
    with pytest.raises(TraceError, match="a type of numbers, such as double, got 'string'"):
        mp.evaluate(sim, lambda: program(type="string"))
