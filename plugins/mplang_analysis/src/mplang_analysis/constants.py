"""Constants of a program: values that it contains, as who approves it is shown them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from mplang_core import Program
from mplang_core.ext import Location, MPLangError, Operation, PublicLiteral, interface_of, unpack

MOST, FIRST = 16, 4  # values that are shown whole, and of more of them
LONGEST, TOTAL = 40, 400  # characters of one value, and of all that are shown whole


class Constant(NamedTuple):
    """Values of one type.

    Attributes:
        name: what they are called where they stand, such as a column; may be empty.
        type: their type.
        size: how many there are.
        first: texts of all of them if they are few and short, else of the first ones.
        digest: SHA-256 of an array's bytes, in C order and little-endian; of other values, of their
            JSON, one per line.
    """

    name: str
    type: str
    size: int
    first: tuple[str, ...]
    digest: str

    @classmethod
    def of_values(cls, name: str, kind: str, values: Sequence[Any]) -> Constant:
        """Return the constant of some values.

        Args:
            name: what they are called.
            kind: their type.
            values: what JSON takes; others by their text.

        Example:
            >>> Constant.of_values("city", "string", ["Bern", "Chur"]).shown
            '"Bern", "Chur"'
        """
        lines = (json.dumps(each, ensure_ascii=False, default=str) for each in values)
        digest = hashlib.sha256()
        first: list[str] = []
        for line in lines:
            digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
            if len(first) < MOST:
                first.append(line)
        return cls(name, kind, len(values), _cut(first, len(values)), digest.hexdigest())

    @classmethod
    def of_array(cls, name: str, kind: str, array: np.ndarray[Any, Any]) -> Constant:
        """Return the constant of an array.

        Args:
            name: what it is called.
            kind: its type.
            array: the array.
        """
        flat = np.ascontiguousarray(array).reshape(-1)
        data = flat.astype(flat.dtype.newbyteorder("<"), copy=False).tobytes()
        first = [str(each) for each in flat[:MOST].tolist()]
        return cls(name, kind, flat.size, _cut(first, flat.size), hashlib.sha256(data).hexdigest())

    @property
    def shown(self) -> str:
        """All values, or how many there are, the digest and the first ones."""
        values = ", ".join(self.first)
        if len(self.first) == self.size:
            return values
        return f"{self.size} values, SHA-256 {self.digest}, the first: {values}, …"


def _cut(first: Sequence[str], count: int) -> tuple[str, ...]:
    if count == len(first) and sum(map(len, first)) <= TOTAL:
        return tuple(first)
    few = first[: min(FIRST, count - 1)] if count else first
    return tuple(each if len(each) <= LONGEST else _shorter(each) for each in few)


def _shorter(text: str) -> str:
    """Return the beginning of a value; of a text it stays in quotes, which nobody else closes."""
    return f"{text[: LONGEST - 2]}…" + ('"' if text.startswith('"') else "")


@runtime_checkable
class HasConstants(Protocol):
    """Op interface: the values that an op's attributes contain."""

    def constants(self, op: Operation) -> Sequence[Constant]:
        """Return them. The op was verified, its attributes are untrusted."""


@dataclass(frozen=True, slots=True)
class ConstantsRule:
    """A function as the interface :class:`HasConstants`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op)``.
    """

    rule: Callable[[Operation], Sequence[Constant]]

    def constants(self, op: Operation) -> Sequence[Constant]:
        """Return what the function returns."""
        return self.rule(op)


class Found(NamedTuple):
    """A constant, and where it stands.

    Attributes:
        line: the user's line.
        op: the op that has it.
        constant: the constant.
    """

    line: Location | None
    op: str
    constant: Constant


def constants(program: Program) -> list[Found]:
    """Return the constants that a program contains, those of equal lines, ops and values once.

    Args:
        program: the program.

    Example:
        >>> import mplang_core as mp
        >>> cluster = mp.ClusterSpec.simple(1)
        >>> made = mp.compile(lambda: mp.constant([7, 8]), cluster_spec=cluster)
        >>> [each.constant.shown for each in constants(made.program)]
        ['7, 8']
    """
    found = (
        Found(op.location, op.opcode, each)
        for op in program.graph.walk()
        for each in constants_of(op)
    )
    return list(dict.fromkeys(found))


def constants_of(op: Operation) -> Sequence[Constant]:
    """Return the constants of an op; of one that declares none, what its attributes hold."""
    rule, literal = interface_of(op, HasConstants), interface_of(op, PublicLiteral)
    try:
        if rule is not None:
            return rule.constants(op)
        if literal is not None:
            array = literal.literal(op)
            return [Constant.of_array("", f"{array.dtype}{list(array.shape)}", array)]
    except (MPLangError, ValueError, TypeError):  # damaged: told by its bytes
        pass
    return list(_held(op.attrs.items()))


def _held(attrs: Iterable[tuple[str, Any]]) -> Iterator[Constant]:
    """Yield arrays, bytes and lists among attributes; not code, which is shown whole."""
    for name, value in attrs:
        if isinstance(value, np.ndarray):
            yield Constant.of_array(name, f"{value.dtype}{list(value.shape)}", value)
        elif isinstance(value, bytes) and not _is_code(value):
            yield _of_bytes(name, value)
        elif isinstance(value, Mapping):
            yield from _held((f"{name}.{key}", each) for key, each in value.items())
        elif isinstance(value, tuple):
            plain = [each for each in value if isinstance(each, str | int | float)]
            if plain:
                yield Constant.of_values(name, "list", plain)
            for each in value:
                if isinstance(each, bytes):
                    yield _of_bytes(name, each)
                elif isinstance(each, tuple | Mapping | np.ndarray):
                    yield from _held([(name, each)])


def _of_bytes(name: str, data: bytes) -> Constant:
    return Constant.of_array(name, "bytes", np.frombuffer(data, np.uint8))


def _is_code(value: bytes) -> bool:
    try:
        unpack(value)
    except ValueError:
        return False
    return True
