"""Programs, graphs, ops and values: plain data. The rules are in the op definitions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, TypeAlias

from mplang_core.display import Displayed
from mplang_core.mask import Mask
from mplang_core.types import BaseType, MPType, size_of

AnyType: TypeAlias = MPType | BaseType
"""The type of a value: multi-party at party level, a base type in the body of a ``pcall``."""


@singledispatch
def text_of(node: object) -> str:
    """Return the text of a graph or a program; :mod:`mplang_core.ir.printer` registers both."""
    raise NotImplementedError(f"no printer for a {type(node).__name__}")


@singledispatch
def digest_of(program: object) -> str:
    """Return the digest of a program; :mod:`mplang_core.ir.wire` registers it."""
    raise NotImplementedError(f"no digest for a {type(program).__name__}")


@dataclass(frozen=True, slots=True)
class Location:
    """Source line of the user. As text it has the file name only, never the path.

    In a notebook it is as in Python's own tracebacks, ``Cell In[5], line 2``; at the prompt of
    Python ``the prompt, line 1``. Two are equal if file and line are.

    Args:
        file: the path or name of the file.
        line: the line, from 1.
        function: the qualified name of the function that the line is in, if it is known.
        text: the text of the line, if somebody has told it; ``None`` for a line that ran in this
            process, which finds its text in :mod:`linecache`.
    """

    file: str
    line: int
    function: str = field(default="", compare=False)
    text: str | None = field(default="", compare=False)

    @property
    def name(self) -> str:
        """The name of the file without its path, or the notebook's cell: ``Cell In[5]``."""
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        cell = shell.compile.format_code_name(self.file) if shell else None
        return " ".join(cell) if cell else os.path.basename(self.file)

    def __str__(self) -> str:
        name = self.name
        if name.startswith(("<stdin>", "<python-input-")):  # the latter from Python 3.13
            name = "the prompt"
        in_file = not name.startswith("Cell ") and name != "the prompt"
        return f"{name}:{self.line}" if in_file else f"{name}, line {self.line}"


@dataclass(slots=True, eq=False)
class Value:
    """SSA value: a result of one op, or an input of one graph.

    Attributes:
        type: its type.
    """

    type: AnyType


@dataclass(slots=True, eq=False)
class Operation:
    """Node of a graph: one application of an op.

    Attributes:
        opcode: the op's name, ``dialect.op``.
        inputs: the operands, defined earlier in the same graph.
        outputs: the values that it defines.
        attrs: attribute values (:data:`~mplang_core.ir.AttrValue`), typed ``Any``, since their
            kinds are those that the op's definition declares.
        regions: nested graphs by name. They are closed: they use their own inputs only.
        location: the user's source line; ``None`` if unknown.
    """

    opcode: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    regions: Mapping[str, Graph] = field(default_factory=dict)
    location: Location | None = None

    @property
    def dialect(self) -> str:
        """The part of the opcode before the first dot."""
        return self.opcode.partition(".")[0]


@dataclass(slots=True, eq=False, repr=False)
class Graph:
    """Ops in SSA form.

    Attributes:
        inputs: the parameters.
        ops: the ops in the order of their execution.
        outputs: the results.
    """

    inputs: list[Value] = field(default_factory=list)
    ops: list[Operation] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)

    def walk(self) -> Iterator[Operation]:
        """Yield all ops; those of regions follow the op of the region."""
        for op in self.ops:
            yield op
            for region in op.regions.values():
                yield from region.walk()

    def __str__(self) -> str:
        return text_of(self)

    def __repr__(self) -> str:
        return f"<Graph of {sum(1 for _ in self.walk())} ops>"


@dataclass(slots=True, eq=False, repr=False, weakref_slot=True)
class Program(Displayed):
    """Program: a graph for a set of parties.

    Attributes:
        name: a name for people; not part of the digest.
        mask: the parties that run it.
        graph: the ops.
    """

    name: str
    mask: Mask
    graph: Graph
    _digest: str | None = field(default=None, repr=False)
    _line_hash: int | None = field(default=None, repr=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of the canonical bytes without source locations and name, in hex."""
        if self._digest is None:
            self._digest = digest_of(self)
        return self._digest

    @property
    def line_hash(self) -> int:
        """A hash of the source lines and their texts, which the digest excludes."""
        if self._line_hash is None:
            lines = (op.location for op in self.graph.walk())
            self._line_hash = hash(tuple(x and (x, x.function, x.text) for x in lines))
        return self._line_hash

    def size(self) -> int:
        """Return the size of its constants and code in bytes, each object counted once."""
        values = (value for op in self.graph.walk() for value in op.attrs.values())
        return sum({id(value): size_of(value) for value in values}.values())

    def __repr__(self) -> str:
        return f"<Program {self.name!a} on {self.mask}, {len(self.graph.ops)} ops>"

    def __str__(self) -> str:
        return text_of(self)
