"""Printer of programs. :func:`mplang_cli.text.parse` is the inverse."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mplang_core.ir.attrs import AttrValue, AttrVisitor
from mplang_core.ir.graph import Graph, Operation, Program, Value, text_of
from mplang_core.types import TensorType, param_text

INLINE_ELEMENTS = 16
BUFFER_NAME = 16  # hex digits of a buffer's SHA-256 that name it


def print_program(program: Program, *, locations: bool = True) -> str:
    """Return a program as text, which :func:`mplang_core.parse` reads.

    Args:
        program: the program.
        locations: whether to include source lines.
    """
    printer = _Printer(locations)
    head = f"program {json.dumps(program.name)} on {program.mask} "
    lines = [head + printer.region(program.graph, "")]
    if printer.buffers:
        lines.append("buffers {")
        for name, data in printer.buffers.items():
            lines.append(f'  @{name} = "{base64.b64encode(data).decode()}"')
        lines.append("}")
    return "\n".join(lines) + "\n"


def print_graph(graph: Graph) -> str:
    """Return a graph as text; large constants appear by name only."""
    return _Printer(locations=True).region(graph, "")


def print_neighbourhood(graph: Graph, op: Operation, around: int = 2) -> str:
    """Return an op with the ops before and after it as text, the op marked by ``>``.

    Regions are abbreviated as ``{ … }``, and long lines are cut.
    """
    printer = _Printer(locations=True)
    at = next(i for i, other in enumerate(graph.ops) if other is op)
    first, last = max(0, at - around), at + around + 1
    before = (value for other in graph.ops[:first] for value in other.outputs)
    for value in (*graph.inputs, *before):
        printer.define(value)
    lines = [printer.op(other, "", brief=True)[:MAX_LINE] for other in graph.ops[first:last]]
    return "\n".join(
        f"{'  > ' if i == at else '    '}{line}" for i, line in enumerate(lines, first)
    )


MAX_LINE = 1000
"""Characters of an op in a neighbourhood."""


class _Printer(AttrVisitor[str]):
    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.names: dict[Value, str] = {}
        self.buffers: dict[str, bytes] = {}

    def define(self, value: Value) -> str:
        return self.names.setdefault(value, f"%{len(self.names)}")

    def use(self, value: Value) -> str:
        return self.names.get(value, "%undefined")

    def region(self, graph: Graph, indent: str) -> str:
        params = ", ".join(f"{self.define(v)}: {v.type}" for v in graph.inputs)
        lines = [f"({params}) {{"]
        lines += [f"{indent}  {self.op(op, indent + '  ')}" for op in graph.ops]
        result = ", ".join(map(self.use, graph.outputs))
        lines.append(f"{indent}  return {result}".rstrip())
        lines.append(indent + "}")
        return "\n".join(lines)

    def op(self, op: Operation, indent: str, brief: bool = False) -> str:
        operands = ", ".join(map(self.use, op.inputs))
        text = f"{op.opcode}({operands})"
        if op.attrs:
            attrs = (f"{name} = {self.visit(op.attrs[name])}" for name in sorted(op.attrs))
            text += " {" + ", ".join(attrs) + "}"
        for name, graph in op.regions.items():
            text += f" {name} " + ("{ … }" if brief else self.region(graph, indent))
        if op.outputs:
            defined = ", ".join(map(self.define, op.outputs))
            text = f"{defined} = {text} : {', '.join(str(v.type) for v in op.outputs)}"
        if self.locations and op.location is not None:
            text += f" at {json.dumps(f'{op.location.name}:{op.location.line}')}"
        return text

    # -- attributes

    def _as_in_types(self, value: object) -> str:
        return param_text(value)

    visit_bool = visit_int = visit_float = visit_str = visit_mask = visit_type = _as_in_types

    def visit_none(self) -> str:
        return param_text(None)

    def visit_tuple(self, value: tuple[AttrValue, ...]) -> str:
        return "[" + ", ".join(map(self.visit, value)) + "]"

    def visit_array(self, value: np.ndarray[Any, Any]) -> str:
        head = f"dense<{TensorType.of(value)}>"
        if value.size <= INLINE_ELEMENTS and value.dtype.kind in "biuf":
            elements = tuple(value.reshape(-1).astype(value.dtype).tolist())
            if not any(isinstance(e, float) and not math.isfinite(e) for e in elements):
                return head + self.visit_tuple(elements)
        return head + self.visit_bytes(value.tobytes())

    def visit_mapping(self, value: Mapping[str, AttrValue]) -> str:
        items = (f"{json.dumps(name)} = {self.visit(value[name])}" for name in value)
        return "dict{" + ", ".join(items) + "}"

    def visit_bytes(self, value: bytes) -> str:
        name = hashlib.sha256(value).hexdigest()[:BUFFER_NAME]
        self.buffers[name] = value
        return f"@{name}"


text_of.register(Graph, print_graph)
text_of.register(Program, print_program)
