"""Op ``simp.constant``: a literal at some parties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mplang_core.ir import AnyType, Attr, Operation
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.interfaces import PublicLiteral
from mplang_core.simp.ops.common import NamedWithoutDialect, check_parties, declare
from mplang_core.types import MPType, TensorType


class _Constant(PublicLiteral, NamedWithoutDialect):
    def literal(self, op: Operation) -> np.ndarray[Any, Any]:
        value: np.ndarray[Any, Any] = op.attrs["value"]
        return value


@declare(
    "simp.constant",
    _Constant(),
    {"value": Attr(np.ndarray, doc="the tensor"), "parties": Attr(Mask, doc="who holds it")},
)
def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    """A literal, held by the parties that are named; all that get the program can read it."""
    check_parties(op.attrs["parties"], world)
    return [MPType(TensorType.of(op.attrs["value"]), op.attrs["parties"])]


@kernel("simp.constant")
def constant(ctx: KernelContext, *, value: np.ndarray[Any, Any], parties: Mask) -> Any:
    """Return the literal if this party holds it."""
    return value if ctx.interpreter.rank in parties else None
