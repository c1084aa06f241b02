"""Peaks of the memory of processes, as Linux tells them."""

from __future__ import annotations

from collections.abc import Iterable


class Peaks:
    """By how much the resident memory of processes grows at its peak, from now on.

    Args:
        pids: the processes.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._before = {}
        for pid in pids:
            with open(f"/proc/{pid}/clear_refs", "w") as file:
                file.write("5")  # forgets the peak of before
            self._before[pid] = self._read(pid)

    @staticmethod
    def _read(pid: int) -> int:
        with open(f"/proc/{pid}/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))

    def grown(self) -> list[int]:
        """Return the growth of each process in bytes."""
        return [self._read(pid) - before for pid, before in self._before.items()]
