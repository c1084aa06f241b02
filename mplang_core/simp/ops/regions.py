"""Helpers of control flow: agreement on predicates, tracing of regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import optree

from mplang_core.edsl import MPContext, MPObject, TraceContext, TracedFunction, constant
from mplang_core.edsl.literals import is_literal, read_args
from mplang_core.errors import RunError, TraceError
from mplang_core.feop import unflatten
from mplang_core.feop.program import PyTreeDef
from mplang_core.ir import AnyType, Attr, Operation
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext
from mplang_core.simp.ops.common import list_types
from mplang_core.types import DType, Form, MPType, TensorType

DISAGREE = "the parties disagree on a predicate"
VERIFY = Attr(bool, True, "whether the parties compare their predicates")


# -- tracing


def scope_of(ctx: MPContext) -> TraceContext:
    """Return the context that regions are traced in."""
    return ctx if isinstance(ctx, TraceContext) else TraceContext(ctx.cluster_spec, ctx)


def on_devices(
    ctx: MPContext, outs: Sequence[MPObject], tfn: TracedFunction, uniform: Sequence[bool]
) -> Any:
    """Return results with the structure and the devices of a traced function's results."""
    marks = zip(outs, tfn.out_devices, uniform, strict=True)
    return unflatten(tfn.out_struct, [ctx.place(*mark) for mark in marks])


def lift(ctx: MPContext, tree: Any) -> Any:
    """Return a nest of values and numbers with constants in place of the numbers.

    Raises:
        TraceError: a leaf is neither a value nor a number.
    """
    leaves, spec = read_args((tree,), {})
    lifted = [constant(ctx, leaf) if is_literal(leaf) else leaf for leaf in leaves]
    for leaf in lifted:
        if not isinstance(leaf, MPObject):
            raise TraceError(
                f"{at()}control flow carries multi-party values and numbers, got a "
                f"{type(leaf).__name__}; use it from around instead",
                code="T009",
            )
    ((lifted_tree,), _) = unflatten(spec, [ctx.adopt(leaf) for leaf in lifted])
    return lifted_tree


def union(first: Sequence[MPObject], second: Sequence[MPObject]) -> list[MPObject]:
    """Return the union of two lists of values."""
    return list({id(obj): obj for obj in (*first, *second)}.values())


Place: TypeAlias = tuple[AnyType, Any]
"""The type and the device of a value."""


def places_of(tfn: TracedFunction) -> list[Place]:
    """Return the type and the device of each result of a traced function."""
    return [(out.type, device) for out, device in zip(tfn.out_vars, tfn.out_devices, strict=True)]


def differing(
    name: str, struct: PyTreeDef, one: Sequence[Place], other: Sequence[Place]
) -> Iterator[tuple[str, str, str]]:
    """Yield where two nests differ in types or devices: the path, and what each has there."""
    for path, a, b in zip(optree.treespec_accessors(struct), one, other, strict=True):
        if a != b:
            yield path.codify(name), _describe(*a), _describe(*b)


def _describe(type: AnyType, device: Any) -> str:
    return f"{type}" + (f" on {device.name}" if device is not None else "")


# -- type inference


def check_predicate(pred: AnyType, world: Mask) -> None:
    """Check that a type is a plain bool scalar held by all parties.

    Raises:
        TypeError: it is another base type, or protected.
        ValueError: not all parties hold it.
    """
    if isinstance(pred, MPType) and pred.base.form is not Form.PLAIN:
        raise TypeError(
            "the predicate is secret, so no party can choose a branch; if it may be public, "
            "mp.reveal it"
        )
    if not isinstance(pred, MPType) or pred.base != TensorType(DType.BOOL):
        raise TypeError(f"a predicate is a bool scalar, got {pred}")
    if pred.pmask is not None and pred.pmask != world:
        raise ValueError(
            f"the predicate is held by {pred.pmask}, but {world} take the branch together; "
            "reveal it to all of them first"
        )


def check_taken(op: Operation, operands: Sequence[AnyType], what: str = "region") -> None:
    """Check the parameters of all regions of an op.

    Args:
        op: the op.
        operands: the expected types of the parameters.
        what: the name of a region in messages.

    Raises:
        TypeError: a region has other parameters.
    """
    for name, region in op.regions.items():
        taken = [value.type for value in region.inputs]
        if taken != operands:
            raise TypeError(
                f"{what} {name!r} takes ({list_types(taken)}), got ({list_types(operands)})"
            )


# -- kernels


def agreed(ctx: KernelContext, pred: Any, turn: int, verify: bool) -> bool:
    """Return the predicate after all parties compared theirs; messages must not disclose it."""
    me, mine = ctx.interpreter.rank, None if pred is None else bool(pred)
    if verify:
        differing = ctx.interpreter.communicator.compare(f"{ctx.key}={turn}", mine)
        if mine is not None and differing:
            raise RunError(
                f"{DISAGREE}: party {me} and {differing} "
                "do not have the same; make it uniform, for example by mp.reveal",
                code="R005",
            )
    if mine is None:
        raise RunError(f"party {me} does not hold the predicate that all parties need", code="R005")
    return mine
