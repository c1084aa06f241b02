"""Forwarding of child processes' output to the front's log, as engines have none.

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
from datetime import UTC, datetime
from typing import Any

from mplang_core.ext import printable
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.logs import log_cause
from mplang_worker.front.log_quota import LogQuota

MAX_LINE = 64 << 10  # bytes
RATE = 1 << 20  # bytes per second, and at once; more is left out
READS = 16  # of the pipe in a turn of the event loop: all that it holds, and more
TOGETHER = 0.05  # seconds in which plain lines are of one event, such as the stack of a crash
log = logging.getLogger("mplang.http.front")


class ProcessLog:
    """Reader of one process's output; writes its lines to stderr, each with the session's name.

    Args:
        party: name of this worker.
        session: name of the engine's session; ``None`` for the warm process.
        as_json: whether lines are JSON objects, one for each event.
        coordinator: whose session it is; ``None`` for the warm process.
        quota: how many bytes its coordinator may have written.
        reader: descriptor to read from; by default of a new pipe.

    Attributes:
        writer: descriptor of the new pipe that the process gets; the caller closes it.
    """

    def __init__(
        self,
        party: str,
        session: str | None,
        *,
        as_json: bool,
        coordinator: str | None = None,
        quota: LogQuota | None = None,
        reader: int | None = None,
    ) -> None:
        self._names = {"party": party, "session": session}
        self._coordinator, self._quota = coordinator, quota
        self._logger = "mplang.http.warm" if session is None else "mplang.http.engine"
        self._as_json = as_json
        self.writer = -1
        if reader is None:
            reader, self.writer = os.pipe2(os.O_CLOEXEC)
        self._reader = reader
        os.set_blocking(self._reader, False)
        self._rest = b""
        self._plain: list[str] = []  # lines of the event that is being read
        self._timer: asyncio.TimerHandle | None = None
        self._budget, self._filled = float(RATE), time.monotonic()
        self._left_out = 0
        asyncio.get_running_loop().add_reader(self._reader, self.drain)

    @classmethod
    def of(cls, session: tuple[str, str], config: WorkerConfig, quota: LogQuota) -> ProcessLog:
        """Return the reader of a process of a session.

        Args:
            session: coordinator and name of the session.
            config: configuration of the worker.
            quota: how many bytes its coordinator may have written.
        """
        coordinator, name = session
        as_json = config.log_format == "json"
        return cls(config.name, name, as_json=as_json, coordinator=coordinator, quota=quota)

    def drain(self) -> None:
        """Pass on what is there; what comes meanwhile has its turn."""
        data = b"."
        with contextlib.suppress(BlockingIOError):
            for _ in range(READS):
                if self._reader < 0 or not (data := os.read(self._reader, MAX_LINE)):
                    break
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
            self._end_event()

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
                found.append(line.decode(errors="replace"))
        if self._left_out and self._budget > 0:
            with log_cause(self._coordinator):
                log.warning("%d lines of an engine's log are left out", self._left_out)
            self._left_out = 0
        if self._as_json:
            self._write_events(found)
        else:
            session = (self._names["session"] or "")[:8]
            self._write([f"{session}: {printable(text)}" for text in found])

    def _write_events(self, lines: list[str]) -> None:
        """Write lines that are records as they are, and plain ones that follow another as one."""
        for line in lines:
            fields = _record(line)
            if fields is not None:
                self._end_event()
                self._write([self._event(fields)])
            elif line.strip():
                self._plain.append(line)
                if sum(map(len, self._plain)) > MAX_LINE:
                    self._end_event()
        if self._plain and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOGETHER, self._end_event)

    def _end_event(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._plain:
            text = "\n".join(self._plain)
            self._plain.clear()
            self._write([self._event({"message": printable(text, keep="\n")})])

    def _write(self, lines: list[str]) -> None:
        data = [f"{line}\n".encode() for line in lines]
        if self._quota is not None and self._coordinator is not None:
            data = [line for line in data if self._quota.take(self._coordinator, len(line))]
        if data:
            with contextlib.suppress(OSError):
                os.write(2, b"".join(data))

    def _event(self, fields: dict[str, Any]) -> str:
        now = datetime.now(UTC).isoformat()
        record = {"time": now, "level": "warning", "logger": self._logger, "message": ""}
        return json.dumps(record | fields | self._names)


def _record(line: str) -> dict[str, Any] | None:
    """Return the fields of a line that is a JSON object; ``None`` for any other."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(line)
        json.dumps(found, allow_nan=False)  # what Python writes of infinity is not JSON
        return found if isinstance(found, dict) else None
    return None
