"""Number checks of simulators: comparison of all shares in plain.

Only simulators have them, since their parties share memory. The exchanged data is not a message
and not counted as traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mplang_core.ir import Location


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding of a number check: a wrong number.

    Args:
        text: the problem and the remedy.
        op: the operation that computed it, in the user's terms.
        line: the user's source line; ``None`` if unknown.
    """

    text: str
    op: str
    line: Location | None = None

    def __str__(self) -> str:
        return f"{self.line}: {self.text}" if self.line else self.text


class NumberChecks(Protocol):
    """Protocol of the number checks of one simulator.

    Attributes:
        told: keys of reported findings, which kernels need not check again.
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
        """Submit the data of one party; the last party to arrive runs the check, the others wait.

        Args:
            key: the message key of the op, which begins with the run.
            rank: this party.
            members: the number of parties.
            mine: the data of this party.
            check: gets the data of all parties by rank, and returns a finding or ``None``.

        Raises:
            PrecisionError: the check has a finding, and findings are errors.
            AbortedError: the run ended before all parties arrived.
        """

    def tell(self, finding: Finding) -> None:
        """Report a finding of one party.

        Raises:
            PrecisionError: findings are errors.
        """
