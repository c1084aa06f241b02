"""Op ``simp.keep``: a value that stays at its parties for the session's next programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from mplang_core.edsl import MPObject
from mplang_core.feop import flatten, unflatten
from mplang_core.ir import AnyType, Graph, Operation, interface_of
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.interfaces import Call, control_of
from mplang_core.simp.ops.common import StaysInPlace, context_of, declare, operand_types

T = TypeVar("T")


def keep(x: T) -> T:
    """Return values that stay at their parties for the session's next programs.

    A program returns them as it does results, but they are none: they are not fetched, and disclose
    nothing to the host. What they are made of is remembered with them, so that the next program's
    disclosure names it.

    Args:
        x: a value, or a nest of values.

    Returns:
        The same nest, of the same types, masks and devices.

    Raises:
        TraceError: a leaf is not a multi-party value.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     total = mp.evaluate(sim, lambda: mp.keep(mp.put("P0", 3)))
        ...     more = mp.evaluate(sim, lambda x: mp.reveal(mp.seal(x) + mp.seal(x)), total)
        ...     mp.fetch(sim, more)
        [array(6), array(6)]
    """
    leaves, struct = flatten(x)
    kept: T = unflatten(struct, [_keep(leaf) for leaf in leaves])
    return kept


def _keep(x: MPObject) -> MPObject:
    ctx = context_of(x)
    (kept,) = ctx.emit("simp.keep", [x])
    return ctx.place(kept, x.device, uniform=x.uniform)


def kept_outputs(graph: Graph) -> set[int]:
    """Return the positions of the outputs of a program's graph that are kept, and no results."""
    made = {value: (op, i) for op in graph.ops for i, value in enumerate(op.outputs)}
    return {i for i, v in enumerate(graph.outputs) if v in made and _is_kept(*made[v])}


def _is_kept(op: Operation, output: int) -> bool:
    control = control_of(op)
    if isinstance(control, Call):
        return output in kept_outputs(op.regions[control.region])
    return interface_of(op, _Keep) is not None


class _Keep(StaysInPlace):
    """What is given stays, and is not a result."""


@declare("simp.keep", _Keep(), total=True)
def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    """Gives a value as it is; a program that returns it keeps it for the next program."""
    (kind,) = operand_types(op)
    return [kind]


@kernel("simp.keep")
def stay(ctx: KernelContext, x: Any) -> Any:
    """Return the value."""
    return x
