"""Hypothesis strategies: masks, types, tensors, nests, and whole programs."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from mplang_core import (
    BaseType,
    ClusterSpec,
    DType,
    Mask,
    MPType,
    Program as Traced,
    TableType,
    TensorType,
    TraceContext,
    trace,
)
from mplang_testing.programs import FEOPS, SHAPES, Block, Kind, Program, Statement, build

dtypes_here = [d for d in DType if d is not DType.BF16 or find_spec("ml_dtypes") is not None]
"""The element types that NumPy has here; bfloat16 needs the package ``ml_dtypes``."""

names = st.text(max_size=8) | st.text(alphabet='"\\\n\t/%@{}[]<>,=:é€😀\x00\x7f', max_size=8)
"""Strings, those that a parser might stumble over among them."""


def masks(parties: int = 80, *, within: Mask | None = None) -> st.SearchStrategy[Mask]:
    """Masks of some of a number of parties, or of those within a mask; none empty then."""
    if within is None:
        return st.builds(Mask, st.integers(0, 2**parties - 1))
    ranks = st.lists(st.sampled_from(list(within)), min_size=1, unique=True)
    return ranks.map(Mask.from_ranks)


def tensor_types(
    dtypes: st.SearchStrategy[DType] | None = None, max_side: int = 4
) -> st.SearchStrategy[TensorType]:
    """Types of tensors of up to three dimensions."""
    elements = st.sampled_from(dtypes_here) if dtypes is None else dtypes
    return st.builds(TensorType, elements, st.lists(st.integers(0, max_side), max_size=3))


def table_types() -> st.SearchStrategy[TableType]:
    """Types of tables with up to four columns."""
    columns = st.lists(st.tuples(names, names), max_size=4, unique_by=lambda column: column[0])
    return st.builds(TableType, columns.map(tuple))


def base_types() -> st.SearchStrategy[BaseType]:
    """The core's base types."""
    return tensor_types() | table_types()


def mp_types() -> st.SearchStrategy[MPType]:
    """Base types with masks, or with none that is known."""
    return st.builds(MPType, base_types(), masks() | st.none())


def tensors_of(kind: TensorType) -> st.SearchStrategy[Any]:
    """Arrays of one type.

    Example:
        >>> from hypothesis import HealthCheck, given, settings
        >>> @settings(suppress_health_check=[HealthCheck.too_slow])
        ... @given(tensors_of(TensorType("f32", (2, 3))))
        ... def check(array):
        ...     assert array.shape == (2, 3)
        >>> check()
    """
    if kind.dtype is DType.BF16:
        floats = st.lists(st.floats(width=16), min_size=kind.size, max_size=kind.size)
        return floats.map(lambda items: np.array(items, kind.dtype.numpy).reshape(kind.shape))
    return arrays_of.arrays(kind.dtype.numpy, kind.shape)


def arrays(dtypes: st.SearchStrategy[DType] | None = None) -> st.SearchStrategy[Any]:
    """Arrays of any type that a tensor has."""
    return tensor_types(dtypes).flatmap(tensors_of)


def trees(leaves: st.SearchStrategy[Any], max_leaves: int = 8) -> st.SearchStrategy[Any]:
    """Nests of tuples, lists and dicts."""
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=max_leaves,
    )


# -- programs


@st.composite
def programs(draw: st.DrawFn, max_parties: int = 5) -> Program:
    """Whole programs, of one to so many parties: see :mod:`mplang_testing.programs`."""
    n = draw(st.integers(1, max_parties))
    env: list[Kind] = []
    statements = [_constant(draw, n, env, (), Mask.all(n))]
    statements += _statements(draw, n, env, depth=2)
    return Program(n, Block(statements, draw(st.integers(0, len(env) - 1))))


@st.composite
def traced_programs(draw: st.DrawFn, max_parties: int = 5) -> Traced:
    """Whole programs as the tracer makes them, with inputs and without.

    Example:
        >>> from hypothesis import HealthCheck, given, settings
        >>> @settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
        ... @given(traced_programs())
        ... def they_give_one_value(program):
        ...     assert len(program.graph.outputs) == 1
        >>> they_give_one_value()
    """
    drawn = draw(programs(max_parties))
    statements = drawn.block.statements
    constants = [i for i, each in enumerate(statements) if each.what == "constant"]
    inputs = draw(st.lists(st.sampled_from(constants), unique=True))
    kinds = [MPType(TensorType.of(statements[i].detail), statements[i].kind.mask) for i in inputs]
    ctx = TraceContext(ClusterSpec.simple(drawn.parties))
    return trace(ctx, build(drawn, inputs), *kinds).program


def _mask(draw: st.DrawFn, within: Mask) -> Mask:
    return draw(masks(within=within))


def _add(env: list[Kind], what: str, detail: Any, kind: Kind) -> Statement:
    env.append(kind)
    return Statement(what, detail, kind)


def _constant(draw: st.DrawFn, n: int, env: list[Kind], shape: Any, mask: Mask) -> Statement:
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
    return [_constant(draw, n, env, shape, _mask(draw, Mask.all(n)))]


def _draw_rank(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    mask = _mask(draw, Mask.all(n))
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


def _known(draw: st.DrawFn, env: list[Kind]) -> tuple[int, Mask]:
    i = draw(st.sampled_from([i for i, kind in enumerate(env) if kind.mask is not None]))
    mask = env[i].mask
    assert mask is not None
    return i, mask


def _draw_shuffle(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    i, holders = _known(draw, env)
    out = _mask(draw, Mask.all(n))
    sources = [draw(st.sampled_from(list(holders))) for _ in out]
    return [_add(env, "shuffle", (i, out, sources), Kind(env[i].shape, out))]


def _draw_pull(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    i, holders = _known(draw, env)
    out = _mask(draw, Mask.all(n))
    sources = [draw(st.sampled_from(list(holders))) for _ in out]
    return [_add(env, "pull", (i, out, sources), Kind(env[i].shape, out))]


def _draw_converge(draw: st.DrawFn, n: int, env: list[Kind], depth: int) -> list[Statement]:
    disjoint: list[int] = []
    union = Mask()
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


_DRAW: dict[str, Callable[[st.DrawFn, int, list[Kind], int], list[Statement]]] = {
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
