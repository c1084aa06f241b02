"""Party-level programming: who runs what, and what moves where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mplang_core.edsl.context import MPContext, MPObject, find_ctx
from mplang_core.edsl.peval import (
    is_function,
    lift_literals,
    mark_uniform,
    read_mask,
    run_program,
)
from mplang_core.edsl.tracer import TraceContext, trace_into
from mplang_core.errors import TraceError
from mplang_core.feop.program import flatten, unflatten
from mplang_core.feop.routing import fe_materialize
from mplang_core.ir.source import at
from mplang_core.mask import Mask

__all__ = ["pcall_dynamic", "pcall_static", "pconv", "pshfl", "pshfl_s"]

Parties = Mask | int | Sequence[int]


def pcall_static(parties: Parties, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a function at the parties that are named.

    Args:
        parties: who runs it; each holds all of the args.
        fn: a feop; a Python function of plain values, which an installed frontend compiles;
            or an ``@mp.function``, whose body is traced for one party.
        *args: nests of values and literals.
        **kwargs: attributes of the feop, or literals for the function.

    Returns:
        What the function returns; the leaves are held by ``parties``.

    Raises:
        TraceError: a party does not hold an arg.
        FeCapabilityError: no frontend here compiles the function.
    """
    mask = read_mask(parties)
    return _pcall("simp.pcall_static", {"parties": mask}, mask, fn, args, kwargs)


def pcall_dynamic(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a function at every party that has all of the args when it runs.

    See :func:`pcall_static`; the mask of the results is known at run time only.
    """
    return _pcall("simp.pcall_dynamic", {}, None, fn, args, kwargs)


def _pcall(
    opcode: str,
    attrs: Mapping[str, Any],
    parties: Mask | None,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    ctx = find_ctx(flatten(args)[0])
    args = lift_literals(ctx, args, parties)
    body = TraceContext(ctx.cluster_spec, ctx, local=True)
    run = fn if is_function(fn) else _compiled(fn)
    tfn = trace_into(body, run, args, kwargs, literals=False)
    operands = [leaf for leaf in flatten((args, kwargs))[0] if isinstance(leaf, MPObject)]
    outs = ctx.emit(opcode, [*operands, *tfn.captures], attrs, {"do": tfn.program.graph})
    return mark_uniform(ctx, fn, operands, unflatten(tfn.out_struct, outs))


def _compiled(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        program = fe_materialize(fn, *args, **kwargs)
        return run_program(program)

    run.__name__ = getattr(fn, "__name__", type(fn).__name__)
    return run


def pshfl(src: MPObject, index: MPObject) -> MPObject:
    """Move a value: each party that has an index pulls from the rank that it names.

    ::

               P0   P1   P2
        src:   x0   -    x2
        index: -    0    -
        out:   -    x0   -

    Only the party that is pulled from learns of the index.

    Args:
        src: the value.
        index: an integer scalar.

    Returns:
        A value of the type of ``src``, held by those that have an index.

    Raises:
        TraceError: the index is no integer scalar.
        RunError: a party pulls from one that does not hold the value (when it runs).
    """
    return _ctx(src, index).emit("simp.shuffle_dynamic", [src, index])[0]


def pshfl_s(src: MPObject, pmask: Parties, src_ranks: Sequence[int]) -> MPObject:
    """Move a value along ways that are known beforehand.

    ::

              P0   P1   P2
        src:  x0   x1   x2      pmask = {0, 1, 2}, src_ranks = [2, 0, 1]
        out:  x2   x0   x1

    Args:
        src: the value.
        pmask: who receives.
        src_ranks: from whom, for each receiver in the order of ranks.

    Returns:
        A value of the type of ``src``, held by ``pmask``.

    Raises:
        TraceError: a source does not hold the value.
    """
    mask = read_mask(pmask)
    if isinstance(src_ranks, int):
        src_ranks = [src_ranks]
    if len(mask) != len(src_ranks):
        raise TraceError(
            f"{at()}pshfl_s names one source per receiver: {len(mask)} receivers {mask}, "
            f"{len(src_ranks)} sources {list(src_ranks)}"
        )
    ctx, routing = _ctx(src), tuple(zip(mask, src_ranks, strict=True))
    (moved,) = ctx.emit("simp.shuffle_static", [src], {"routing": routing})
    return ctx.place(moved, None, uniform=len(set(src_ranks)) == 1)


def pconv(vars: Sequence[MPObject]) -> MPObject:
    """Join values of one type that are held by different parties.

    Args:
        vars: the values; their masks do not overlap.

    Returns:
        A value that is held by all of their holders.

    Raises:
        TraceError: the masks overlap, or the types differ.
        RunError: masks that are known only at run time overlap (when it runs).
    """
    if isinstance(vars, MPObject) or not isinstance(vars, Sequence):
        raise TraceError(f"{at()}pconv takes a list of values, got {vars!r}")
    return _ctx(*vars).emit("simp.converge", list(vars))[0]


def _ctx(*args: Any) -> MPContext:
    for arg in args:
        if not isinstance(arg, MPObject):
            raise TraceError(f"{at()}expected a multi-party value, got a {type(arg).__name__}")
    return find_ctx(args)
