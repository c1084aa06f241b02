"""What an engine writes to its log: passed on by the front, as an engine has no log of its own.

Code in an engine could wipe a log that it has open, write lines in another's name, or fill the
disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from typing import Any

from mplang_core.ext import printable

MAX_LINE = 64 << 10  # bytes
RATE = 1 << 20  # bytes per second, and at once; more is left out
log = logging.getLogger("mplang.http.front")


class EngineLog:
    """Reader of one engine's log; writes its lines to stderr, each with the name of the session.

    Args:
        party: name of this worker.
        session: name of the session.
        as_json: whether lines are JSON objects.

    Attributes:
        writer: descriptor that the engine gets; the caller closes it.
    """

    def __init__(self, party: str, session: str, *, as_json: bool) -> None:
        self._names = {"party": party, "session": session}
        self._as_json = as_json
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._reader, False)
        self._rest = b""
        self._budget, self._filled = float(RATE), time.monotonic()
        self._left_out = 0
        asyncio.get_running_loop().add_reader(self._reader, self.drain)

    def drain(self) -> None:
        """Pass on what is there."""
        data = b"."
        with contextlib.suppress(BlockingIOError):
            while self._reader >= 0 and (data := os.read(self._reader, MAX_LINE)):
                *lines, self._rest = (self._rest + data).split(b"\n")
                if len(self._rest) > MAX_LINE:
                    lines, self._rest = [*lines, self._rest], b""
                self._pass_on(lines)
        if not data:
            self.close()

    def close(self) -> None:
        """Pass on the last line, and stop. Idempotent."""
        if self._reader >= 0:
            asyncio.get_running_loop().remove_reader(self._reader)
            os.close(self._reader)
            self._reader = -1
            self._pass_on([self._rest] if self._rest else [])

    def _pass_on(self, lines: list[bytes]) -> None:
        now = time.monotonic()
        self._budget = min(RATE, self._budget + RATE * (now - self._filled))
        self._filled = now
        found = []
        for line in lines:
            self._budget -= len(line) + 1
            if self._budget < 0:
                self._left_out += 1
            else:
                found.append(self._line(line))
        if self._left_out and self._budget > 0:
            log.warning("%d lines of an engine's log are left out", self._left_out)
            self._left_out = 0
        if found:
            with contextlib.suppress(OSError):
                os.write(2, "".join(f"{line}\n" for line in found).encode())

    def _line(self, line: bytes) -> str:
        text = line.decode(errors="replace")
        if not self._as_json:
            return f"{self._names['session'][:8]}: {printable(text)}"
        fields: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            fields = json.loads(text)
        if not isinstance(fields, dict):  # such as the stack of a kernel that crashed
            fields = {"level": "warning", "logger": "mplang.http.engine", "message": text}
        return json.dumps(fields | self._names)
