"""Logs of workers under test: where the reasons of failures are."""

from __future__ import annotations

import re
from pathlib import Path

from mplang_testing.waiting import wait_until


class LogReader:
    """Reader of what a worker logs from now on.

    Args:
        *paths: paths of the log files; those of all parties if any of them may fail first.
        begin: where to read from, in bytes; their ends by default.
    """

    def __init__(self, *paths: Path, begin: int | None = None) -> None:
        self._offsets = {path: path.stat().st_size if begin is None else begin for path in paths}

    def wait_for(self, pattern: str) -> None:
        """Wait until the pattern is in the log; lines are separated by one line break."""
        try:
            wait_until(lambda: re.search(pattern, self._text()))
        except AssertionError:
            raise AssertionError(f"{pattern!r} is not in:\n{self._text()}") from None

    def _text(self) -> str:
        new = (path.read_bytes()[n:] for path, n in self._offsets.items())
        return "".join(data.decode(errors="replace") for data in new)  # it may end amid a letter
