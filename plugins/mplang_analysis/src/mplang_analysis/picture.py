"""Picture of a program: a sequence diagram of its parties and the host, by the user's lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

LEGEND = (
    "A dot: the party runs something. An arrow: a message, from the circle to the tips. "
    "A diamond: something becomes plain. Red, with the word DISCLOSES: the receiver can read or "
    "infer data of another party."
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


@dataclass(frozen=True, slots=True)
class Picture:
    """A sequence diagram, drawn as SVG or in characters.

    Attributes:
        title: its title.
        lanes: the names of the parties; the last one is the host.
        marks: its signs, from the top.
    """

    title: str
    lanes: tuple[str, ...]
    marks: tuple[Mark, ...]

    def text(self, columns: int = 100) -> str:
        """Return the picture in characters.

        Args:
            columns: its width; where the lanes do not fit, a list takes their place.
        """
        from mplang_analysis.picture_text import draw

        return "\n".join(text for text, _ in draw(self, columns))

    def rich(self) -> Any:
        """Return the picture for rich: as wide as the terminal, up to 100 columns."""
        from mplang_analysis.picture_text import RichPicture

        return RichPicture(self)

    def html(self) -> str:
        """Return the picture as an element of HTML, an inline SVG that loads nothing."""
        from mplang_analysis.picture_svg import draw

        return draw(self)

    def svg(self) -> str:
        """Return the picture as a document of SVG, which loads nothing."""
        head = '<?xml version="1.0" encoding="utf-8"?>\n'
        return head + self.html().replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)

    def __str__(self) -> str:
        return self.text()

    def __rich__(self) -> Any:
        return self.rich()

    def _repr_html_(self) -> str:
        return self.html()
