"""``pshfl``, ``pshfl_s`` and ``pconv``: what each moves where, and their rules."""

from __future__ import annotations

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError


def ranks(parties=(0, 1, 2), plus=0):
    """A value that is its holder's rank, plus something."""
    x = mp.simp.pcall_static(parties, toy.rank)
    return mp.simp.pcall_static(parties, toy.add, x, mp.constant(plus))


def run(sim, program, mode, *args):
    return mp.fetch(sim, mp.evaluate(sim, program, *args, mode=mode))


def trace(program, parties=3):
    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(parties)), program)


# -- pshfl


def test_pshfl_picture(simulate, mode):
    def program():
        src = ranks((0, 2), plus=10)
        index = mp.constant(0, parties=1)
        return mp.pshfl(src, index)

    assert run(simulate(3), program, mode) == [None, 10, None]
    assert trace(program).out_vars[0].type.pmask == mp.Mask(0b010)


def test_pshfl_everyone_pulls_from_the_next(simulate, mode):
    def program():
        return mp.pshfl(ranks(plus=10), mp.invoke(toy.next_rank, ranks()))

    assert run(simulate(3), program, mode) == [11, 12, 10]


def test_pshfl_with_an_index_of_unknown_mask_has_an_unknown_mask(simulate, mode):
    def program():
        index = mp.simp.pcall_dynamic(toy.scale, mp.constant(0, parties=(1, 2)))
        return mp.pshfl(ranks(plus=10), index)

    assert trace(program).out_vars[0].type.pmask is None
    assert run(simulate(3), program, mode) == [None, 10, 10]


def test_pshfl_from_a_party_that_has_nothing_fails_by_name(simulate, mode):
    def program():
        return mp.pshfl(ranks((0,)), mp.constant(2, parties=1))

    with pytest.raises(PartyError, match="party 2 is to send a value that it does not hold"):
        run(simulate(3), program, mode)


def test_pshfl_from_no_party_fails_without_the_index(simulate, mode):
    def program():
        return mp.pshfl(ranks(), mp.constant(4711, parties=1))

    with pytest.raises(PartyError, match="index of a shuffle is a rank below 3") as error:
        run(simulate(3), program, mode)
    assert error.value.rank == 1
    assert "4711" not in str(error.value)


@pytest.mark.parametrize("index", [1.5, [0, 1], True])
def test_pshfl_needs_an_integer_scalar(index):
    with pytest.raises(TraceError, match="the index is an integer scalar"):
        trace(lambda: mp.pshfl(mp.constant(1), mp.constant(index)))


# -- pshfl_s


def test_pshfl_s_picture(simulate, mode):
    def program():
        return mp.pshfl_s(ranks(plus=10), pmask=mp.Mask(0b111), src_ranks=[2, 0, 1])

    assert run(simulate(3), program, mode) == [12, 10, 11]
    assert trace(program).out_vars[0].type.pmask == mp.Mask(0b111)


def test_pshfl_s_swaps_and_permutes(simulate, mode):
    assert run(simulate(2), lambda: mp.pshfl_s(ranks((0, 1)), [0, 1], [1, 0]), mode) == [1, 0]

    def five():
        return mp.pshfl_s(ranks(range(5)), range(5), [3, 0, 4, 1, 2])

    assert run(simulate(5), five, mode) == [3, 0, 4, 1, 2]


def test_pshfl_s_one_source_feeds_several(simulate, mode):
    assert run(simulate(3), lambda: mp.pshfl_s(ranks((1,)), [0, 2], [1, 1]), mode) == [1, None, 1]


def test_pshfl_s_from_a_party_without_the_value_is_refused():
    with pytest.raises(TraceError, match=r"test_shuffles.py:\d+: .* sources are \{2\}, but"):
        trace(lambda: mp.pshfl_s(ranks((0, 1)), [0], [2]))


def test_pshfl_s_of_an_unknown_mask_is_checked_when_it_runs(simulate, mode):
    def program():
        only_p0 = mp.simp.pcall_dynamic(toy.scale, mp.constant(7, parties=0))
        return mp.pshfl_s(only_p0, [2], [1])

    with pytest.raises(PartyError, match="party 1 is to send a value that it does not hold"):
        run(simulate(3), program, mode)


def test_pshfl_s_names_one_source_per_receiver():
    with pytest.raises(TraceError, match="2 receivers .*, 1 sources"):
        trace(lambda: mp.pshfl_s(mp.constant(1), [0, 1], [0]))


def test_pshfl_s_to_a_party_that_is_not_there_is_refused():
    with pytest.raises(TraceError, match=r"\{7\} are not among"):
        trace(lambda: mp.pshfl_s(mp.constant(1), [7], [0]))


# -- pconv


def test_pconv_picture(simulate, mode):
    def program():
        return mp.pconv([mp.constant(10 + i, parties=i) for i in range(3)])

    assert run(simulate(3), program, mode) == [10, 11, 12]
    assert trace(program).out_vars[0].type.pmask == mp.Mask(0b111)


def test_pconv_of_one_is_that_one(simulate, mode):
    assert run(simulate(3), lambda: mp.pconv([ranks((1,))]), mode) == [None, 1, None]


def test_pconv_of_overlapping_masks_is_refused():
    with pytest.raises(TraceError, match=r"test_shuffles\.py:\d+.*the masks overlap in \{1\}"):
        trace(lambda: mp.pconv([ranks((0, 1)), ranks((1, 2))]))


def test_pconv_of_different_types_is_refused():
    with pytest.raises(TraceError, match="one type expected"):
        trace(lambda: mp.pconv([mp.constant(1, parties=0), mp.constant(1.0, parties=1)]))


def test_pconv_of_nothing_is_refused():
    with pytest.raises(TraceError):
        trace(lambda: mp.pconv([]))


def test_pconv_of_unknown_masks(simulate, mode):
    def program(overlap):
        a = mp.simp.pcall_dynamic(toy.scale, mp.constant(1, parties=0))
        b = mp.simp.pcall_dynamic(toy.scale, mp.constant(2, parties=(0, 1) if overlap else 1))
        return mp.pconv([a, b])

    sim = simulate(2)
    assert trace(lambda: program(False)).out_vars[0].type.pmask is None
    assert run(sim, lambda: program(False), mode) == [2, 4]
    message = (
        r"party 0 failed in simp.converge at .*test_shuffles\.py:\d+.*"
        "party 0 holds 2 of the values .* masks overlap"
    )
    with pytest.raises(PartyError, match=message):
        run(sim, lambda: program(True), mode)


def test_arrays_arrive_as_they_were(simulate, mode):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = run(simulate(2), lambda: mp.pshfl_s(mp.constant(x, parties=0), [1], [0]), mode)
    assert out[0] is None
    assert out[1].dtype == np.float32
    np.testing.assert_array_equal(out[1], x)


# -- many rounds


def test_a_protocol_of_many_rounds_sends_to_the_next_and_adds(simulate, mode):
    """Each round everyone sends to the next, and adds what it got."""

    def program(rounds):
        x = mine = mp.simp.pcall_static(range(5), toy.rank)
        for _ in range(20):
            x = mp.pshfl_s(x, range(5), [1, 2, 3, 4, 0])
            x = mp.invoke(toy.add, x, mine)
        return x, rounds

    x = mine = np.arange(5)
    for _ in range(20):
        x = x[[1, 2, 3, 4, 0]] + mine
    sim = simulate(5)
    assert mp.fetch(sim, mp.evaluate(sim, program, 20, mode=mode))[0] == x.tolist()


@pytest.mark.parametrize("src_ranks", [[1, 0], [4, 3, 2, 1, 0], [1, 2, 3, 4, 0], [3, 3, 0, 3, 1]])
def test_swaps_and_permutations_end_and_come_back(simulate, mode, src_ranks):
    """Everyone sends and receives at once, hundreds of times; nobody waits for the other."""
    size = len(src_ranks)

    def program(turns):
        x = mp.simp.pcall_static(range(size), toy.rank)
        shuffle = lambda x: mp.pshfl_s(x, range(size), src_ranks)  # noqa: E731
        body = lambda s: (mp.invoke(toy.add, s[0], mp.constant(1)), shuffle(s[1]))  # noqa: E731
        return mp.while_loop(lambda s: mp.invoke(toy.less, s[0], turns), body, (0, x))[1]

    expected = np.arange(size)
    for _ in range(100):
        expected = expected[src_ranks]
    assert run(simulate(size), program, mode, 100) == expected.tolist()
