"""What is known of signs without knowing data. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir import ir

from mplang_spu.lowering.splats import splat_of

__all__ = ["never_negative"]

_NEVER = {"abs", "exponential", "logistic", "sqrt", "rsqrt"}
_KEEP = {"broadcast_in_dim", "reshape", "slice", "transpose", "reverse", "add", "divide",
         "minimum", "concatenate", "dot_general", "multiply", "sqrt"}  # fmt: skip
_DEPTH = 20


def never_negative(value: ir.Value, depth: int = _DEPTH) -> bool:
    """Tell whether a value is zero or more for all data; ``False`` where it is not seen."""
    number = splat_of(value)
    if number is not None:
        return bool(number >= 0)
    op = value.owner
    if not isinstance(op, ir.Operation) or depth == 0:
        return False
    name, operands = op.name.removeprefix("stablehlo."), list(op.operands)
    if name in _NEVER or (name == "multiply" and operands[0] == operands[1]):
        return True
    if name == "maximum":
        return any(never_negative(operand, depth - 1) for operand in operands)
    if name == "select":
        operands = operands[1:]
    elif name == "reduce":
        body = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
        if body[0] not in ("stablehlo.add", "stablehlo.maximum") or len(body) != 2:
            return False
    elif name not in _KEEP:
        return False
    return all(never_negative(operand, depth - 1) for operand in operands)
