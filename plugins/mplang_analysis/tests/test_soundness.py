"""What the table does not say, does not happen: on random programs, party by party.

Another datum of a party changes nothing for those to whom the table says nothing of it.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import pathlib

import numpy as np
import pytest
import toy
from hypothesis import HealthCheck, example, given, settings, strategies as st

import mplang_core as mp
from mplang_core import analysis

_spec = importlib.util.spec_from_file_location(
    "analysis_evaluator", pathlib.Path(__file__).with_name("evaluator.py")
)
evaluator = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(evaluator)

N = 3
ALL = mp.Mask.all(N)
JOINT = mp.Mask.of([0, 1])
SCALAR = mp.TensorType("i64")
KINDS = ["add", "mul", "dynamic", "rank", "constant", "move", "pull", "join"]

numbers = st.integers(0, 1000)


def blocks(depth: int) -> st.SearchStrategy:
    """Statements: a kind, three numbers that choose among what fits, and inner blocks."""
    flat = st.tuples(st.sampled_from(KINDS), numbers, numbers, numbers, st.just(()))
    if depth == 0:
        return st.lists(flat, min_size=1, max_size=4)
    inner = blocks(depth - 1)
    nested = st.tuples(
        st.sampled_from(["cond", "loop", "call"]),
        numbers,
        numbers,
        numbers,
        st.tuples(inner, inner),
    )
    return st.lists(flat | nested, min_size=1, max_size=5)


def run_block(block, env):
    """Add a value per statement that fits."""
    env = list(env)
    for kind, a, b, c, inner in block:
        made = STATEMENTS[kind](env, a, b, c, *inner)
        if made is not None:
            env.append(made)
    return env


def known(env, i):
    """Choose among the values of which one knows who holds them."""
    found = [x for x in env if x.pmask is not None]
    return found[i % len(found)]


def full(env, i):
    """Choose among the values that all hold; they may differ."""
    found = [x for x in env if x.pmask == ALL]
    return found[i % len(found)]


def mask(i: int, within: mp.Mask = ALL) -> mp.Mask:
    ranks = list(within)
    return mp.Mask.from_ranks(
        r for k, r in enumerate(ranks) if (1 + i % (2 ** len(ranks) - 1)) >> k & 1
    )


def everyone(x, i: int = 0):
    holders = list(x.pmask)
    return mp.pshfl_s(x, ALL, [holders[i % len(holders)]] * N)


def combine(op):
    def statement(env, a, b, c):
        x, y = known(env, a), known(env, b)
        both = x.pmask & y.pmask
        return mp.invoke(op, x, y, rmask=mask(c, both)) if both else None

    return statement


def move(env, a, b, c):
    x, out = known(env, a), mask(b)
    holders = list(x.pmask)
    return mp.pshfl_s(x, out, [holders[(c + r) % len(holders)] for r in out])


def join(env, a, b, c):
    taken, union = [], mp.Mask()
    for i in range(len(env)):
        x = known(env, a + i)
        if not x.pmask & union:
            taken.append(x)
            union |= x.pmask
    return mp.pconv(taken)


def cond(env, a, b, c, then, other):
    pred = mp.invoke(toy.less, everyone(known(env, a), c), mp.constant(b % 9))
    branch = lambda block, i: lambda: full(run_block(block, env), i)  # noqa: E731
    return mp.uniform_cond(pred, branch(then, b), branch(other, c))


def loop(env, a, b, c, body, _):
    limit, start = mp.invoke(toy.next_rank, everyone(known(env, a), c)), full(env, b)

    def step(state):
        i, x = state
        return mp.invoke(toy.add, i, mp.constant(1)), full(run_block(body, [*env, x]), c)

    return mp.while_loop(
        lambda state: mp.invoke(toy.less, state[0], limit), step, (mp.constant(0), start)
    )[1]


def call(env, a, b, c, body, _):
    return mp.builtin_function(lambda x: known(run_block(body, [*env, x]), c))(known(env, a))


STATEMENTS = {
    "add": combine(toy.add),
    "mul": combine(toy.mul),
    "dynamic": lambda env, a, b, c: mp.simp.pcall_dynamic(
        toy.add, env[a % len(env)], env[b % len(env)]
    ),
    "rank": lambda env, a, b, c: mp.simp.pcall_static(mask(a), toy.rank),
    "constant": lambda env, a, b, c: mp.constant(a % 9, parties=mask(b)),
    "move": move,
    "pull": lambda env, a, b, c: mp.pshfl(full(env, a), mp.invoke(toy.next_rank, known(env, b))),
    "join": join,
    "cond": cond,
    "loop": loop,
    "call": call,
}


def traced(block) -> mp.Program:
    types = [mp.MPType(SCALAR, mp.Mask.of(r)) for r in range(N)] + [mp.MPType(SCALAR, JOINT)]

    def program(*args):
        ranks = [mp.constant(r, parties=r) for r in range(N)]
        env = run_block(block, [*args, mp.pconv(args[:N]), mp.pconv(ranks), mp.constant(7)])
        return [x for x in env if x.pmask is not None]

    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(N)), program, *types).program


def run(program, data, joint, own):
    inputs = [{r: np.asarray(data[r])} for r in range(N)] + [
        dict.fromkeys(JOINT, np.asarray(joint))
    ]
    return evaluator.Run(program, inputs, own)


def check(table, base, changed, about: int, knows: mp.Mask) -> None:
    """Hold two runs against the table; the second has other data of a party.

    Args:
        table: what the program discloses.
        base: one run.
        changed: the other.
        about: the party.
        knows: who has the data that was changed from the beginning.
    """
    told = {row.receiver for row in table.rows if about in row.discloses}
    for who in ALL - knows:
        if who not in told:
            assert base.seen[who] == changed.seen[who]
    results = (row for row in table.rows if row.what == "result")
    for before, after in zip(base.outputs, changed.outputs, strict=True):
        for rank in sorted(before):
            row = next(results)
            assert row.sender == rank
            if about not in row.inputs:
                np.testing.assert_array_equal(before[rank], after[rank])


EXAMPLES = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
values = st.integers(-5, 5)


PULL = ("pull", 1, 0, 0, ())  # of what differs, by an index that is the datum of party 0
MOVE = ("move", 5, 3, 0, ())


@given(blocks(2), st.tuples(values, values, values), values, st.integers(1, 20))
@example([PULL], (0, 0, 0), 0, 1)
@example([("cond", 0, 1, 0, ([MOVE, PULL], [PULL]))], (0, 0, 0), 0, 9)
@example([("loop", 0, 0, 0, ([MOVE, PULL], [MOVE]))], (0, 0, 0), 0, 1)
@EXAMPLES
def test_what_is_not_disclosed_makes_no_difference(block, data, joint, by):
    program = traced(block)
    table = analysis.disclosure(program, uniform_inputs=True)
    own = {r: r for r in range(N)}
    base = run(program, data, joint, own)
    for r in range(N):
        others = [x + by * (i == r) for i, x in enumerate(data)]
        changed = run(program, others, joint, {**own, r: r + by})
        check(table, base, changed, r, mp.Mask.of(r))
    check(table, base, run(program, data, joint + by, own), 0, JOINT)


@given(blocks(2), st.tuples(values, values, values), values)
@EXAMPLES
def test_every_report_is_made_of_every_program(block, data, joint):
    program = traced(block)
    analysis.costs(program).to_json()
    found = analysis.graph(program)
    for view in (found, *map(found.party, range(N))):
        assert view._repr_markdown_()
        assert view.text()
        assert view.mermaid()


def test_the_check_would_notice():
    """Without the rows of moves and predicates, runs differ from the table."""
    block = [("cond", 0, 3, 0, ([("constant", 1, 6, 0, ())], [("constant", 2, 6, 0, ())]))]
    program = traced(block)
    table = analysis.disclosure(program)
    own = {r: r for r in range(N)}
    base, changed = (run(program, (x, 0, 0), 0, own) for x in (0, 9))
    silent = dataclasses.replace(table, rows=[r for r in table.rows if r.what == "result"])
    with pytest.raises(AssertionError):
        check(silent, base, changed, 0, mp.Mask.of(0))
