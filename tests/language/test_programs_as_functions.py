"""Programs that were parsed or traced are run, and called, as functions are."""

from __future__ import annotations

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import LiteralWarning, TraceError
from mplang_core.ext import from_bytes, to_bytes

CLUSTER = mp.ClusterSpec.simple(2)
X = mp.MPType(mp.TensorType("i64", (2,)), mp.Mask.of([0, 1]))


def both(x, y):
    return mp.invoke(toy.add, x, y), mp.invoke(toy.scale, x, by=3)


def test_a_program_is_evaluated_from_text_and_from_bytes(simulate, mode):
    program = mp.compile(both, X, X, cluster_spec=CLUSTER).program
    sim = simulate(2)
    for read in (program, mp.parse(str(program)), from_bytes(to_bytes(program))):
        total, tripled = mp.evaluate(sim, read, [1, 2], [10, 20], mode=mode)
        np.testing.assert_array_equal(mp.fetch(sim, total)[1], [11, 22])
        np.testing.assert_array_equal(mp.fetch(sim, tripled)[0], [3, 6])


def test_a_program_of_one_result_returns_it(simulate):
    program = mp.compile(lambda x: mp.pshfl_s(x, 1, [0]), X, cluster_spec=CLUSTER).program
    sim = simulate(2)
    found = mp.fetch(sim, mp.evaluate(sim, program, [1, 2]))
    assert found[0] is None
    np.testing.assert_array_equal(found[1], [1, 2])


@pytest.mark.once
def test_other_arguments_than_its_inputs_are_refused(simulate):
    program = mp.compile(both, X, X, cluster_spec=CLUSTER).program
    for args in (([1, 2],), ([1, 2], [1.0, 2.0]), ([1, 2], [1, 2], [1, 2])):
        with pytest.raises(
            TraceError, match=r"test_programs_as_functions\.py:\d+: .*both was traced"
        ):
            mp.evaluate(simulate(2), program, *args)


def test_a_traced_function_is_called_on_a_host_and_in_a_trace(simulate):
    context = mp.TraceContext(CLUSTER)
    traced = mp.trace(context, both, X, X)
    assert callable(traced)
    sim = simulate(2)
    with mp.with_ctx(sim):
        total, _ = traced([1, 2], [10, 20])
        np.testing.assert_array_equal(mp.fetch(sim, total)[0], [11, 22])

    def around(x):
        total, tripled = traced(x, [1, 1])
        return mp.invoke(toy.add, total, tripled)

    outer = mp.trace(context, around, X)
    assert "func.call" in [op.opcode for op in outer.program.graph.ops]
    np.testing.assert_array_equal(mp.fetch(sim, mp.evaluate(sim, outer, [1, 2]))[0], [5, 9])
    with pytest.raises(TraceError, match="argument 1 of both was traced as i64"):
        mp.trace(context, lambda x: traced(x, [1.0, 1.0]), X)


# -- public arguments


def program(x):
    return x


@pytest.mark.once
def test_a_large_plain_argument_is_told_once_and_public_says_that_it_is_meant(simulate, recwarn):
    sim = simulate(2)
    data = np.arange(65)
    for _ in range(2):
        mp.evaluate(sim, program, data)
    (told,) = [each for each in recwarn if each.category is LiteralWarning]
    assert told.filename == __file__
    assert "all parties get it" in str(told.message)
    assert "mp.public" in str(told.message)
    recwarn.clear()
    mp.evaluate(sim, program, mp.public(data))
    mp.evaluate(sim, program, {"a": [mp.public({"b": data})]})
    mp.evaluate(sim, program, np.arange(64))
    mp.evaluate(sim, lambda: mp.put("P0", mp.public(data)))
    assert not [each for each in recwarn if each.category is LiteralWarning]


def test_what_is_public_is_an_array_as_before(simulate):
    data = mp.public([[1.5, 2.0]])
    assert isinstance(data, np.ndarray)
    sim = simulate(2)
    found = mp.fetch(sim, mp.evaluate(sim, program, data))
    assert type(found[0]) is np.ndarray
    np.testing.assert_array_equal(found[1], [[1.5, 2.0]])
    assert mp.public(3) == 3


def test_a_value_is_not_made_public_by_saying_so():
    told = pytest.raises(TraceError, match=r"public takes literals; mp\.reveal discloses")
    with mp.with_ctx(mp.TraceContext(CLUSTER)), told:
        mp.public(mp.put("P0", 1))
