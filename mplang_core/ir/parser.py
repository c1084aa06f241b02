"""Programs from text.

The grammar, in the order of the rules below::

program  = "program" STRING "on" mask region [buffers]
region   = "(" [VALUE ":" type {"," VALUE ":" type}] ")" "{" {op} "return" [values] "}"
op       = [values "="] NAME "(" [values] ")" [attrs] {NAME region} [":" types] ["at" STRING]
attrs    = "{" NAME "=" attr {"," NAME "=" attr} "}"
attr     = "none" | "true" | "false" | NUMBER | STRING | BUFFER | mask | type
         | "[" [attr {"," attr}] "]" | "dict" "{" STRING "=" attr … "}"
         | "dense" "<" type ">" ("[" … "]" | BUFFER)
type     = base ["@" (mask | "?")]
base     = NAME "[" sizes "]" | NAME "<" [attr {"," attr}] ">"
mask     = "{" [INT {"," INT}] "}"
buffers  = "buffers" "{" {BUFFER "=" STRING} "}"
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

import numpy as np

from mplang_core.errors import ParseError
from mplang_core.ir.attrs import AttrValue, normalize
from mplang_core.ir.graph import AnyType, Graph, Location, Operation, Program, Value
from mplang_core.mask import Mask
from mplang_core.types import BaseType, DType, MPType, TensorType, array_from, type_classes

T = TypeVar("T")

MAX_DEPTH = 100
MAX_TYPE = 256 << 10
MAX_RANKS = 1 << 16

_TOKEN = re.compile(  # types of peers are among the text: nothing in it can backtrack
    r"""(?P<space>\s++)
      | (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
      | (?P<value>%\d++)
      | (?P<buffer>@[0-9a-f]{16}\b)
      | (?P<number>-inf\b|-?\d++(?:\.\d++)?+(?:e[+-]?\d++)?+)
      | (?P<name>[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+)
      | (?P<mark>[(){}\[\]<>=:,@?])""",
    re.VERBOSE,
)
_WORDS = {"none": None, "true": True, "false": False, "inf": math.inf, "nan": math.nan}
_Token = tuple[str, str, int]


def parse(text: str) -> Program:
    """Read what :func:`~mplang_core.ir.print_program` wrote. The result is not verified yet.

    Raises:
        ParseError: the text is no program; says line, column and what was expected.
    """
    return _run(text, _Parser.program)


def parse_type(text: str) -> AnyType:
    """Read one type, ``f32[3]`` or ``f32[3]@{0, 1}``."""
    _check_length(text)
    return _run(text, _Parser.type)


def parse_base_type(text: str) -> BaseType:
    """Read one base type."""
    _check_length(text)
    return _run(text, _Parser.base_type)


def _check_length(text: str) -> None:
    """Refuse what is long before it is split: a token takes far more memory than its mark."""
    if isinstance(text, str) and len(text) > MAX_TYPE:
        raise ParseError(f"a type is written with at most {MAX_TYPE} characters, got {len(text)}")


def _run(text: str, rule: Callable[[_Parser], T]) -> T:
    if not isinstance(text, str):
        raise ParseError(f"expected text, got {type(text).__name__}")
    parser = _Parser(text)
    try:
        result = rule(parser)
        parser.expect("end")
    except ParseError:
        raise
    except RecursionError:
        parser.fail("nested too deep")
    except (TypeError, ValueError, OverflowError, LookupError) as error:
        parser.fail(str(error))
    return result


def constant_from(data: bytes, kind: TensorType) -> AttrValue:
    """Return the constant of a buffer.

    Raises:
        ValueError: the buffer has another size, or bools that are neither 0 nor 1.
    """
    return normalize(array_from(data, kind))


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = list(self._tokenize(text))
        self.at = 0
        self.depth = 0
        self.buffers: dict[str, bytes] | None = None
        self._buffers_at = self._find_buffers()

    def _tokenize(self, text: str) -> Iterator[_Token]:
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                self._fail_at(at, f"unexpected character {text[at]!r}")
            if found.lastgroup != "space":
                kind = found.group() if found.lastgroup == "mark" else str(found.lastgroup)
                yield kind, found.group(), at
            at = found.end()
        yield "end", "", at

    # -- tokens

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    @property
    def word(self) -> str:
        return self.tokens[self.at][1]

    def expect(self, kind: str, word: str | None = None) -> str:
        if self.kind != kind or (word is not None and self.word != word):
            shown = "the end" if self.kind == "end" else repr(self.word)
            self.fail(f"expected {word or kind!r}, got {shown}")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, kind: str, word: str | None = None) -> bool:
        if self.kind == kind and (word is None or self.word == word):
            self.at += self.kind != "end"
            return True
        return False

    def fail(self, reason: str) -> NoReturn:
        self._fail_at(self.tokens[self.at][2], reason)

    def _fail_at(self, offset: int, reason: str) -> NoReturn:
        line = self.text.count("\n", 0, offset) + 1
        start = self.text.rfind("\n", 0, offset) + 1
        shown = self.text[start:].split("\n", 1)[0][:200]
        column = offset - start
        marker = f"\n    {shown}\n    {' ' * column}^" if column <= 200 else ""
        raise ParseError(f"line {line}, column {column + 1}: {reason}{marker}")

    def listed(self, item: Callable[[], T], end: str) -> list[T]:
        items: list[T] = []
        if not self.accept(end):
            items.append(item())
            while self.accept(","):
                items.append(item())
            self.expect(end)
        return items

    # -- buffers stand behind the graph, but the graph needs them

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

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH}")

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
        self.enter()
        try:
            match self.kind, self.word:
                case "string", _:
                    return self.string()
                case "number", _:
                    return self.number()
                case "buffer", _:
                    return self.buffer()
                case "{", _:
                    return self.mask()
                case "[", _:
                    self.expect("[")
                    return tuple(self.listed(self.attr, "]"))
                case "name", word if word in _WORDS:
                    self.at += 1
                    return _WORDS[word]
                case "name", "dict":
                    self.at += 1
                    self.expect("{")
                    return normalize(self.once(self.listed(self.keyed_attr, "}")))
                case "name", "dense":
                    return self.dense()
                case "name", _:
                    return self.base_type()
            self.fail(f"expected an attribute value, got {self.word!r}")
        finally:
            self.depth -= 1

    def dense(self) -> AttrValue:
        self.expect("name", "dense")
        self.expect("<")
        kind = self.base_type()
        self.expect(">")
        if not isinstance(kind, TensorType):
            self.fail(f"a constant is a tensor, not {kind}")
        if self.kind == "buffer":
            return constant_from(self.buffer(), kind)
        elements = self.attr()
        allowed = {"b": (bool,), "f": (float,)}.get(kind.dtype.numpy.kind, (int,))
        if not isinstance(elements, tuple) or any(type(e) not in allowed for e in elements):
            self.fail(f"the elements of {kind} are of another type")
        return normalize(np.array(elements, kind.dtype.numpy).reshape(kind.shape))

    def string(self) -> str:
        word = self.expect("string")
        text: str = json.loads(word)
        text.encode()  # a lone surrogate is no text
        return text

    def number(self) -> int | float:
        word = self.expect("number")
        if re.fullmatch(r"-?\d+", word):
            value = int(word)
            normalize(value)  # refuses more than 64 bits
            return value
        return float(word)

    def integer(self) -> int:
        value = self.number()
        if not isinstance(value, int):
            self.fail(f"expected an integer, got {value}")
        return value

    def mask(self) -> Mask:
        self.expect("{")
        ranks = self.listed(self.integer, "}")
        if any(rank >= MAX_RANKS for rank in ranks):
            self.fail(f"a rank is below {MAX_RANKS}")
        return Mask.from_ranks(ranks)

    def type(self) -> AnyType:
        base = self.base_type()
        if not self.accept("@"):
            return base
        return MPType(base, None if self.accept("?") else self.mask())

    def base_type(self) -> BaseType:
        name = self.expect("name")
        if self.accept("["):
            return TensorType(DType(name), self.listed(self.integer, "]"))
        self.expect("<")
        cls = type_classes.get(name)
        if cls is None:
            self.fail(f"unknown type {name!r}; no plugin that is installed provides it")
        return cls.from_params(tuple(self.listed(self.attr, ">")))
