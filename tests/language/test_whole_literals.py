"""Literals that are more than the elements of an array: refused with the line, never cut down."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import ConfigError, TraceError
from mplang_core.ir.attrs import normalize

pa = pytest.importorskip("pyarrow")

MASKED = np.ma.array([30.0, -999.0, 50.0], mask=[False, True, False])


class Metres(np.ndarray):
    """Array with a unit, as those of astropy and unyt are."""

    def __array_finalize__(self, obj):
        self.unit = "m"


def nullable(kind):
    def make():
        pandas = pytest.importorskip("pandas")
        return pandas.Series([1, None], dtype=kind)

    return make


def polars_nulls():
    return pytest.importorskip("polars").Series([1, None])


def matrix():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.matrix([[1.0, 2.0], [3.0, 4.0]])


LOSING = {
    "a masked array": lambda: MASKED,
    "one without a masked element": lambda: np.ma.array([1.0, 2.0]),
    "a masked element": lambda: np.ma.masked,
    "masked arrays in a list": lambda: [MASKED, MASKED],
    "a masked element in a list": lambda: [1.0, np.ma.masked],
    "a matrix, whose * is another": matrix,
    "numbers with a unit": lambda: np.ones(2).view(Metres),
    "an Arrow array with nulls": lambda: pa.array([1, None]),
    "a chunked one": lambda: pa.chunked_array([[1], [None]]),
    "categories with nulls": lambda: pa.array([5, None]).dictionary_encode(),
    "integers of pandas with nulls": nullable("Int64"),
    "floats of pandas with nulls": nullable("Float64"),
    "integers of Arrow in pandas": nullable("int64[pyarrow]"),
    "integers of polars with nulls": polars_nulls,
}
ENTRIES = {
    "put": lambda sim, x: mp.put("P0", x),
    "put in a program": lambda sim, x: mp.evaluate(sim, lambda: mp.put("P0", x)),
    "constant": lambda sim, x: mp.evaluate(sim, lambda: mp.constant(x)),
    "argument": lambda sim, x: mp.evaluate(sim, lambda y: y, x),
    "operand": lambda sim, x: mp.evaluate(sim, lambda: mp.put("P0", 1.0) + x),
    "argument of a function at a device": lambda sim, x: mp.evaluate(
        sim, lambda: mp.device("P0")(lambda y, z: y + z)(mp.put("P0", 1.0), x)
    ),
    "result": lambda sim, x: mp.evaluate(sim, lambda: x),
    "public": lambda sim, x: mp.evaluate(sim, lambda y: y, mp.public(x)),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("losing", LOSING)
@pytest.mark.needs("simulator")
def test_what_an_array_would_lose_is_refused_with_the_line(losing, entry):
    literal = LOSING[losing]()
    with (
        mp.Simulator(mp.ClusterSpec.simple(2)) as sim,
        mp.with_ctx(sim),
        pytest.raises(TraceError, match=r"test_whole_literals\.py:\d+"),
    ):
        ENTRIES[entry](sim, literal)


@pytest.mark.needs("simulator")
def test_the_remedy_that_the_error_names_runs():
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim, mp.with_ctx(sim):
        with pytest.raises(TraceError, match=r"no mask.*x\.filled\(0\).*np\.asarray\(x\)"):
            mp.put("P0", MASKED)
        assert mp.fetch(sim, mp.put("P0", MASKED.filled(0))).tolist() == [30, 0, 50]
        assert mp.fetch(sim, mp.put("P0", np.asarray(matrix()))).shape == (2, 2)


@pytest.mark.needs("simulator")
@pytest.mark.parametrize("make", [np.ones, lambda n: pa.array([1.0] * n), lambda n: [1.0] * n])
def test_what_loses_nothing_is_taken(make, tmp_path):
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim, mp.with_ctx(sim):
        assert mp.fetch(sim, mp.put("P0", make(3))).tolist() == [1, 1, 1]
        np.save(tmp_path / "a.npy", np.ones(3))
        mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
        assert mp.fetch(sim, mp.put("P0", mapped)).tolist() == [1, 1, 1]
        assert mp.fetch(sim, mp.put("P0", mp.public(np.ones(3)))).tolist() == [1, 1, 1]


def test_an_attribute_of_an_op_keeps_no_mask():
    with pytest.raises(TypeError, match="has no mask"):
        normalize(MASKED)


@pytest.mark.needs("simulator")
def test_a_data_set_of_a_masked_array_is_refused_and_its_columns_become_nulls():
    spec = mp.ClusterSpec([{"name": "bank"}])
    for array in (MASKED, matrix()):
        with pytest.raises(ConfigError, match="data set 'x' of bank: .*has no mask"):
            mp.Simulator(spec, data={"bank": {"x": array}})
    with mp.Simulator(spec, data={"bank": {"x": {"age": MASKED}}}) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, lambda: mp.dataset("bank", "x")))
    assert found.column("age").to_pylist() == [30, None, 50]
