"""Ops ``simp.pcall_static`` and ``simp.pcall_dynamic``: local computation at parties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mplang_core.edsl import MPContext, MPObject, TraceContext, find_ctx
from mplang_core.edsl.literals import lift_literals, read_mask
from mplang_core.edsl.peval import is_function, mark_uniform, run_program
from mplang_core.edsl.tracer import trace_into
from mplang_core.errors import RunError
from mplang_core.feop import fe_materialize, flatten, unflatten
from mplang_core.ir import AnyType, Attr, Graph, Level, Operation
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.interfaces import ControlFlow, Labels, PartyCall
from mplang_core.simp.ops.common import check_parties, declare, operand_types, single
from mplang_core.simp.ops.regions import check_taken
from mplang_core.types import BaseType, MPType

Parties = Mask | int | Sequence[int]


# -- the user's functions


def pcall_static(parties: Parties, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> MPObject:
    """Run a function at given parties.

    Args:
        parties: the parties, a mask or ranks; each holds all of the args.
        fn: a feop; a Python function of plain values, which an installed frontend compiles;
            or an ``@mp.function``, whose body is traced for one party.
        *args: nests of values and literals.
        **kwargs: attributes of the feop, or literals for the function.

    Returns:
        The result of the function; ``parties`` hold its leaves.

    Raises:
        TraceError: a party does not hold an arg.
        FeCapabilityError: no installed frontend compiles the function.
    """
    mask = read_mask(parties)
    return _pcall("simp.pcall_static", {"parties": mask}, mask, fn, args, kwargs)


def pcall_dynamic(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> MPObject:
    """Run a function at the parties that hold all args at run time.

    Otherwise as :func:`pcall_static`; the mask of the results is known only at run time.
    """
    return _pcall("simp.pcall_dynamic", {}, None, fn, args, kwargs)


def _pcall(
    opcode: str,
    attrs: Mapping[str, Any],
    parties: Mask | None,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> MPObject:
    """Emit a call; for type checkers its result is one value, as that of ``mp.device``."""
    ctx = find_ctx(flatten(args)[0])
    args = lift_literals(ctx, args, parties)
    body = TraceContext(ctx.cluster_spec, ctx, local=True)
    run = fn if is_function(fn) else _compiled(ctx, fn)
    tfn = trace_into(body, run, args, kwargs, literals=False)
    operands = [leaf for leaf in flatten((args, kwargs))[0] if isinstance(leaf, MPObject)]
    outs = ctx.emit(opcode, [*operands, *tfn.captures], attrs, {"do": tfn.program.graph})
    result: MPObject = mark_uniform(ctx, fn, operands, unflatten(tfn.out_struct, outs))
    return result


def _compiled(ctx: MPContext, fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        program = fe_materialize(fn, *args, frontends=ctx.cluster_spec.frontends, **kwargs)
        return run_program(program)

    run.__name__ = getattr(fn, "__name__", type(fn).__name__)
    return run


# -- declarations


def _locals(graph: Graph) -> list[BaseType]:
    return [value.type for value in graph.outputs if isinstance(value.type, BaseType)]


def _check_body(op: Operation) -> None:
    check_taken(op, [found.base for found in operand_types(op)], "the body")


class _Pcall(ControlFlow, Labels):
    def control(self, op: Operation) -> PartyCall:
        return PartyCall("do", op.attrs.get("parties"))

    def label(self, op: Operation) -> str:
        """Return the opcodes of its body."""
        counted = Counter(inner.opcode for inner in op.regions["do"].ops)
        names = (f"{name} ×{n}" if n > 1 else name for name, n in counted.items())
        return ", ".join(names) or "pass"


@declare(
    "simp.pcall_static", _Pcall(), {"parties": Attr(Mask, doc="who runs it")}, {"do": Level.LOCAL}
)
def _infer_static(op: Operation, world: Mask) -> Sequence[AnyType]:
    """Runs a body at the parties that are named; the others hold no result."""
    parties: Mask = op.attrs["parties"]
    check_parties(parties, world)
    _check_body(op)
    for i, found in enumerate(operand_types(op)):
        if found.pmask is not None and not parties <= found.pmask:
            raise ValueError(
                f"the parties {parties - found.pmask} run it, but do not hold operand {i}, "
                f"{found}; move it there first, or choose parties among {found.pmask}"
            )
    return [MPType(kind, parties) for kind in _locals(op.regions["do"])]


@declare("simp.pcall_dynamic", _Pcall(), regions={"do": Level.LOCAL})
def _infer_dynamic(op: Operation, world: Mask) -> Sequence[AnyType]:
    """Runs a body at every party that has all operands when it runs."""
    _check_body(op)
    return [MPType(kind, None) for kind in _locals(op.regions["do"])]


# -- kernels


def _absent(ctx: KernelContext) -> Any:
    return single(ctx, [None] * len(ctx.step.outs))


@kernel("simp.pcall_static")
def run_static(ctx: KernelContext, *args: Any, parties: Mask) -> Any:
    """Run the body if this party is in ``parties``; then it must hold every operand."""
    if ctx.interpreter.rank not in parties:
        return _absent(ctx)
    for i, arg in enumerate(args):
        if arg is None:
            raise RunError(
                f"party {ctx.interpreter.rank} is to run a pcall, but does not hold operand {i}",
                code="R005",
            )
    return single(ctx, ctx.run_region("do", args))


@kernel("simp.pcall_dynamic")
def run_dynamic(ctx: KernelContext, *args: Any) -> Any:
    """Run the body if this party holds every operand."""
    if any(arg is None for arg in args):
        return _absent(ctx)
    return single(ctx, ctx.run_region("do", args))
