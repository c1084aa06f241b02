"""The op ``xp.run``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core import Mask, TensorType
from mplang_core.ext import AnyType, Attr, Effects, KernelContext, OpDef, Operation

from mplang_xp import code


def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    """Return the types that the code promises; the kernel's results are held against them."""
    for i, value in enumerate(op.inputs):
        if not isinstance(value.type, TensorType):
            raise TypeError(f"operand {i} is not a tensor: {value.type}")
    gives = op.attrs["gives"]
    kinds = [kind for kind in gives if isinstance(kind, TensorType)]
    _, outputs = code.read(op.attrs["code"], len(op.inputs))
    if len(kinds) != len(gives) or len(kinds) != len(outputs):
        raise TypeError(f"the code returns {len(outputs)} arrays, and promises {gives}")
    return kinds


RUN = OpDef(
    "xp.run",
    _infer,
    attrs={
        "code": Attr(bytes, doc="calls of functions of the array API standard"),
        "gives": Attr(tuple, doc="the types of the results"),
    },
    doc="Runs functions of the array API standard on NumPy.",
    effects=Effects.NONE,
    reads=(),
)


def run(ctx: KernelContext, *operands: Any, code: bytes, gives: tuple[TensorType, ...]) -> Any:
    """Run the calls, and return a result, or a tuple of several."""
    from mplang_xp.code import read, run

    steps, outputs = read(code, len(operands))
    values = run(steps, operands)
    results = tuple(values[i] for i in outputs)
    return results[0] if len(results) == 1 else results
