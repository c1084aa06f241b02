"""Cache of traced functions: keys from arguments, closures and globals."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any, cast

from mplang_core.edsl.context import MPContext, MPObject
from mplang_core.edsl.literals import is_literal, literal_type, read_args
from mplang_core.edsl.traced_function import TracedFunction
from mplang_core.edsl.tracer import TraceContext, trace
from mplang_core.errors import TraceError
from mplang_core.feop import preferred_here
from mplang_core.feop.free_variables import free_variables
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.types import MPType, is_table, table_advice


def signature(args: Sequence[Any], kwargs: Mapping[str, Any], world: Mask) -> Hashable:
    """Return the cache key of arguments: types, devices and compiled-in literals, no data.

    Args:
        args: the positional arguments.
        kwargs: the keyword arguments.
        world: the parties, which hold all public values.

    Raises:
        TraceError: an argument that is compiled in is mutable.
    """
    leaves, struct = read_args(args, kwargs)
    return struct, tuple(_key(leaf, world) for leaf in leaves), preferred_here.get()


def fits(traced: Hashable, asked: Hashable) -> bool:
    """Return whether what was traced for one key serves another; a type serves each value of it."""
    (struct, kinds, preferred), (other, leaves, now) = cast(Any, traced), cast(Any, asked)
    return (struct, preferred) == (other, now) and all(
        kind in (leaf, leaf[:1]) for kind, leaf in zip(kinds, leaves, strict=True)
    )


def _key(leaf: Any, world: Mask) -> Hashable:
    """Return type, device and uniformity of a value, a type alone, or a literal with its class."""
    if isinstance(leaf, MPType):
        return (leaf,)
    if isinstance(leaf, MPObject):
        return leaf.type, leaf.device.name if leaf.device is not None else None, leaf.uniform
    if is_literal(leaf):
        return MPType(literal_type(leaf), world), None, True
    if is_table(leaf):
        raise TraceError(f"{at()}{table_advice(leaf)}", code="T013")
    try:
        hash(leaf)
    except TypeError:
        raise TraceError(
            f"{at()}a {type(leaf).__name__} among the arguments can change after it was compiled "
            "in; make it hashable (a string, the static field of a dataclass), or pass values",
            code="T005",
        ) from None
    return type(leaf), leaf


def trace_once(
    ctx: TraceContext,
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    of_user: Callable[..., Any] | None = None,
) -> TracedFunction:
    """Return the cached trace of a function in the same program, or trace it.

    A function is traced again for another signature, after one of its free variables was bound to
    another object, or where the catalogue now differs in what it has read. A host traces again what
    reads an array, a list, a dict or an object with attributes, which may have changed. Within a
    program, mutations of such an object are not detected, as with ``jax.jit``.
    Names that the function itself assigns, such as a counter of its calls, are ignored.

    Args:
        ctx: the trace.
        fn: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        of_user: the function whose free variables count, if that is not ``fn``.
    """
    leaves, _ = read_args(args, kwargs)
    of_user = of_user or fn
    if not isinstance(of_user, FunctionType) or not all(map(_is_fixed, leaves)):
        return trace(ctx, fn, *args, **kwargs)
    owner = _cache_owner(ctx)
    kept = owner.traced.setdefault(fn, {})
    key = signature(args, kwargs, ctx.mask), ctx.mask, ctx.is_local
    at_host = not isinstance(owner, TraceContext)
    if key in kept:
        around, entries, known = kept[key]
        same = list(map(id, around)) == list(map(id, free_variables(of_user)))
        same = same and all(entry.is_in(ctx.known_catalogue()) for entry in entries)
        same = same and not (at_host and any(map(_may_change, around)))
        if same and _all_in(known.captures, around, ctx):
            return cast(TracedFunction, known)
    if at_host:  # whose catalogue changes with what programs store
        ctx.entries = []
    tfn = trace(ctx, fn, *args, **kwargs)
    if not (at_host and tfn.captures):  # a host must not keep values alive
        kept[key] = list(free_variables(of_user)), ctx.entries if at_host else [], tfn
    return tfn


def _cache_owner(ctx: MPContext) -> MPContext:
    """Return the owner of the cache: the outermost trace, or a host that runs the function."""
    chain = list(ctx.ancestors())
    at_once = len(chain) == 2 and not isinstance(chain[1], TraceContext)
    return chain[1] if at_once else [c for c in chain if isinstance(c, TraceContext)][-1]


def _may_change(read: object) -> bool:
    """Return whether an object that a function reads may be another one by its contents."""
    if isinstance(read, FunctionType | ModuleType | type) or hasattr(read, "__wrapped__"):
        return False  # functions, those of jax.jit and mp.device included
    return hasattr(read, "__dict__") or not isinstance(read, Hashable)


def _is_fixed(leaf: Any) -> bool:
    return isinstance(leaf, MPObject | str | bytes | enum.Enum) or is_literal(leaf)


def _all_in(captures: Sequence[MPObject], around: Sequence[Any], ctx: MPContext) -> bool:
    """Return whether all captures are bound to free variables and belong to open contexts."""
    named, open_here = {id(item) for item in around}, {id(c) for c in ctx.ancestors()}
    return all(id(obj) in named and id(obj.ctx) in open_here for obj in captures)
