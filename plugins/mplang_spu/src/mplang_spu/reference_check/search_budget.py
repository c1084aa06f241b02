"""Budget of the search for the op that gave a wrong number, which takes a second run."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from mplang_core.ext import Location

ALWAYS = 10.0
"""Seconds that a search may take in any case, and after which it is shown."""
COMPILING = 1.5e-3  # seconds of an op whose value is a result of the second run


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """Time budget of a search.

    Args:
        ratio: times as long as the run; 0 for no search at all.
        run: seconds that the run took.
        ops: the number of ops of the function.

    Example:
        >>> [SearchBudget(1.0, seconds, ops=100).suffices for seconds in (0.5, 60)]
        [True, False]
        >>> [SearchBudget(ratio, run=60, ops=100).suffices for ratio in (2.0, 0.0)]
        [True, False]
    """

    ratio: float
    run: float
    ops: int

    @property
    def needed(self) -> float:
        """Seconds that a search takes, about."""
        return self.run + self.ops * COMPILING

    @property
    def suffices(self) -> bool:
        """Whether the search is within the budget."""
        return self.ratio > 0 and self.needed <= max(ALWAYS, self.ratio * self.run)

    @property
    def left_out(self) -> str:
        """What a message says of a search that was left out."""
        if self.ratio == 0:
            return " Which op gave it was not searched for: check_budget=0."
        return (
            " Not located: budget. To find the op that gave it takes about "
            f"{self.needed:.0f} s, the run took {self.run:.0f}; a Simulator with "
            f"check_budget={math.ceil(self.needed / max(self.run, 0.01))} searches."
        )


@contextlib.contextmanager
def shown(line: Location | None) -> Iterator[None]:
    """Print after ten seconds that a search is on, so that nobody takes it for a run that hangs."""
    text = (
        f"{line or 'mplang'}: SPU's numbers are not float64's; searching for the op that gave them "
        "(check_budget=0 leaves that out)"
    )
    timer = threading.Timer(ALWAYS, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
