"""Parser of types and attribute values.

The grammar of types and of their parameters::

    type  = base ["@" (mask | "?")]
    base  = NAME "[" sizes "]" | NAME "<" [attr {"," attr}] ">"
    attr  = "none" | "true" | "false" | NUMBER | STRING | mask | type
          | "[" [attr {"," attr}] "]"
    mask  = "{" [INT {"," INT}] "}"

Workers parse types only, which are text on the wire too. :func:`mplang_cli.text.parse` parses
whole programs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from mplang_core.errors import ParseError
from mplang_core.ir.attrs import AttrValue, normalize
from mplang_core.ir.graph import AnyType
from mplang_core.mask import Mask
from mplang_core.types import Attribute, BaseType, DType, MPType, TensorType, type_classes

T = TypeVar("T")
P = TypeVar("P", bound="TypeParser")

MAX_DEPTH = 100
MAX_TYPE = 256 << 10
MAX_RANKS = 1 << 16

_TOKEN = re.compile(  # possessive: untrusted text must not cause backtracking
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


def parse_type(text: str) -> AnyType:
    """Return the type that a text denotes.

    Args:
        text: untrusted text, such as ``f32[3]`` or ``f32[3]@{0, 1}``.

    Raises:
        ParseError: the text is not a type; the message has line, column and expectation.

    Example:
        >>> parse_type("f32[3]@{0, 1}").pmask
        Mask.from_ranks([0, 1])
    """
    return _parsed(text, TypeParser.type)


def parse_base_type(text: str) -> BaseType:
    """Return the base type that a text denotes, such as ``f32[3]``.

    Raises:
        ParseError: the text is not a base type; see :func:`parse_type`.
    """
    return _parsed(text, TypeParser.base_type)


def parse_attribute(text: str) -> Attribute:
    """Return the base type, or the attribute of a plugin, that a text denotes.

    Raises:
        ParseError: the text is neither; see :func:`parse_type`.
    """
    return _parsed(text, TypeParser.attribute)


def _parsed(text: str, rule: Callable[[TypeParser], T]) -> T:
    if isinstance(text, str) and len(text) > MAX_TYPE:  # the tokenizer multiplies its memory
        raise ParseError(f"a type is written with at most {MAX_TYPE} characters, got {len(text)}")
    return parsed(TypeParser(text), rule)


def parsed(parser: P, rule: Callable[[P], T]) -> T:
    """Return the result of a rule that must match the whole text.

    Args:
        parser: a parser at the beginning of its text.
        rule: a method of the parser's class.

    Raises:
        ParseError: the text breaks the rule, or is longer.
    """
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


class TypeParser:
    """Recursive-descent parser of types and attribute values; one method per rule.

    Args:
        text: the text.

    Attributes:
        text: the text.
        tokens: per token its kind, its text and its offset in characters.
        at: the index of the next token.
        depth: the current depth of nesting.

    Raises:
        ParseError: the text has an unknown character, or breaks a rule (from all methods).
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ParseError(f"expected text, got {type(text).__name__}")
        self.text = text
        self.tokens: list[_Token] = list(self._tokenize(text))
        self.at = 0
        self.depth = 0

    def _tokenize(self, text: str) -> Iterator[_Token]:
        at = 0
        while at < len(text):
            if (found := _TOKEN.match(text, at)) is None:
                self._fail_at(at, f"unexpected character {text[at]!r}")
            if found.lastgroup != "space":
                kind = found.group() if found.lastgroup == "mark" else str(found.lastgroup)
                yield kind, found.group(), at
            at = found.end()
        yield "end", "", at

    # -- tokens

    @property
    def kind(self) -> str:
        """The kind of the next token; for a punctuation mark, the mark itself."""
        return self.tokens[self.at][0]

    @property
    def word(self) -> str:
        """The text of the next token."""
        return self.tokens[self.at][1]

    def expect(self, kind: str, word: str | None = None) -> str:
        """Read a token of a kind, and a text if ``word`` is given; return its text."""
        if self.kind != kind or (word is not None and self.word != word):
            shown = "the end" if self.kind == "end" else repr(self.word)
            self.fail(f"expected {word or kind!r}, got {shown}")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, kind: str, word: str | None = None) -> bool:
        """Read the next token if it is of a kind (and text); return whether it was."""
        if self.kind == kind and (word is None or self.word == word):
            self.at += self.kind != "end"
            return True
        return False

    def fail(self, reason: str) -> NoReturn:
        """Raise a :class:`ParseError` at the next token."""
        self._fail_at(self.tokens[self.at][2], reason)

    def _fail_at(self, offset: int, reason: str) -> NoReturn:
        line = self.text.count("\n", 0, offset) + 1
        start = self.text.rfind("\n", 0, offset) + 1
        shown = self.text[start:].split("\n", 1)[0][:200]
        column = offset - start
        marker = f"\n    {shown}\n    {' ' * column}^" if column <= 200 else ""
        raise ParseError(f"line {line}, column {column + 1}: {reason}{marker}")

    def listed(self, item: Callable[[], T], end: str) -> list[T]:
        """Return items separated by commas, up to the mark ``end``."""
        items: list[T] = []
        if not self.accept(end):
            items.append(item())
            while self.accept(","):
                items.append(item())
            self.expect(end)
        return items

    # -- rules

    def enter(self) -> None:
        """Increment the depth of nesting and check its limit."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH}")

    def attr(self) -> AttrValue:
        """Read an attribute value."""
        self.enter()
        try:
            match self.kind, self.word:
                case "string", _:
                    return self.string()
                case "number", _:
                    return self.number()
                case "{", _:
                    return self.mask()
                case "[", _:
                    self.expect("[")
                    return tuple(self.listed(self.attr, "]"))
                case "name", word if word in _WORDS:
                    self.at += 1
                    return _WORDS[word]
                case "name", _:
                    return self.attribute()
            self.fail(f"expected an attribute value, got {self.word!r}")
        finally:
            self.depth -= 1

    def string(self) -> str:
        """Read a string."""
        word = self.expect("string")
        text: str = json.loads(word)
        text.encode()  # raises on a lone surrogate
        return text

    def number(self) -> int | float:
        """Read a number."""
        word = self.expect("number")
        if re.fullmatch(r"-?\d+", word):
            value = int(word)
            normalize(value)  # raises on more than 64 bits
            return value
        return float(word)

    def integer(self) -> int:
        """Read an integer."""
        value = self.number()
        if not isinstance(value, int):
            self.fail(f"expected an integer, got {value}")
        return value

    def mask(self) -> Mask:
        """Read a mask."""
        self.expect("{")
        ranks = self.listed(self.integer, "}")
        if any(rank >= MAX_RANKS for rank in ranks):
            self.fail(f"a rank is below {MAX_RANKS}")
        return Mask.from_ranks(ranks)

    def type(self) -> AnyType:
        """Read a type."""
        base = self.base_type()
        if not self.accept("@"):
            return base
        return MPType(base, None if self.accept("?") else self.mask())

    def base_type(self) -> BaseType:
        """Read a base type."""
        found = self.attribute()
        if not isinstance(found, BaseType):
            self.fail(f"expected a type, got the attribute {found}")
        return found

    def attribute(self) -> Attribute:
        """Read a base type, or an attribute of a plugin."""
        name = self.expect("name")
        if self.accept("["):
            return TensorType(DType(name), self.listed(self.integer, "]"))
        self.expect("<")
        if (cls := type_classes.get(name)) is None:
            self.fail(f"unknown type {name!r}; no plugin that is installed provides it")
        return cls.from_params(tuple(self.listed(self.attr, ">")))
