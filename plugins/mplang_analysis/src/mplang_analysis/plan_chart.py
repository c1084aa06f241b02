"""Steps of a plan: boxes and arrows over the columns of owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LEGEND = "Dashed: protected, as shares are."


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of a plan.

    Attributes:
        kind: ``query``: one party queries or reads. ``together``: an op whose parties send each
            other messages. ``move``: a value is sent. ``result``: what the program returns.
        lanes: who takes part; of a move the sender first.
        title: what runs it.
        text: what it is.
        secret: whether it is protected.
    """

    kind: Literal["query", "together", "move", "result"]
    lanes: tuple[int, ...]
    title: str
    text: str
    secret: bool = False


@dataclass(frozen=True, slots=True)
class PlanChart:
    """Steps over columns.

    Attributes:
        title: what it is of.
        lanes: the names of the parties.
        steps: in the order of the program.
    """

    title: str
    lanes: tuple[str, ...]
    steps: tuple[PlanStep, ...]

    def who(self, step: PlanStep) -> str:
        """Return who takes part in a step, or from whom to whom something is sent."""
        names = [self.lanes[lane] for lane in step.lanes]
        return f"{names[0]} → {', '.join(names[1:])}" if step.kind == "move" else ", ".join(names)

    def heading(self, step: PlanStep) -> str:
        """Return who takes part in a step, and what runs it."""
        return f"{self.who(step)}: {step.title}" if step.title else self.who(step)
