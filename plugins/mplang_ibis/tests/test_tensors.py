"""Tables become tensors and come back; what does not fit is refused."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from ibis_programs import at, sales
from mplang_ibis import from_tensor, table, to_tensor

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

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
        (lambda: at("P0", table([1, 2])), "test_tensors.py"),
    ],
)
def test_what_does_not_fit_is_refused_while_tracing(sim, program, message):
    with pytest.raises(TraceError, match=message) as error:
        mp.evaluate(sim, program)
    assert re.match(r"(test_tensors|ibis_programs)\.py:\d+: ", str(error.value))
