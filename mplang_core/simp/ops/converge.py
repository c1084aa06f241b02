"""Op ``simp.converge``: union of values that different parties hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.edsl import MPObject
from mplang_core.errors import RunError, TraceError
from mplang_core.ir import AnyType, Operation
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.ops.common import StaysInPlace, context_of, declare, list_types, operand_types
from mplang_core.types import MPType


def pconv(vars: Sequence[MPObject]) -> MPObject:
    """Return the union of values of one type that different parties hold.

    Args:
        vars: the values, of one base type, with disjoint masks.

    Returns:
        A value of that base type, held by all of their holders.

    Raises:
        TraceError: the masks overlap, or the types differ.
        RunError: masks that are known only at run time overlap (when the program runs).

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     return mp.pconv([mp.constant(1, parties=0), mp.constant(2, parties=1)])
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        [array(1), array(2)]
    """
    if isinstance(vars, MPObject) or not isinstance(vars, Sequence):
        raise TraceError(f"{at()}pconv takes a list of values, got {vars!r}")
    return context_of(*vars).emit("simp.converge", list(vars))[0]


@declare("simp.converge", StaysInPlace(), total=True)
def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    """Joins values of one type that are held by different parties."""
    types = operand_types(op)
    if not types:
        raise TypeError("converge takes at least one operand")
    for i, found in enumerate(types):
        if found.base != types[0].base:
            raise TypeError(f"operand {i} is {found}, operand 0 is {types[0]}: one type expected")
    union, known = Mask(), True
    for found in types:
        if found.pmask is None:
            known = False
        elif found.pmask & union:
            raise ValueError(
                f"the masks overlap in {found.pmask & union}: {list_types(types[:20])}; "
                "each party holds one of the values at most"
            )
        else:
            union |= found.pmask
    return [MPType(types[0].base, union if known else None)]


@kernel("simp.converge")
def converge(ctx: KernelContext, *args: Any) -> Any:
    """Return the operand that this party holds, ``None`` if it holds none."""
    here = [arg for arg in args if arg is not None]
    if len(here) > 1:
        raise RunError(
            f"party {ctx.interpreter.rank} holds {len(here)} of the values to converge; "
            "their masks overlap",
            code="R005",
        )
    return here[0] if here else None
