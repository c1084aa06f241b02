"""Makes the first step of the clocks of engines that of an hour, when a worker imports it."""

from mplang_worker.base import step_clock

step_clock.FIRST = 3600.0
