"""Source lines of an artifact: for each op the function and the text of its line."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from mplang_analysis import LineText, line_texts
from mplang_analysis.ext import MAX_TEXT
from msgspec import Meta

from mplang_cli.artifact.data import Data
from mplang_core import Program
from mplang_core.ext import printable

Text = Annotated[str, Meta(max_length=MAX_TEXT)]
MAX_LINES = 1 << 16


class Sources(Data, frozen=True):
    """Functions and texts of lines, each pair once.

    Attributes:
        lines: function and text of each line.
        ops: for each op of the program, in the order of a walk, the position of its line; empty
            if no line is told.
    """

    lines: Annotated[tuple[tuple[Text, Text], ...], Meta(max_length=MAX_LINES)] = ()
    ops: tuple[int, ...] = ()

    @classmethod
    def of(cls, program: Program) -> Sources:
        """Return those of a program."""
        known: dict[LineText, int] = {}
        ops = tuple(known.setdefault(each, len(known)) for each in line_texts(program))
        return cls(tuple((each.function, each.text) for each in known), ops)

    def attach(self, program: Program) -> None:
        """Set functions and texts of the lines of a program, which was read from an artifact.

        Raises:
            ValueError: they do not fit the program, or a text is none that a person reads.
        """
        for text in {part for line in self.lines for part in line}:
            if printable(text) != text or text != text.strip():
                raise ValueError(f"a source line has characters that are not shown: {text!a:.80}")
        ops = list(program.graph.walk())
        if self.ops and len(self.ops) != len(ops):
            raise ValueError(f"it tells the lines of {len(self.ops)} ops, and has {len(ops)}")
        for op, at in zip(ops, self.ops, strict=False):
            if not 0 <= at < len(self.lines):
                raise ValueError(f"an op has line {at} of {len(self.lines)}")
            function, text = self.lines[at]
            if op.location is not None:
                op.location = replace(op.location, function=function, text=text)
            elif function or text:
                raise ValueError("an op without a line has a text of one")
