"""Random multi-party programs, as data; run by mplang, or directly by NumPy.

A program is a block: a list of statements over an environment that grows by one value per
statement. Inner blocks see the values around them. A value has a shape and a mask, ``None``
where it is known only at run time; directly evaluated it is a list with one entry per party.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import toy
from hypothesis import strategies as st

import mplang_core as mp

SHAPES = [(), (3,)]
FEOPS = {"add": toy.add, "mul": toy.mul}
NUMPY = {"add": np.add, "mul": np.multiply}


@dataclass(frozen=True)
class Kind:
    """A value's shape and mask."""

    shape: tuple[int, ...]
    mask: mp.Mask | None


@dataclass(frozen=True)
class Statement:
    """One statement: what it is, its details, and the kind of the value that it adds."""

    what: str
    detail: Any
    kind: Kind


@dataclass(frozen=True)
class Block:
    """Statements, and the position of the result in the environment after them."""

    statements: list[Statement]
    result: int


@dataclass(frozen=True)
class Program:
    """A block for a number of parties."""

    parties: int
    block: Block


# -- drawing


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw a program of one to five parties."""
    n = draw(st.integers(1, 5))
    env: list[Kind] = []
    statements = [_constant(draw, n, env, (), mp.Mask.all(n))]
    statements += _statements(draw, n, env, depth=2)
    return Program(n, Block(statements, draw(st.integers(0, len(env) - 1))))


def _mask(draw: st.DrawFn, within: mp.Mask) -> mp.Mask:
    ranks = draw(st.lists(st.sampled_from(list(within)), min_size=1, unique=True))
    return mp.Mask.from_ranks(ranks)


def _add(env: list[Kind], what: str, detail: Any, kind: Kind) -> Statement:
    env.append(kind)
    return Statement(what, detail, kind)


def _constant(draw: st.DrawFn, n: int, env: list[Kind], shape: Any, mask: mp.Mask) -> Statement:
    size = int(np.prod(shape, dtype=int))
    numbers = draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size))
    return _add(env, "constant", np.array(numbers).reshape(shape), Kind(shape, mask))


def _statements(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    made: list[Statement] = []
    for _ in range(draw(st.integers(1, 4))):
        what = draw(
            st.sampled_from(
                ["constant", "rank", "call", "call", "dynamic", "shuffle", "pull", "converge"]
                + ["cond", "loop"] * (depth > 0)
            )
        )
        made += _DRAW[what](draw, n, env, depth)
    return made


def _draw_constant(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    shape = draw(st.sampled_from(SHAPES))
    return [_constant(draw, n, env, shape, _mask(draw, mp.Mask.all(n)))]


def _draw_rank(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    mask = _mask(draw, mp.Mask.all(n))
    return [_add(env, "rank", mask, Kind((), mask))]


def _pair(draw: st.DrawFn, env: list[Kind]) -> tuple[int, int]:
    i = draw(st.integers(0, len(env) - 1))
    fitting = [j for j, kind in enumerate(env) if kind.shape == env[i].shape]
    return i, draw(st.sampled_from(fitting))


def _draw_call(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    i, j = _pair(draw, env)
    op = draw(st.sampled_from(list(FEOPS)))
    a, b = env[i].mask, env[j].mask
    if a is None or b is None:
        return [_add(env, "call", (op, i, j, None), Kind(env[i].shape, None))]
    both = a & b
    if not both:
        return []
    rmask = _mask(draw, both) if draw(st.booleans()) else None
    return [_add(env, "call", (op, i, j, rmask), Kind(env[i].shape, rmask or both))]


def _draw_dynamic(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    i, j = _pair(draw, env)
    op = draw(st.sampled_from(list(FEOPS)))
    return [_add(env, "dynamic", (op, i, j), Kind(env[i].shape, None))]


def _known(draw: st.DrawFn, env: list[Kind]) -> tuple[int, mp.Mask]:
    i = draw(st.sampled_from([i for i, kind in enumerate(env) if kind.mask is not None]))
    mask = env[i].mask
    assert mask is not None
    return i, mask


def _draw_shuffle(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    i, holders = _known(draw, env)
    out = _mask(draw, mp.Mask.all(n))
    sources = [draw(st.sampled_from(list(holders))) for _ in out]
    return [_add(env, "shuffle", (i, out, sources), Kind(env[i].shape, out))]


def _draw_pull(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    i, holders = _known(draw, env)
    out = _mask(draw, mp.Mask.all(n))
    sources = [draw(st.sampled_from(list(holders))) for _ in out]
    return [_add(env, "pull", (i, out, sources), Kind(env[i].shape, out))]


def _draw_converge(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    disjoint: list[int] = []
    union = mp.Mask()
    shape = draw(st.sampled_from(SHAPES))
    for i in draw(st.permutations(range(len(env)))):
        mask = env[i].mask
        if env[i].shape == shape and mask is not None and not mask & union:
            disjoint.append(i)
            union |= mask
    return [_add(env, "converge", disjoint, Kind(shape, union))] if disjoint else []


def _block(draw: st.DrawFn, n: int, env: list[Kind], depth: int, result: Kind) -> Block:
    inner = list(env)
    statements = _statements(draw, n, inner, depth - 1)
    fitting = [i for i, kind in enumerate(inner) if kind == result]
    return Block(statements, draw(st.sampled_from(fitting)))


def _draw_cond(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    like = draw(st.sampled_from(env))
    left, right = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    blocks = [_block(draw, n, env, depth, like) for _ in range(2)]
    return [_add(env, "cond", (left, right, *blocks), like)]


def _draw_loop(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    start = draw(st.integers(0, len(env) - 1))
    turns = draw(st.integers(0, 3))
    inner = [*env, env[start]]  # the state is the last value that the body sees
    return [
        _add(env, "loop", (start, turns, _block(draw, n, inner, depth, env[start])), env[start])
    ]


_DRAW = {
    "constant": _draw_constant,
    "rank": _draw_rank,
    "call": _draw_call,
    "dynamic": _draw_dynamic,
    "shuffle": _draw_shuffle,
    "pull": _draw_pull,
    "converge": _draw_converge,
    "cond": _draw_cond,
    "loop": _draw_loop,
}


# -- as a program of mplang


def build(program: Program) -> Any:
    """Return the function to trace."""

    def random_program() -> Any:
        return _build_block(program.block, [])

    return random_program


def _build_block(block: Block, env: list[Any]) -> Any:
    inner = list(env)
    for statement in block.statements:
        inner.append(_BUILD[statement.what](statement, inner))
    return inner[block.result]


def _build_call(s: Statement, env: list[Any]) -> Any:
    op, i, j, rmask = s.detail
    pfunc, args, _ = FEOPS[op](env[i], env[j])
    return mp.peval(pfunc, args, rmask)[0]


def _build_pull(s: Statement, env: list[Any]) -> Any:
    i, out, sources = s.detail
    index = mp.pconv([mp.constant(frm, parties=to) for to, frm in zip(out, sources, strict=True)])
    return mp.pshfl(env[i], index)


def _build_cond(s: Statement, env: list[Any]) -> Any:
    left, right, then, other = s.detail
    pred = mp.invoke(toy.less, mp.constant(left), mp.constant(right))
    return mp.uniform_cond(pred, lambda: _build_block(then, env), lambda: _build_block(other, env))


def _build_loop(s: Statement, env: list[Any]) -> Any:
    start, turns, body = s.detail
    limit, one = mp.constant(turns), mp.constant(1)

    def step(state: Any) -> Any:
        i, x = state
        return mp.invoke(toy.add, i, one), _build_block(body, [*env, x])

    below = lambda state: mp.invoke(toy.less, state[0], limit)  # noqa: E731
    return mp.while_loop(below, step, (mp.constant(0), env[start]))[1]


_BUILD = {
    "constant": lambda s, env: mp.constant(s.detail, parties=s.kind.mask),
    "rank": lambda s, env: mp.simp.pcall_static(s.detail, toy.rank),
    "call": _build_call,
    "dynamic": lambda s, env: mp.simp.pcall_dynamic(
        FEOPS[s.detail[0]], env[s.detail[1]], env[s.detail[2]]
    ),
    "shuffle": lambda s, env: mp.pshfl_s(env[s.detail[0]], s.detail[1], s.detail[2]),
    "pull": _build_pull,
    "converge": lambda s, env: mp.pconv([env[i] for i in s.detail]),
    "cond": _build_cond,
    "loop": _build_loop,
}


# -- directly


def directly(program: Program) -> list[Any]:
    """Evaluate with NumPy; one entry per party."""
    return _eval_block(program.block, [], program.parties)


def _eval_block(block: Block, env: list[list[Any]], n: int) -> list[Any]:
    inner = list(env)
    for statement in block.statements:
        inner.append(_eval(statement, inner, n))
    return inner[block.result]


def _eval(s: Statement, env: list[list[Any]], n: int) -> list[Any]:
    match s.what, s.detail:
        case "constant", value:
            return [value if r in s.kind.mask else None for r in range(n)]
        case "rank", mask:
            return [np.asarray(r) if r in mask else None for r in range(n)]
        case ("call", (op, i, j, _)) | ("dynamic", (op, i, j)):
            rmask = s.kind.mask
            return [
                None
                if a is None or b is None or (rmask is not None and r not in rmask)
                else NUMPY[op](a, b)
                for r, (a, b) in enumerate(zip(env[i], env[j], strict=True))
            ]
        case (("shuffle" | "pull"), (i, out, sources)):
            frm = dict(zip(out, sources, strict=True))
            return [env[i][frm[r]] if r in frm else None for r in range(n)]
        case "converge", disjoint:
            return [
                next((env[i][r] for i in disjoint if env[i][r] is not None), None) for r in range(n)
            ]
        case "cond", (left, right, then, other):
            return _eval_block(then if left < right else other, env, n)
        case "loop", (start, turns, body):
            state = env[start]
            for _ in range(turns):
                state = _eval_block(body, [*env, state], n)
            return state
    raise AssertionError(s.what)
