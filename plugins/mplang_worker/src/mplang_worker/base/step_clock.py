"""Step clock: the times at which a worker tells its coordinator of the end of a run.

How long a run takes whose program has a row ``duration`` depends on private data without a bound.
At steps that double, a run of *t* seconds tells no more than the logarithm of *t*.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

FIRST = 1.0  # seconds from the begin to the first step


class StepClock:
    """Clock with steps 1, 2, 4, 8, … seconds after its begin, which is now.

    Args:
        now: returns the time in seconds.
        pause: sleeps for so many seconds.

    Example:
        >>> times = iter([100.0, 100.3, 105.0, 108.0])
        >>> clock = StepClock(lambda: next(times))
        >>> [round(clock.left(), 6) for _ in range(3)]
        [0.7, 3.0, 0.0]
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._now, self._pause = now, pause
        self._begun = now()

    def left(self) -> float:
        """Return the seconds until the next step; 0 at a step."""
        elapsed = self._now() - self._begun
        steps = math.ceil(math.log2(elapsed / FIRST)) if elapsed > FIRST else 0
        return float(FIRST * 2**steps - elapsed)

    def wait(self) -> None:
        """Wait until the next step."""
        self._pause(self.left())
