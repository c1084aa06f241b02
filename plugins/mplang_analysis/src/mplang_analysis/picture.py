"""Picture of a program: a sequence diagram of its parties and the host, by the user's lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mplang_analysis import picture_svg, picture_text
from mplang_analysis.diagram import Diagram


@dataclass(frozen=True, slots=True)
class Picture(Diagram):
    """A sequence diagram that draws itself, as SVG or in characters."""

    def text(self, columns: int = 100) -> str:
        """Return the picture in characters.

        Args:
            columns: its width; where the lanes do not fit, a list takes their place.
        """
        return "\n".join(text for text, _ in picture_text.draw(self, columns))

    def rich(self) -> Any:
        """Return the picture for rich: as wide as the terminal, up to 100 columns."""
        return picture_text.RichPicture(self)

    def html(self) -> str:
        """Return the picture as an element of HTML, an inline SVG that loads nothing."""
        return picture_svg.draw(self)

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
