"""Picture of a program: a sequence diagram of its parties and the host, by the user's lines."""

from __future__ import annotations

from dataclasses import dataclass

from mplang_analysis import picture_svg, picture_text
from mplang_analysis.diagram import Diagram
from mplang_analysis.report import Drawing


@dataclass(frozen=True, slots=True, repr=False)
class Picture(Drawing, Diagram):
    """A sequence diagram that draws itself, as SVG or in characters."""

    def text(self, columns: int = 100) -> str:
        """Return the picture in characters.

        Args:
            columns: its width; where the lanes do not fit, a list takes their place.
        """
        return "\n".join(text for text, _ in picture_text.draw(self, columns))

    def rich(self) -> object:
        """Return the picture for rich: as wide as the terminal, up to 100 columns."""
        return picture_text.RichPicture(self)

    def html(self) -> str:
        """Return the picture as HTML: inline SVG for wide and narrow columns."""
        return picture_svg.draw(self)

    def svg(self) -> str:
        """Return the picture as a document of SVG, which loads nothing."""
        return picture_svg.document(self)
