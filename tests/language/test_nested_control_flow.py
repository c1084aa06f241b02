"""Branches and loops three deep, with captures, shuffles and unknown masks, agree with NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import toy

import mplang_core as mp

PARTIES = 3
NEXT = [1, 2, 0]


def add(x, y):
    return mp.invoke(toy.add, x, y)


def less(x, y):
    return mp.invoke(toy.less, x, y)


class Parties:
    """How a program is written: each value is held by all, and may differ between them."""

    all = range(PARTIES)

    def ranks(self):
        return mp.simp.pcall_static(self.all, toy.rank)

    def known(self, x):
        return mp.simp.pcall_static(self.all, toy.scale, x, by=1)

    number = staticmethod(mp.constant)
    add, less = staticmethod(add), staticmethod(less)
    cond, loop = staticmethod(mp.uniform_cond), staticmethod(mp.while_loop)

    def shuffle(self, x):
        return mp.pshfl_s(x, self.all, NEXT)

    def pull(self, x):
        return mp.pshfl(x, mp.invoke(toy.next_rank, self.ranks()))

    def unknown(self, x, y):
        """Adds where both are, which nobody knows before; joined from two halves."""
        sum_of = lambda ranks: mp.simp.pcall_dynamic(  # noqa: E731
            toy.add, mp.simp.pcall_static(ranks, toy.scale, x, by=1), y
        )
        return self.known(mp.pconv([sum_of((0, 2)), sum_of((1,))]))


class Directly:
    """The same with NumPy, a row per party."""

    def ranks(self):
        return np.arange(PARTIES)

    def known(self, x):
        return x

    def number(self, x):
        return np.full(PARTIES, x)

    def add(self, x, y):
        return x + y

    def less(self, x, y):
        return x < y

    def cond(self, pred, then_fn, else_fn, *args):
        assert len(set(pred.tolist())) == 1
        return (then_fn if pred[0] else else_fn)(*args)

    def loop(self, cond_fn, body_fn, state):
        while True:
            pred = cond_fn(state)
            assert len(set(pred.tolist())) == 1
            if not pred[0]:
                return state
            state = body_fn(state)

    def shuffle(self, x):
        return x[NEXT]

    def pull(self, x):
        return x[NEXT]

    def unknown(self, x, y):
        return x + y


def leaf(m, outer, x):
    """The innermost: shuffles, an unknown mask, values from all around."""
    return m.unknown(m.shuffle(m.add(x, outer)), m.pull(m.add(x, m.ranks())))


def wrap_cond(inner, at):
    """Put what is inside into a branch; the other one does something else."""

    def level(m, outer, x):
        here = m.add(outer, m.number(at))
        limit = m.number(7)
        then = lambda v: inner(m, here, m.add(v, outer))  # noqa: E731
        other = lambda v: m.shuffle(m.add(v, here))  # noqa: E731
        return m.cond(m.less(here, limit), then, other, x)

    return level


def wrap_loop(inner, at):
    """Put what is inside into a loop, which uses its own counter inside."""

    def level(m, outer, x):
        one, turns = m.number(1), m.number(2 + at % 2)
        body = lambda s: (m.add(s[0], one), inner(m, m.add(outer, s[0]), m.add(s[1], s[0])))  # noqa: E731
        return m.loop(lambda s: m.less(s[0], turns), body, (m.number(0), x))[1]

    return level


WRAPS = {"cond": wrap_cond, "loop": wrap_loop}
NESTS = list(itertools.product(WRAPS, repeat=3))


@pytest.mark.parametrize("names", NESTS, ids="-".join)
@pytest.mark.parametrize("start", [0, 6])
def test_three_deep_agrees_with_numpy(simulate, mode, names, start):
    fn = leaf
    for at, name in enumerate(names, 1):
        fn = WRAPS[name](fn, at)
    parties, directly = Parties(), Directly()

    def program(start):
        # a value that is the same at all, and one that is not
        return fn(parties, start, parties.ranks())

    sim = simulate(PARTIES)
    found = mp.evaluate(sim, program, start, mode=mode)
    assert found.pmask == mp.Mask(0b111)
    expected = fn(directly, directly.number(start), directly.ranks())
    assert mp.fetch(sim, found) == expected.tolist()


@pytest.mark.parametrize("names", NESTS, ids="-".join)
def test_three_deep_in_functions_at_once_and_as_text(simulate, names):
    """The same with a function around each level; typed at once; printed, parsed and run."""
    fn = leaf
    for at, name in enumerate(names, 1):
        level = WRAPS[name](fn, at)
        fn = lambda m, outer, x, level=level: mp.builtin_function(  # noqa: E731
            lambda v: level(m, outer, v)
        )(x)
    parties = Parties()
    program = lambda start: fn(parties, start, parties.ranks())  # noqa: E731

    direct = leaf
    for at, name in enumerate(names, 1):
        direct = WRAPS[name](direct, at)
    directly = Directly()
    expected = direct(directly, directly.number(1), directly.ranks()).tolist()

    sim = simulate(PARTIES)
    with mp.with_ctx(sim):
        assert mp.fetch(sim, program(mp.constant(1))) == expected
    tfn = mp.trace(mp.TraceContext(sim.cluster_spec), program, 1)
    again = mp.parse(tfn.compiler_ir())
    assert again.digest == tfn.program.digest
    mp.verify(again)
    for mode in ("standard", "launch"):
        with sim.options(mode=mode):
            (found,) = sim.evaluate(again, [sim.lift(1)])
        assert sim.fetch(found) == expected
