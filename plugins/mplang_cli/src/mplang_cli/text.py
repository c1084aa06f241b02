"""Parser of programs.

The grammar, in the order of the rules below; types and masks are those of
:mod:`mplang_core.ir.parser`::

    program  = "program" STRING "on" mask region [buffers]
    region   = "(" [VALUE ":" type {"," VALUE ":" type}] ")" "{" {op} "return" [values] "}"
    op       = [values "="] NAME "(" [values] ")" [attrs] {NAME region} [":" types] ["at" STRING]
    attrs    = "{" NAME "=" attr {"," NAME "=" attr} "}"
    attr     = "none" | "true" | "false" | NUMBER | STRING | BUFFER | mask | type
             | "[" [attr {"," attr}] "]" | "dict" "{" STRING "=" attr … "}"
             | "dense" "<" type ">" ("[" … "]" | BUFFER)
    buffers  = "buffers" "{" {BUFFER "=" STRING} "}"
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

import numpy as np

from mplang_core import Program, TensorType
from mplang_core.ext import (
    AnyType,
    AttrValue,
    Graph,
    Location,
    Operation,
    TypeParser,
    Value,
    array_from,
    normalize,
    parsed,
)


def parse(text: str) -> Program:
    """Return the program of a text from ``str(program)`` or ``compiler_ir()``, not verified.

    Args:
        text: untrusted text.

    Raises:
        ParseError: the text is not a program; the message has line, column and expectation.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), lambda x: x, 7).program
        >>> parse(str(program)).digest == program.digest
        True
    """
    return parsed(_ProgramParser(text), _ProgramParser.program)


class _ProgramParser(TypeParser):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.buffers: dict[str, bytes] | None = None
        self._buffers_at = self._find_buffers()

    # -- buffers follow the graph, which refers to them

    def _find_buffers(self) -> int | None:
        depth = 0
        for i, (kind, word, _) in enumerate(self.tokens):
            depth += (kind == "{") - (kind == "}")
            if depth == 0 and kind == "name" and word == "buffers":
                return i
        return None

    def buffer(self) -> bytes:
        if self.buffers is None:
            here, self.buffers = self.at, {}
            if self._buffers_at is not None:
                self.at = self._buffers_at
                self.read_buffers()
            self.at = here
        name = self.word[1:]
        if name not in self.buffers:
            self.fail(f"no buffer @{name} at the end of the text")
        self.expect("buffer")
        return self.buffers[name]

    def read_buffers(self) -> None:
        assert self.buffers is not None
        self.expect("name", "buffers")
        self.expect("{")
        while not self.accept("}"):
            name = self.expect("buffer")[1:]
            self.expect("=")
            try:
                data = base64.b64decode(self.string(), validate=True)
            except binascii.Error as error:
                self.fail(f"buffer @{name} is not base64: {error}")
            if hashlib.sha256(data).hexdigest()[: len(name)] != name:
                self.fail(f"the contents of buffer @{name} do not have that digest")
            self.buffers[name] = data

    # -- rules

    def program(self) -> Program:
        self.expect("name", "program")
        name = self.string()
        self.expect("name", "on")
        mask = self.mask()
        graph = self.region()
        if self.kind == "name" and self.word == "buffers":
            self.buffers = {}
            self.read_buffers()
        return Program(name, mask, graph)

    def region(self) -> Graph:
        self.enter()
        graph, scope = Graph(), dict[str, Value]()
        self.expect("(")
        graph.inputs = self.listed(lambda: self.parameter(scope), ")")
        self.expect("{")
        while not self.accept("name", "return"):
            graph.ops.append(self.op(scope))
        if not self.accept("}"):
            graph.outputs = self.listed(lambda: self.use(scope), "}")
        self.depth -= 1
        return graph

    def parameter(self, scope: dict[str, Value]) -> Value:
        name = self.fresh(scope)
        self.expect(":")
        scope[name] = value = Value(self.type())
        return value

    def fresh(self, scope: dict[str, Value]) -> str:
        if self.word in scope:
            self.fail(f"{self.word} is defined twice")
        return self.expect("value")

    def use(self, scope: dict[str, Value]) -> Value:
        if self.kind == "value" and self.word not in scope:
            self.fail(f"{self.word} is used before its definition")
        return scope[self.expect("value")]

    def op(self, scope: dict[str, Value]) -> Operation:
        names: list[str] = []
        if self.kind == "value":
            names = [self.fresh(scope)]
            while self.accept(","):
                if self.word in names:
                    self.fail(f"{self.word} is defined twice")
                names.append(self.fresh(scope))
            self.expect("=")
        if self.kind == "name" and "." not in self.word:
            self.fail(f"expected an op, as in dialect.op, got {self.word!r}")
        opcode = self.expect("name")
        self.expect("(")
        inputs = tuple(self.listed(lambda: self.use(scope), ")"))
        attrs = self.once(self.listed(self.named_attr, "}")) if self.accept("{") else {}
        regions: dict[str, Graph] = {}
        while self.kind == "name" and "." not in self.word and self.tokens[self.at + 1][0] == "(":
            if self.word in regions:
                self.fail(f"the region {self.word!r} is given twice")
            name = self.expect("name")
            regions[name] = self.region()
        types: list[AnyType] = []
        if self.accept(":"):
            types.append(self.type())
            while self.accept(","):
                types.append(self.type())
        if len(types) != len(names):
            self.fail(f"{opcode} defines {len(names)} values but has {len(types)} types")
        location = self.location() if self.accept("name", "at") else None
        outputs = tuple(map(Value, types))
        scope.update(zip(names, outputs, strict=True))
        return Operation(opcode, inputs, outputs, attrs, regions, location)

    def location(self) -> Location:
        file, _, line = self.string().rpartition(":")
        if not re.fullmatch(r"[0-9]{1,9}", line):
            self.fail('a location is "file:line"')
        return Location(file, int(line))

    def once(self, items: list[tuple[str, AttrValue]]) -> dict[str, AttrValue]:
        found = dict(items)
        if len(found) != len(items):
            self.fail("a name is given twice")
        return found

    def named_attr(self) -> tuple[str, AttrValue]:
        name = self.expect("name")
        self.expect("=")
        return name, self.attr()

    def keyed_attr(self) -> tuple[str, AttrValue]:
        key = self.string()
        self.expect("=")
        return key, self.attr()

    def attr(self) -> AttrValue:
        match self.kind, self.word:
            case "buffer", _:
                return self.buffer()
            case "name", "dense":
                return self.dense()
            case "name", "dict":
                self.enter()
                self.at += 1
                self.expect("{")
                found = normalize(self.once(self.listed(self.keyed_attr, "}")))
                self.depth -= 1
                return found
        return super().attr()

    def dense(self) -> AttrValue:
        self.expect("name", "dense")
        self.expect("<")
        kind = self.base_type()
        self.expect(">")
        if not isinstance(kind, TensorType):
            self.fail(f"a constant is a tensor, not {kind}")
        if self.kind == "buffer":
            return normalize(array_from(self.buffer(), kind))
        elements = self.attr()
        allowed = {"b": (bool,), "f": (float,)}.get(kind.dtype.numpy.kind, (int,))
        if not isinstance(elements, tuple) or any(type(e) not in allowed for e in elements):
            self.fail(f"the elements of {kind} are of another type")
        return normalize(np.array(elements, kind.dtype.numpy).reshape(kind.shape))
