"""LearnerGrid: texts by owners and learners."""

from __future__ import annotations

from dataclasses import dataclass

LEGEND = "Red: data of another party becomes known. Shares that nobody opens tell nothing."


@dataclass(frozen=True, slots=True)
class LearnerGrid:
    """Texts of a matrix.

    Attributes:
        title: its title.
        parties: the parties of the program.
        owners: the parties whose data it is, a row each.
        learners: who learns, a column each; those that learn the same are one.
        cells: a text for each owner and learner.
        harmless: texts of cells that disclose nothing.
    """

    title: str
    parties: tuple[str, ...]
    owners: tuple[str, ...]
    learners: tuple[tuple[str, ...], ...]
    cells: tuple[tuple[str, ...], ...]
    harmless: tuple[str, ...]

    def alert(self, text: str) -> bool:
        """Return whether a cell with this text discloses something."""
        return text not in self.harmless
