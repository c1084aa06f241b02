"""Admission rules for single ops, beyond MLIR's verifiers: inputs that crash XLA or SPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mplang_stablehlo.comparator import check_comparator
from mplang_stablehlo.module import number_columns

MAX_WINDOW = 1 << 20
MAX_WIDTH = 1 << 31


def _sort(op: ir.Operation) -> None:
    check_comparator(op.regions[0].blocks[0])


def _while(op: ir.Operation) -> None:
    if not op.operands:
        raise ValueError("a loop without state never ends")


def _gather(op: ir.Operation) -> None:
    if 0 in _shape(op.operands[0]) and 0 not in _shape(op.results[0]):
        raise ValueError("it takes elements out of an empty tensor")


def _fft(op: ir.Operation) -> None:
    """Check lengths: MLIR does not, but XLA indexes memory with them."""
    lengths = list(ir.DenseI64ArrayAttr(op.attributes["fft_length"]))
    inverse = "IRFFT" in str(op.attributes["fft_type"])
    shape = _shape(op.results[0] if inverse else op.operands[0])
    if not lengths or lengths != list(shape)[-len(lengths) :]:
        raise ValueError(f"its lengths are {lengths}, its last dimensions {list(shape)}")


def _reducer(op: ir.Operation) -> None:
    """Check that regions take elements of the operands' own types; MLIR allows others."""
    kinds = [_element(value) for value in op.results]
    given = [_element(value) for value in list(op.operands)[: len(kinds)]]
    for region in op.regions:
        taken = [_element(argument) for argument in region.blocks[0].arguments]
        if given != kinds or taken != kinds * 2:
            raise ValueError("its operands, regions and results are of different element types")


def _reduce_window(op: ir.Operation) -> None:
    _reducer(op)
    _check_windows(op, _shape(op.operands[0]), "base_dilations", "window_dilations")


def _select_and_scatter(op: ir.Operation) -> None:
    _reducer(op)
    _check_windows(op, _shape(op.operands[0]))


def _convolution(op: ir.Operation) -> None:
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    shape = _shape(op.operands[0])
    spatial = [shape[i] for i in numbers.input_spatial_dimensions]
    _check_windows(op, spatial, "lhs_dilation", "rhs_dilation")


def _check_windows(
    op: ir.Operation, shape: Sequence[int], spread: str = "", apart: str = ""
) -> None:
    """Refuse padding below zero width, and window numbers of excessive size.

    Args:
        op: an op that moves windows over an operand.
        shape: the dimensions of the operand that they move over.
        spread: the attribute with the dilation of the operand.
        apart: the attribute with the dilation of the window.
    """
    sizes = [
        number_columns(op, name) for name in ("window_dimensions", "window_strides", spread, apart)
    ]
    padding = number_columns(op, "padding") or [0] * (2 * len(shape))
    if any(abs(number) > MAX_WINDOW for each in (*sizes, padding) for number in each):
        raise ValueError(f"its windows have numbers over {MAX_WINDOW}")
    steps = sizes[2] or [1] * len(shape)
    for dim, step, low, high in zip(shape, steps, padding[::2], padding[1::2], strict=True):
        width = max(0, (dim - 1) * step + 1) + low + high
        if not 0 <= width < MAX_WIDTH:
            raise ValueError(f"padded, its operand is {width} wide")


def _element(value: ir.Value) -> str:
    return str(ir.RankedTensorType(value.type).element_type)


def _shape(value: ir.Value) -> Sequence[int]:
    shape: Sequence[int] = ir.RankedTensorType(value.type).shape
    return shape


RULES: Mapping[str, Callable[[ir.Operation], None]] = {
    "convolution": _convolution,
    "fft": _fft,
    "gather": _gather,
    "reduce": _reducer,
    "reduce_window": _reduce_window,
    "scatter": _reducer,
    "select_and_scatter": _select_and_scatter,
    "sort": _sort,
    "while": _while,
}
