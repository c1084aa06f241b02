"""Sequence diagram of a program: lanes of parties, and signs by the user's lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mplang_analysis.line_texts import in_curly_quotes
from mplang_analysis.party_names import quoted_line

LEGEND = (
    "A dot: the party runs something. An arrow: a message, from the circle to the tips. "
    "A diamond: something becomes plain, of shares from the circles beside it. Red, with the word "
    "DISCLOSES: the receiver can read or infer data of another party."
)
"""What the signs mean."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A sign in a picture: what one line of the program does at some lanes.

    Attributes:
        line: the user's line; empty if unknown.
        kind: ``run``: the lanes run something. ``send``: a message, or a result that the host
            may fetch. ``open``: something becomes plain at the lanes.
        sender: the lane that an arrow comes from; ``None`` where there is no arrow.
        lanes: those who run, receive or open.
        text: what it is, in words.
        label: a word on an arrow: the form of what is sent.
        dashed: whether it is protected, as a share is.
        alert: whether it discloses something.
        rows: the rows of the table that it stands for, by index.
        shares: the lanes that send shares of what becomes plain.
        own: the lanes to which an alert discloses nothing, as the data is theirs.
    """

    line: str
    kind: Literal["run", "send", "open"]
    sender: int | None
    lanes: tuple[int, ...]
    text: str
    label: str = ""
    dashed: bool = False
    alert: bool = False
    rows: tuple[int, ...] = ()
    shares: tuple[int, ...] = ()
    own: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagram:
    """A sequence diagram.

    Attributes:
        title: its title.
        lanes: the names of the parties, and of the host where it takes part.
        marks: its signs, from the top.
        legend: what the signs mean.
        sources: the texts of lines, as far as they are known.
    """

    title: str
    lanes: tuple[str, ...]
    marks: tuple[Mark, ...]
    legend: str = LEGEND
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    def heading(self, line: str) -> str:
        """Return a line with its text; empty for what is at no line."""
        source = self.sources.get(line, "")
        return " ".join(
            [*([quoted_line(line)] if line else []), *([in_curly_quotes(source)] if source else [])]
        )
