"""Literals among arguments, and constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mplang_core.edsl.context import MPContext, MPObject, find_ctx, with_ctx
from mplang_core.errors import LiteralWarning, TraceError
from mplang_core.feop import flatten, unflatten
from mplang_core.feop.program import PyTreeDef
from mplang_core.ir import Location
from mplang_core.ir.source_line import at, caller, trace_errors, warn
from mplang_core.mask import Mask
from mplang_core.types import TensorType, array_of, check_whole

MAX_LITERAL = 64  # elements; a larger literal looks like data
_warned: set[Location] = set()  # lines, each of which is warned of once


def constant(*args: Any, parties: Mask | int | Sequence[int] | None = None) -> MPObject:
    """Return a multi-party value for a literal.

    A literal in a traced function is public: all parties of the program can read it, whoever
    the holders are.

    Args:
        *args: the literal: a number, an array or a list of numbers. A context may precede it;
            the current one by default.
        parties: the holders, a mask or ranks; all parties by default.

    Returns:
        A value of the literal's shape and dtype (Python floats are f64, ints i64), held by
        the parties.

    Raises:
        TraceError: the literal is not a tensor.

    Example:
        >>> import mplang_core as mp
        >>> with mp.with_ctx(mp.TraceContext(mp.ClusterSpec.simple(2))):
        ...     mp.constant([1.0, 2.0], parties=0)
        <f64[2] at {0}>
    """
    ctx = args[0] if args and isinstance(args[0], MPContext) else None
    if len(args) != 1 + (ctx is not None):
        raise TraceError(f"{at()}constant takes one literal, got {len(args)} arguments")
    literal = args[-1]
    if isinstance(literal, MPObject):
        return literal
    target = find_ctx() if ctx is None else ctx
    while target.is_local and target.parent is not None:
        target = target.parent  # the body of a pcall captures it
    with trace_errors("it is not a literal"):
        value = target.read_literal(literal)
    mask = target.mask if parties is None else read_mask(parties)
    return target.place(target.literal(value, mask), None, uniform=True)


class _Public(np.ndarray[Any, Any]):
    """Array that is meant to be public."""


def public(x: Any) -> Any:
    """Return literals that are meant to be public: known to all parties of the program.

    An array of more than 64 elements that is an argument of :func:`mplang_core.evaluate`, or that
    a function puts, may be data that was meant to be private, so it shows a
    :class:`mplang_core.errors.LiteralWarning`. This says that it is not.

    Args:
        x: a nest of numbers and arrays.

    Returns:
        The same nest; its arrays behave as before.

    Raises:
        TraceError: a leaf is a value of a program.

    Example:
        >>> import numpy as np
        >>> import mplang_core as mp
        >>> grid = mp.public(np.linspace(0.0, 1.0, 101))
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     found = mp.evaluate(sim, lambda x: x, grid)  # no warning
        >>> print(found.type)
        f64[101]@{0, 1}
    """
    leaves, spec = read_args((x,), {})
    if any(isinstance(leaf, MPObject) for leaf in leaves):
        raise TraceError(f"{at()}public takes literals; mp.reveal discloses a value to all parties")
    with trace_errors("public takes numbers and arrays"):
        made = [array_of(leaf).view(_Public) if hasattr(leaf, "shape") else leaf for leaf in leaves]
    return unflatten(spec, made)[0][0]


def warn_of_data(literal: Any, advice: str) -> None:
    """Warn of a literal that is large enough to be data, once per line of the user."""
    line = caller()
    if isinstance(literal, _Public) or line is None or line in _warned:
        return
    if is_literal(literal) and np.size(literal) > MAX_LITERAL:
        warn(advice, LiteralWarning, line)
        _warned.add(line)  # not if a filter makes it an error, which is raised each time


def read_mask(parties: Any) -> Mask:
    """Return the mask of a user's argument.

    Raises:
        TraceError: it is not a mask, a rank, or a list of ranks.
    """
    with trace_errors(f"parties are a Mask, a rank or several ranks, got {parties!r}"):
        return Mask.of(parties)


def lift_literals(ctx: MPContext, tree: Any, parties: Mask | None) -> Any:
    """Return a nest with its arrays as constants. Numbers stay and are compiled in."""
    leaves, spec = read_args(tree, {})
    with with_ctx(ctx):
        lifted = [
            constant(leaf, parties=parties) if is_literal(leaf) and hasattr(leaf, "shape") else leaf
            for leaf in leaves
        ]
    return unflatten(spec, lifted)[0]


def read_args(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], PyTreeDef]:
    """Flatten arguments; a list of plain numbers is one leaf, an array.

    Args:
        args: positional arguments, nests of values and literals.
        kwargs: keyword arguments.

    Returns:
        The leaves, and the structure of ``(args, kwargs)`` for :func:`unflatten`.

    Raises:
        TraceError: a list of numbers is ragged.

    Example:
        >>> leaves, _ = read_args(([1.0, 2.0], "mean"), {"axis": 0})
        >>> leaves
        [array([1., 2.]), 'mean', 0]
    """
    leaves, spec = flatten((tuple(args), dict(kwargs)), _is_number_list)
    with trace_errors("a list of numbers is an array, but this is not one"):
        return [array_of(leaf) if isinstance(leaf, list) else leaf for leaf in leaves], spec


def _is_number_list(x: Any) -> bool:
    here = [i for i in x if i is not None] if isinstance(x, list) else []  # with gaps it is refused
    if not here:
        return False
    return all(isinstance(i, bool | int | float | complex) or _is_number_list(i) for i in here)


def is_literal(leaf: Any) -> bool:
    """Return whether a leaf is a number or an array, known to all parties."""
    return isinstance(leaf, bool | int | float | complex) or (
        hasattr(leaf, "__array__") and hasattr(leaf, "dtype") and not isinstance(leaf, MPObject)
    )


def literal_type(leaf: Any) -> TensorType:
    """Return the type of a literal.

    Raises:
        TraceError: it is not a tensor.
    """
    with trace_errors("a literal is not a tensor"):
        check_whole(leaf)
        return TensorType.of(leaf)
