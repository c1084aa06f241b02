"""Number checks: where a simulator's parties may compare all shares in plain.

Only a simulator has them: its parties share memory and hide nothing from each other. What they
hand over here is no message, so no traffic counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mplang_core.ir import Location


@dataclass(frozen=True, slots=True)
class Finding:
    """A wrong number.

    Args:
        text: what is wrong, and the remedy.
        op: what computed it, in the user's words.
        line: the user's line, if it is known.
    """

    text: str
    op: str
    line: Location | None = None

    def __str__(self) -> str:
        return f"{self.line}: {self.text}" if self.line else self.text


class NumberChecks(Protocol):
    """Checks of one simulator.

    Attributes:
        told: what a kernel has told already and need not examine again.
    """

    told: set[Any]

    def meet(
        self,
        key: str,
        rank: int,
        members: int,
        mine: Any,
        check: Callable[[Mapping[int, Any]], Finding | None],
    ) -> None:
        """Hand over what one party has. The last one to come checks, and the others wait.

        Args:
            key: the op's place, which begins with the run.
            rank: this party.
            members: how many parties come.
            mine: what this party has.
            check: is given what all have, by rank.

        Raises:
            PrecisionError: the check found something, and that is an error.
            AbortedError: the run ended before all had come.
        """

    def tell(self, finding: Finding) -> None:
        """Report what one party found by itself.

        Raises:
            PrecisionError: findings are errors.
        """
