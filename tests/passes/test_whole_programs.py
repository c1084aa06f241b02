"""Whole programs, of which each party skips what it takes no part in: failures, engines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mplang_simulator import Simulator
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE
from passes.party_parts import DiligentHost, neighbour, survives, trace

import mplang_core as mp
from mplang_core.errors import PartyError
from mplang_core.simp.passes import run_passes


@pytest.fixture(params=[(), (1,)], ids=["all skip", "one runs all"])
def parts(request):
    with DiligentHost(mp.ClusterSpec.simple(3), diligent=request.param, timeout=DEADLINE) as made:
        yield made


def results(on, fn, *args):
    return mp.fetch(on, mp.evaluate(on, fn, *args, mode="launch"))


def ranks(parties=(0, 1, 2)):
    return mp.simp.pcall_static(parties, dialect.rank)


# -- running


def test_what_parties_run_together_meets_under_one_key_in_each_turn_of_a_loop(parts):
    """The op among parties has another position at each of them, and so at first two keys."""

    def program():
        only_here = mp.simp.pcall_static([0], dialect.add, mp.constant(1, parties=0), ranks([0]))

        def turn(state):
            i, x = state
            mp.simp.pcall_static([2], dialect.add, x, x)
            moved = mp.simp.pcall_static([0, 1, 2], neighbour, x)
            return mp.invoke(dialect.add, i, mp.constant(1)), moved

        below = lambda state: mp.invoke(dialect.less, state[0], mp.constant(2))  # noqa: E731
        return mp.while_loop(below, turn, (mp.constant(0), ranks()))[1], only_here

    around, here = results(parts, program)
    assert around == [2, 0, 1]
    assert here == [1, None, None]


def test_a_party_has_none_of_what_others_hold(parts):
    def program(x, y):
        return mp.invoke(dialect.add, x, y), x, mp.pshfl_s(y, 2, [1])

    x = mp.evaluate(parts, lambda: ranks([0, 1]))
    y = mp.evaluate(parts, lambda: mp.invoke(dialect.add, ranks([1]), ranks([1])))
    assert results(parts, program, x, y) == ([None, 3, None], [0, 1, None], [None, None, 2])


def fails_in_a_kernel():
    return mp.pshfl_s(mp.invoke(dialect.fail_at, ranks(), party=1), [0, 1, 2], [1, 2, 0])


def pulls_from_one_that_has_nothing():
    return mp.pshfl(ranks([0, 1]), mp.constant(2, parties=1))


def sends_what_it_does_not_have():
    x = mp.simp.pcall_dynamic(dialect.add, ranks([0, 1]), ranks([1]))
    return mp.pshfl_s(x, [2], [0])


def runs_without_an_operand():
    x = mp.simp.pcall_dynamic(dialect.add, ranks([0, 1]), ranks([1]))
    return mp.simp.pcall_static([0, 1], dialect.add, x, x)


def keeps_what_it_does_not_have():
    x = mp.simp.pcall_dynamic(dialect.add, ranks([0, 1]), ranks([1]))
    return mp.pshfl_s(x, [0], [0])


def holds_two_to_converge():
    x = mp.simp.pcall_dynamic(dialect.add, ranks([0, 1]), ranks([1]))
    return mp.pconv([x, ranks([1])])


def disagrees():
    flag = mp.invoke(dialect.less, ranks(), mp.constant(1))
    return mp.uniform_cond(flag, lambda: mp.constant(1), lambda: mp.constant(2))


FAILING = [
    fails_in_a_kernel,
    pulls_from_one_that_has_nothing,
    sends_what_it_does_not_have,
    runs_without_an_operand,
    keeps_what_it_does_not_have,
    holds_two_to_converge,
    disagrees,
]


@pytest.mark.parametrize("program", FAILING)
def test_what_fails_is_told_in_the_same_words_whoever_skips(parts, program):
    with Simulator(mp.ClusterSpec.simple(3), timeout=DEADLINE) as whole:
        with pytest.raises(PartyError) as expected:
            results(whole, program)
        with pytest.raises(PartyError) as found:
            results(parts, program)
    where = f" at {Path(__file__).name}:"
    assert where in str(found.value)
    assert found.value.location == expected.value.location
    mine, theirs = (str(each.value).partition(": ")[2] for each in (found, expected))
    assert mine == theirs or program is disagrees
    assert results(parts, lambda: mp.constant(1)) == [1, 1, 1]


@pytest.mark.needs("jax", "spu")
def test_spu_computes_where_one_party_runs_all():
    def program(x):
        secret = mp.seal(x)
        return mp.reveal(secret * secret + mp.seal(x))

    cluster = mp.ClusterSpec.simple(2)
    with DiligentHost(cluster, diligent=[1], timeout=DEADLINE) as parts:
        x = np.arange(3)
        for mode in ("launch", "standard"):
            for value in mp.fetch(parts, mp.evaluate(parts, program, x, mode=mode)):
                np.testing.assert_array_equal(value, x * x + x)
        whole = trace(program, x, parties=2)
        found = run_passes(whole)
        survives(found)
        with parts.options(mode="launch"):
            (result,) = parts.evaluate(found, [parts.lift(x)])
        np.testing.assert_array_equal(parts.fetch(result)[0], x * x + x)


@pytest.mark.needs("crypto")
def test_two_fresh_keys_stay_two_and_keys_that_nobody_needs_go():
    from mplang_crypto import encrypt, keygen

    def program():
        x = mp.put("P0", 7)
        keys = [mp.device("P0")(keygen)() for _ in range(3)]
        return [mp.put("P1", mp.device("P0")(encrypt)(x, key)) for key in keys[:2]]

    after = run_passes(trace(program, parties=2))
    opcodes = [op.opcode for op in after.graph.walk()]
    assert opcodes.count("crypto.keygen") == opcodes.count("crypto.encrypt") == 2
