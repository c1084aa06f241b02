"""Logs of workers under test: where the reasons of failures are."""

from __future__ import annotations

import re
import time
from pathlib import Path

SECONDS = 30.0


class LogReader:
    """Reader of what a worker logs from now on.

    Args:
        *paths: paths of the log files; those of all parties if any of them may fail first.
    """

    def __init__(self, *paths: Path) -> None:
        self._offsets = {path: path.stat().st_size for path in paths}

    def wait_for(self, pattern: str) -> None:
        """Wait until the pattern is in the log; lines are separated by one line break."""
        deadline = time.monotonic() + SECONDS
        while not re.search(pattern, text := self._text()):
            assert time.monotonic() < deadline, f"{pattern!r} is not in:\n{text}"
            time.sleep(0.05)

    def _text(self) -> str:
        return "".join(path.read_bytes()[n:].decode() for path, n in self._offsets.items())
