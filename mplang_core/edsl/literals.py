"""Literals: numbers and arrays among arguments, and the values that are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.edsl.context import MPContext, MPObject, find_ctx, with_ctx
from mplang_core.errors import TraceError
from mplang_core.feop import flatten, unflatten
from mplang_core.feop.program import PyTreeDef
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.types import TensorType, array_of


def constant(*args: Any, parties: Mask | int | Sequence[int] | None = None) -> MPObject:
    """Make a value of a literal.

    Args:
        *args: the literal, a number, array or list of numbers; a context may stand before it.
        parties: who holds it; all by default.

    Returns:
        A value of the literal's shape and dtype (Python floats are f64, ints i64), held by
        the parties.

    Raises:
        TraceError: the literal is no tensor.
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
    try:
        value = array_of(literal)
    except TypeError as error:
        raise TraceError(f"{at()}a constant is a number or an array: {error}") from None
    mask = target.mask if parties is None else read_mask(parties)
    return target.place(target.literal(value, mask), None, uniform=True)


def read_mask(parties: Any) -> Mask:
    """Return the mask for what a user wrote.

    Raises:
        TraceError: it is no mask, rank, or list of ranks.
    """
    try:
        return Mask.of(parties)
    except (TypeError, ValueError) as error:
        raise TraceError(
            f"{at()}parties are a Mask, a rank or several ranks, got {parties!r}: {error}"
        ) from None


def lift_literals(ctx: MPContext, tree: Any, parties: Mask | None) -> Any:
    """Make constants of the arrays in a nest. Numbers stay, and are compiled in."""
    leaves, spec = read_args(tree, {})
    with with_ctx(ctx):
        lifted = [
            constant(leaf, parties=parties) if is_literal(leaf) and hasattr(leaf, "shape") else leaf
            for leaf in leaves
        ]
    return unflatten(spec, lifted)[0]


def read_args(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], PyTreeDef]:
    """Flatten arguments; a list of plain numbers is one leaf, an array."""
    leaves, spec = flatten((tuple(args), dict(kwargs)), _is_number_list)
    return [_array(leaf) if isinstance(leaf, list) else leaf for leaf in leaves], spec


def _array(numbers: list[Any]) -> Any:
    try:
        return array_of(numbers)
    except TypeError as error:
        raise TraceError(
            f"{at()}a list of numbers is an array, but this is none: {error}"
        ) from None


def _is_number_list(x: Any) -> bool:
    return (
        isinstance(x, list)
        and bool(x)
        and all(
            isinstance(item, bool | int | float | complex) or _is_number_list(item) for item in x
        )
    )


def is_literal(leaf: Any) -> bool:
    """Tell whether a leaf is a number or an array that is known to all."""
    return isinstance(leaf, bool | int | float | complex) or (
        hasattr(leaf, "__array__") and hasattr(leaf, "dtype") and not isinstance(leaf, MPObject)
    )


def literal_type(leaf: Any) -> TensorType:
    """Return the type of a literal.

    Raises:
        TraceError: it is no tensor.
    """
    try:
        return TensorType.of(leaf)
    except TypeError as error:
        raise TraceError(f"{at()}a literal is no tensor: {error}") from error
