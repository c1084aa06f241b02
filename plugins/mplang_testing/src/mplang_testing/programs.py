"""Multi-party programs as data: run by mplang, or directly by NumPy, which tells what is right.

A program is a block: a list of statements over an environment that grows by one value per
statement. Inner blocks see the values around them. A value has a shape and a mask, ``None``
where it is known only at run time; directly evaluated it is a list with one entry per party.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mplang_core import (
    Mask,
    constant,
    invoke,
    pconv,
    peval,
    pshfl,
    pshfl_s,
    simp,
    uniform_cond,
    while_loop,
)
from mplang_testing import dialect

SHAPES: list[tuple[int, ...]] = [(), (3,)]
FEOPS = {"add": dialect.add, "mul": dialect.mul}
NUMPY: dict[str, Callable[[Any, Any], Any]] = {"add": np.add, "mul": np.multiply}


@dataclass(frozen=True)
class Kind:
    """A value's shape and mask."""

    shape: tuple[int, ...]
    mask: Mask | None


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


# -- as a program of mplang


def build(program: Program, inputs: Sequence[int] = ()) -> Callable[..., Any]:
    """Return the function that ``mp.evaluate`` traces.

    Args:
        program: the program.
        inputs: the positions of the constants of its block that are arguments instead.
    """

    def random_program(*given: Any) -> Any:
        taken = dict(zip(inputs, given, strict=True))
        env: list[Any] = []
        for i, statement in enumerate(program.block.statements):
            env.append(taken[i] if i in taken else _BUILD[statement.what](statement, env))
        return env[program.block.result]

    return random_program


def _build_block(block: Block, env: list[Any]) -> Any:
    inner = list(env)
    for statement in block.statements:
        inner.append(_BUILD[statement.what](statement, inner))
    return inner[block.result]


def _build_call(s: Statement, env: list[Any]) -> Any:
    op, i, j, rmask = s.detail
    pfunc, args, _ = FEOPS[op](env[i], env[j])
    return peval(pfunc, args, rmask)[0]


def _build_pull(s: Statement, env: list[Any]) -> Any:
    i, out, sources = s.detail
    index = pconv([constant(frm, parties=to) for to, frm in zip(out, sources, strict=True)])
    return pshfl(env[i], index)


def _build_cond(s: Statement, env: list[Any]) -> Any:
    left, right, then, other = s.detail
    pred = invoke(dialect.less, constant(left), constant(right))
    return uniform_cond(pred, lambda: _build_block(then, env), lambda: _build_block(other, env))


def _build_loop(s: Statement, env: list[Any]) -> Any:
    start, turns, body = s.detail
    limit, one = constant(turns), constant(1)

    def step(state: Any) -> Any:
        i, x = state
        return invoke(dialect.add, i, one), _build_block(body, [*env, x])

    below = lambda state: invoke(dialect.less, state[0], limit)  # noqa: E731
    return while_loop(below, step, (constant(0), env[start]))[1]


_BUILD: dict[str, Callable[[Statement, list[Any]], Any]] = {
    "constant": lambda s, env: constant(s.detail, parties=s.kind.mask),
    "rank": lambda s, env: simp.pcall_static(s.detail, dialect.rank),
    "call": _build_call,
    "dynamic": lambda s, env: simp.pcall_dynamic(
        FEOPS[s.detail[0]], env[s.detail[1]], env[s.detail[2]]
    ),
    "shuffle": lambda s, env: pshfl_s(env[s.detail[0]], s.detail[1], s.detail[2]),
    "pull": _build_pull,
    "converge": lambda s, env: pconv([env[i] for i in s.detail]),
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
            return [value if r in (s.kind.mask or ()) else None for r in range(n)]
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
