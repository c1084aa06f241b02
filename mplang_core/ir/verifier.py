"""Verifier of programs: SSA form, op definitions, types and masks."""

from __future__ import annotations

from collections.abc import Callable

from mplang_core.errors import VerifyError
from mplang_core.ir.graph import AnyType, Graph, Operation, Program, Value
from mplang_core.ir.opdef import Level, op_defs
from mplang_core.ir.printer import print_neighbourhood
from mplang_core.mask import Mask
from mplang_core.suggest import install_hint
from mplang_core.types import BaseType, MPType


def verify(program: Program) -> None:
    """Check a program: definitions before uses, known ops, attributes, types and masks.

    Output types and masks are inferred from the op definitions and compared.

    Args:
        program: an untrusted program.

    Raises:
        VerifyError: a rule is broken; the message has the op, its neighbours and its line.

    Example:
        >>> import mplang_core as mp
        >>> x = mp.ir.Value(mp.MPType(mp.TensorType("f32"), mp.Mask.of(0)))
        >>> mp.verify(mp.Program("p", mp.Mask.of(0), mp.ir.Graph([], [], [x])))
        Traceback (most recent call last):
        mplang_core.errors.VerifyError: a graph returns a value that it does not define:...
    """
    _verify_graph(program.graph, program.mask, Level.PARTY)


def infer_outputs(op: Operation, world: Mask) -> list[AnyType]:
    """Return the output types of an op by its definition.

    Raises:
        TypeError: the op is not allowed; the message is the reason alone.
        ValueError: the same.
    """
    if (op_def := op_defs.get(op.opcode)) is None:
        raise TypeError(
            f"unknown op {op.opcode!r}; no plugin that is installed provides the dialect "
            f"{op.dialect!r}: {install_hint(op.dialect)}"
        )
    op_def.check_attrs(op.attrs)
    if (op.regions or op_def.regions) and list(op.regions) != list(op_def.regions):
        raise TypeError(f"expected the regions {list(op_def.regions)}, got {list(op.regions)}")
    return list(op_def.infer(op, world))


MAX_GRAPH = 4000  # characters of a graph in an error

interface_checks: list[Callable[[Operation], None]] = []
"""Checks of what interfaces say of an op against its types; each raises TypeError."""


def _verify_graph(graph: Graph, world: Mask, level: Level) -> None:
    defined: set[Value] = set()
    for value in graph.inputs:
        try:
            _define(value, defined, world, level)
        except TypeError as error:
            raise VerifyError(f"an input of a graph: {error}") from error
    for op in graph.ops:
        try:
            _verify_op(op, defined, world, level)
        except VerifyError:
            raise
        except (TypeError, ValueError) as error:
            where = f" at {op.location}" if op.location else ""
            raise VerifyError(
                f"{op.opcode}{where}: {str(error)[:MAX_GRAPH]}\n{print_neighbourhood(graph, op)}"
            ) from error
    for value in graph.outputs:
        if value not in defined:
            raise VerifyError(
                f"a graph returns a value that it does not define:\n{str(graph)[:MAX_GRAPH]}"
            )


def _define(value: Value, defined: set[Value], world: Mask, level: Level) -> None:
    expected = MPType if level is Level.PARTY else BaseType
    if not isinstance(value.type, expected):
        raise TypeError(f"at {level.value} level a value has a {expected.__name__}: {value.type}")
    mask = value.type.pmask if isinstance(value.type, MPType) else None
    if mask is not None and not mask <= world:
        raise TypeError(f"{value.type} names parties outside of {world}")
    if value in defined:
        raise TypeError("a value is defined twice")
    defined.add(value)


def _verify_op(op: Operation, defined: set[Value], world: Mask, level: Level) -> None:
    if not defined.issuperset(op.inputs):
        early = next(i for i, value in enumerate(op.inputs) if value not in defined)
        raise TypeError(f"operand {early} is used before its definition")
    if (op_def := op_defs.get(op.opcode)) is not None:
        if op_def.level is not level:
            raise TypeError(f"it stands at {op_def.level.value} level, not at {level.value} level")
        for name, region_level in op_def.regions.items():
            if name in op.regions:
                _verify_graph(op.regions[name], world, region_level)
    inferred = infer_outputs(op, world)
    declared = [value.type for value in op.outputs]
    if inferred != declared:
        raise TypeError(
            f"its outputs are {_types(inferred)}, but it is written with {_types(declared)}"
        )
    for check in interface_checks:
        check(op)
    for value in op.outputs:
        _define(value, defined, world, level)


def _types(types: list[AnyType]) -> str:
    return f"({', '.join(map(str, types))})"
