"""Flat functions: StableHLO as one function without calls, its values numbered. Imports JAX."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from mplang_stablehlo import read
from mplang_stablehlo.ext import Lines, annotate, inline, line_of, lines_of, parse, text_of, walk

from mplang_core import DType, TensorType
from mplang_core.ext import Location
from mplang_spu.lowering.splats import direction_of
from mplang_spu.lowering.structure import erase_barriers
from mplang_spu.reference_check.compared_literals import round_compared
from mplang_spu.reference_check.op_labels import label_of
from mplang_spu.reference_check.retype import retype
from mplang_spu.share_type import MAX_CODE

_LITERALS = ("stablehlo.constant", "stablehlo.iota")
_MOVES = ("reshape", "broadcast_in_dim", "transpose", "slice")


@dataclass(frozen=True, slots=True)
class Op:
    """Op of a flat function.

    Attributes:
        name: the op's name without the dialect.
        label: its name in NumPy's terms, for messages.
        operands: the numbers of the values that it uses, including those used in its regions.
        results: the numbers of its results.
        arity: the number of its own operands; they come first in ``operands``.
        direction: of a comparison: ``LT``, ``EQ``, ….
        dimensions: the dimensions that it sorts or reduces.
        keys: the number of operands that it sorts by, the first ones.
        region_compares: whether one of its regions compares floats.
    """

    name: str
    label: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    arity: int
    direction: str = ""
    dimensions: tuple[int, ...] = ()
    keys: int = 1
    region_compares: bool = False

    @property
    def is_literal(self) -> bool:
        """Whether it is a constant or an iota."""
        return f"stablehlo.{self.name}" in _LITERALS


@dataclass(frozen=True, slots=True)
class Variant:
    """StableHLO module derived from a flat function.

    Attributes:
        text: its StableHLO.
        takes: the types of its operands.
        gives: the types of its results.
    """

    text: str
    takes: tuple[TensorType, ...]
    gives: tuple[TensorType, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FlatFunction:
    """StableHLO function without calls.

    Attributes:
        text: its StableHLO.
        inputs: the number of its operands, which are the first values.
        ops: its ops in order.
        outputs: the numbers of the values that it returns.
        kinds: the types of all values.
    """

    text: str
    inputs: int
    ops: tuple[Op, ...]
    outputs: tuple[int, ...]
    kinds: tuple[TensorType, ...]

    def with_float_width(self, width: int) -> Variant:
        """Return the function with all floats of ``width`` bits."""
        module = parse(self.text)
        retype(module, width)
        return _variant(module)

    def with_outputs(
        self, shown: Collection[int], cut: Collection[int] = (), width: int | None = None
    ) -> Variant:
        """Return the function with inner values as results, and optionally as operands.

        Args:
            shown: the numbers of the values to return, in ascending order.
            cut: the numbers of the values that become operands after the existing ones, in
                ascending order; their uses read the operands.
            width: bits of all floats; unchanged by default.

        Returns:
            The variant.
        """
        module = parse(self.text)
        block = _block(module)
        values = _values(block)
        with module.context, ir.Location.unknown():
            for number in cut:
                given = block.add_argument(values[number].type, ir.Location.unknown())
                values[number].replace_all_uses_with(given)
        _return(module, [values[number] for number in shown])
        if width is not None:
            retype(module, width)
        return _variant(module)

    def perturbed(self, places: Sequence[tuple[int, int]], shown: Collection[int]) -> Variant:
        """Return the function in float64, with an offset per listed operand as a further operand.

        Args:
            places: index of an op, and of its operand.
            shown: the numbers of the values to return, in ascending order.

        Returns:
            The variant.
        """
        module = parse(self.text)
        block = _block(module)
        values, ops = _values(block), [op.operation for op in block.operations]
        with module.context, ir.Location.unknown():
            for i, j in places:
                operand = ops[i].operands[j]
                offset = block.add_argument(operand.type, ir.Location.unknown())
                with ir.InsertionPoint(ops[i]):
                    ops[i].operands[j] = stablehlo.add(operand, offset)
        _return(module, [values[number] for number in shown])
        retype(module, 64)
        return _variant(module)


@functools.lru_cache(maxsize=64)
def flat_function(code: bytes, fxp: int | None = None) -> FlatFunction:
    """Return the flat form of compressed StableHLO that SPU admits.

    Args:
        code: the compressed StableHLO.
        fxp: fraction bits, to which literals that regions compare with are rounded, as on SPU.
    """
    module = _flattened(code, None)
    if fxp is not None:
        round_compared(module, fxp)
    block = _block(module)
    values = _values(block)
    numbers = {value: i for i, value in enumerate(values)}
    *ops, end = [op.operation for op in block.operations]
    return FlatFunction(
        text_of(module),
        len(block.arguments),
        _named([_op(op, numbers) for op in ops]),
        tuple(numbers[value] for value in end.operands),
        tuple(_kind(value) for value in values),
    )


def source_lines(code: bytes, place: Location | None) -> list[Location | None]:
    """Return the user's line of each op of the flat function.

    Args:
        code: the compressed StableHLO.
        place: the line where it was traced.

    Returns:
        A line per op; ``None`` if unknown.
    """
    module = _flattened(code, lines_of(code, place))
    return [line_of(op.operation) for op in _block(module).operations]


def sums_of(function: FlatFunction) -> list[int | None]:
    """Return per result the index of the op that sums it in integers of less than 64 bits."""
    makers = {number: i for i, op in enumerate(function.ops) for number in op.results}
    found: list[int | None] = []
    for number in function.outputs:
        maker = makers.get(number)
        while maker is not None and function.ops[maker].name in _MOVES:
            maker = makers.get(function.ops[maker].operands[0])
        is_narrow = function.kinds[number].dtype.numpy.kind in "iu"
        is_narrow &= function.kinds[number].dtype.numpy.itemsize < 8
        is_sum = maker is not None and function.ops[maker].label in ("sum", "prod")
        found.append(maker if is_narrow and is_sum else None)
    return found


def _flattened(code: bytes, lines: Lines | None) -> ir.Module:
    module = parse(read(code, MAX_CODE))
    annotate(module, lines)
    inline(module)
    erase_barriers(module)
    return module


def _named(ops: Sequence[Op]) -> tuple[Op, ...]:
    """Label ops on literals only as constants: JAX broadcasts each literal of the code."""
    constants: set[int] = set()
    named = []
    for op in ops:
        if constants.issuperset(op.operands):
            constants.update(op.results)
            named.append(replace(op, label="constant"))
        else:
            named.append(op)
    return tuple(named)


def _values(block: ir.Block) -> list[ir.Value]:
    return [*block.arguments, *(value for op in block.operations for value in op.operation.results)]


def _op(op: ir.Operation, numbers: Mapping[ir.Value, int]) -> Op:
    inner = list(walk(op)) if op.regions else []
    taken = [value for each in (op, *inner) for value in each.operands if value in numbers]
    return Op(
        op.name.removeprefix("stablehlo."),
        label_of(op, inner),
        tuple(numbers[value] for value in taken),
        tuple(numbers[value] for value in op.results),
        len(op.operands),
        direction_of(op) if op.name == "stablehlo.compare" else "",
        _dimensions(op),
        sum(map(_is_less, inner)) if op.name == "stablehlo.sort" else 1,
        any(map(_compares_floats, inner)),
    )


def _dimensions(op: ir.Operation) -> tuple[int, ...]:
    if op.name == "stablehlo.sort":
        return (ir.IntegerAttr(op.attributes["dimension"]).value,)
    if op.name == "stablehlo.reduce":
        return tuple(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    return ()


def _is_less(op: ir.Operation) -> bool:
    return op.name == "stablehlo.compare" and direction_of(op) in ("GT", "LT")


def _compares_floats(op: ir.Operation) -> bool:
    if op.name == "stablehlo.convert":
        return _is_float(op.operands[0]) and not _is_float(op.results[0])
    return op.name in ("stablehlo.compare", "stablehlo.floor", "stablehlo.ceil") and _is_float(
        op.operands[0]
    )


def _is_float(value: ir.Value) -> bool:
    return isinstance(ir.RankedTensorType(value.type).element_type, ir.FloatType)


def _block(module: ir.Module) -> ir.Block:
    """Return the body of ``main``."""
    (main,) = module.body.operations
    return main.operation.regions[0].blocks[0]


def _return(module: ir.Module, results: Sequence[ir.Value]) -> None:
    """Replace the results of ``main``."""
    block = _block(module)
    (main,) = module.body.operations
    *_, end = block.operations
    end.operation.erase()
    with module.context, ir.Location.unknown():
        with ir.InsertionPoint(block):
            ir.Operation.create("func.return", operands=results)
        takes, gives = ([value.type for value in each] for each in (block.arguments, results))
        main.operation.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(takes, gives)
        )


def _variant(module: ir.Module) -> Variant:
    block = _block(module)
    *_, end = block.operations
    return Variant(
        text_of(module),
        tuple(map(_kind, block.arguments)),
        tuple(map(_kind, end.operation.operands)),
    )


def _kind(value: ir.Value) -> TensorType:
    kind = ir.RankedTensorType(value.type)
    name = str(kind.element_type)
    return TensorType(DType("bool" if name == "i1" else name.replace("ui", "u")), kind.shape)
