"""Admission rules for custom calls: operands, results and every attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir

from mplang_stablehlo.module import attribute_names

_NUMBERS = (ir.FloatType, ir.ComplexType)


def target_of(op: ir.Operation) -> str | None:
    """Return the target of a custom call; ``None`` for any other op."""
    if op.name != "stablehlo.custom_call":
        return None
    target: str = ir.StringAttr(op.attributes["call_target_name"]).value
    return target


def tensor(shape: Sequence[int], element: str) -> str:
    """Return a tensor type in MLIR's notation.

    Args:
        shape: the dimensions.
        element: the element type.

    Returns:
        The text.

    Example:
        >>> tensor([2, 3], "f32")
        'tensor<2x3xf32>'
    """
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def shape_of(value: ir.Value) -> list[int]:
    """Return the shape of a value.

    Raises:
        ValueError: it is not a tensor of static shape.
    """
    kind = value.type
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        raise ValueError(f"{str(kind)[:100]} is not a tensor of a static shape")
    return list(kind.shape)


def check_types(op: ir.Operation, operands: Sequence[str], results: Sequence[str]) -> None:
    """Check the types of an op.

    Args:
        op: the op.
        operands: the expected types, in MLIR's notation.
        results: likewise.

    Raises:
        ValueError: one differs.
    """
    for what, values, wanted in (
        ("operands", op.operands, operands),
        ("results", op.results, results),
    ):
        found = [str(value.type) for value in values]
        if found != list(wanted):
            raise ValueError(
                f"its {what} are ({', '.join(found)[:300]}), expected ({', '.join(wanted)})"
            )


def check_attributes(op: ir.Operation, wanted: Mapping[str, str]) -> None:
    """Check that an op has exactly these attributes, apart from the name of its target.

    Args:
        op: the custom call.
        wanted: the attributes, in MLIR's notation.

    Raises:
        ValueError: one differs, is missing, or is unknown.
    """
    names = attribute_names(op) - {"call_target_name"}
    found = {name: op.attributes[name] for name in names}
    if found.keys() != wanted.keys():
        raise ValueError(f"its attributes are {sorted(found)}, expected {sorted(wanted)}")
    for name, text in wanted.items():
        if found[name] != ir.Attribute.parse(text, op.context):
            raise ValueError(f"its {name} is {str(found[name])[:200]}, expected {text}")


def _elementwise(op: ir.Operation) -> None:
    check_attributes(op, {"mhlo.attributes": "{}", "mhlo.version": "1 : i64"})
    if len(op.operands) != 1:
        raise ValueError("it takes one operand")
    kind = str(op.operands[0].type)
    if not isinstance(ir.RankedTensorType(op.operands[0].type).element_type, _NUMBERS):
        raise ValueError(f"it takes floats or complex numbers, got {kind}")
    check_types(op, [kind], [kind])


def _topk(op: ir.Operation) -> None:
    if len(op.operands) != 1 or len(op.results) != 2:
        raise ValueError("it takes one operand, and gives two results")
    shape = shape_of(op.operands[0])
    element = str(ir.RankedTensorType(op.operands[0].type).element_type)
    largest = (shape_of(op.results[0]) or [0])[-1]
    if not shape or not 0 <= largest <= shape[-1]:
        raise ValueError(f"it takes {largest} elements out of {shape[-1:]}")
    given = [*shape[:-1], largest]
    check_types(op, [tensor(shape, element)], [tensor(given, element), tensor(given, "i32")])
    check_attributes(op, {"mhlo.attributes": f"{{k = {largest} : i64}}", "mhlo.version": "1 : i64"})


_NAMES = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh")

CUSTOM_CALLS = {f"mhlo.{name}": _elementwise for name in _NAMES} | {"mhlo.topk": _topk}
"""Targets that XLA expands to ops, each with its rule."""
