"""Flat form of code: one function without calls, its values numbered. Imports JAX."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxlib.mlir import ir
from mplang_stablehlo import read
from mplang_stablehlo.inline import inline
from mplang_stablehlo.lines import Lines, annotate, line_of, lines_of
from mplang_stablehlo.module import parse, text_of, walk

from mplang_core import DType, TensorType
from mplang_core.ir import Location
from mplang_spu.beside.retype import retype
from mplang_spu.beside.words import word_of
from mplang_spu.lowering import erase_barriers
from mplang_spu.ops import MAX_CODE

__all__ = ["Flat", "Op", "Variant", "flat", "lines_in"]

_LITERALS = ("stablehlo.constant", "stablehlo.iota")


@dataclass(frozen=True, slots=True)
class Op:
    """An op of the flat function.

    Attributes:
        name: without the dialect.
        word: what a user calls it.
        operands: the numbers of the values that it takes, those of its regions included.
        results: the numbers of those that it gives.
        direction: of a comparison: ``LT``, ``EQ``, ….
        dimensions: along which it sorts or reduces.
        decides: whether a region of it compares floats.
    """

    name: str
    word: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    direction: str = ""
    dimensions: tuple[int, ...] = ()
    decides: bool = False

    @property
    def is_literal(self) -> bool:
        """Whether it takes nothing."""
        return f"stablehlo.{self.name}" in _LITERALS


@dataclass(frozen=True, slots=True)
class Variant:
    """A module that was made of the flat one.

    Attributes:
        text: its StableHLO.
        takes: the types of its operands.
        gives: the types of its results.
    """

    text: str
    takes: tuple[TensorType, ...]
    gives: tuple[TensorType, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Flat:
    """A flat function.

    Attributes:
        text: its StableHLO.
        inputs: how many operands it has; they are the first values.
        ops: in their order.
        outputs: the numbers of the values that it returns.
        kinds: the types of all values.
    """

    text: str
    inputs: int
    ops: tuple[Op, ...]
    outputs: tuple[int, ...]
    kinds: tuple[TensorType, ...]

    def plain(self, width: int) -> Variant:
        """Return it with floats of that many bits."""
        module = parse(self.text)
        retype(module, width)
        return _variant(module)

    def exposed(
        self, shown: Collection[int], cut: Collection[int] = (), width: int | None = None
    ) -> Variant:
        """Return it with inner values as results, and some of them given from outside.

        Args:
            shown: the numbers of the values to return, in ascending order.
            cut: the numbers of the values that are operands where they are used, in ascending
                order; they stand after the others.
            width: of all floats, if it is not that of the code.
        """
        module = parse(self.text)
        (main,) = module.body.operations
        block = main.operation.regions[0].blocks[0]
        values = _values(block)
        *_, end = block.operations
        with module.context, ir.Location.unknown():
            end.operation.erase()
            for number in sorted(cut):
                given = block.add_argument(values[number].type, ir.Location.unknown())
                values[number].replace_all_uses_with(given)
            with ir.InsertionPoint(block):
                results = [values[number] for number in sorted(shown)]
                ir.Operation.create("func.return", operands=results)
            kinds = [value.type for value in block.arguments], [value.type for value in results]
            main.operation.attributes["function_type"] = ir.TypeAttr.get(
                ir.FunctionType.get(*kinds)
            )
        if width is not None:
            retype(module, width)
        return _variant(module)


@functools.lru_cache(maxsize=64)
def flat(code: bytes) -> Flat:
    """Return the flat form of a code: compressed text that SPU admits."""
    module = _flattened(code, None)
    (main,) = module.body.operations
    block = main.operation.regions[0].blocks[0]
    values = _values(block)
    numbers = {value: i for i, value in enumerate(values)}
    *ops, end = [op.operation for op in block.operations]
    return Flat(
        text_of(module),
        len(block.arguments),
        _named([_op(op, numbers) for op in ops]),
        tuple(numbers[value] for value in end.operands),
        tuple(_kind(value) for value in values),
    )


def lines_in(code: bytes, place: Location | None) -> list[Location | None]:
    """Return the user's line of each op of the flat form; ``place`` is where it was traced."""
    module = _flattened(code, lines_of(code, place))
    (main,) = module.body.operations
    return [line_of(op.operation) for op in main.operation.regions[0].blocks[0].operations]


def _flattened(code: bytes, lines: Lines | None) -> ir.Module:
    module = parse(read(code, MAX_CODE))
    annotate(module, lines)
    inline(module)
    erase_barriers(module)
    return module


def _named(ops: Sequence[Op]) -> tuple[Op, ...]:
    """Call what is made of literals alone a constant: JAX broadcasts each number of the code."""
    constants: set[int] = set()
    named = []
    for op in ops:
        if constants.issuperset(op.operands):
            constants.update(op.results)
            named.append(replace(op, word="constant"))
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
        word_of(op, inner),
        tuple(numbers[value] for value in taken),
        tuple(numbers[value] for value in op.results),
        _direction(op),
        _dimensions(op),
        any(map(_compares_floats, inner)),
    )


def _direction(op: ir.Operation) -> str:
    if op.name != "stablehlo.compare":
        return ""
    return str(op.attributes["comparison_direction"]).rpartition(" ")[2].removesuffix(">")


def _dimensions(op: ir.Operation) -> tuple[int, ...]:
    if op.name == "stablehlo.sort":
        return (ir.IntegerAttr(op.attributes["dimension"]).value,)
    if op.name == "stablehlo.reduce":
        return tuple(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    return ()


def _compares_floats(op: ir.Operation) -> bool:
    if op.name == "stablehlo.convert":
        return _is_float(op.operands[0]) and not _is_float(op.results[0])
    return op.name in ("stablehlo.compare", "stablehlo.floor", "stablehlo.ceil") and _is_float(
        op.operands[0]
    )


def _is_float(value: ir.Value) -> bool:
    return isinstance(ir.RankedTensorType(value.type).element_type, ir.FloatType)


def _variant(module: ir.Module) -> Variant:
    (main,) = module.body.operations
    block = main.operation.regions[0].blocks[0]
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
