"""Logs of workers under test: where the reasons of failures are."""

from __future__ import annotations

import re
import time
from pathlib import Path

SECONDS = 30.0


class LogReader:
    """Reader of what a worker logs from now on.

    Args:
        path: path of the log file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size

    def wait_for(self, pattern: str) -> None:
        """Wait until the pattern is in the log; lines are separated by one line break."""
        deadline = time.monotonic() + SECONDS
        while not re.search(pattern, text := self._path.read_bytes()[self._offset :].decode()):
            assert time.monotonic() < deadline, f"{pattern!r} is not in:\n{text}"
            time.sleep(0.05)
