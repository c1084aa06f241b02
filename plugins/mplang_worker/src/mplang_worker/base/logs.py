"""Logging of a worker: each line has the party, session, run and op."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol

from mplang_analysis.ext import shortened

from mplang_core.ext import printable

MAX_MESSAGE = 1000  # bytes
MAX_DETAIL = 64_000  # characters of a traceback
FIELDS = ("party", "session", "run", "op")


class LoggedRun(Protocol):
    """Run of a program, as log records name it."""

    run: str

    def op_location(self) -> dict[str, str | None]:
        """Return the running op, and its line in the coordinator's source."""


_context: ContextVar[tuple[str | None, LoggedRun | None]] = ContextVar(
    "mplang_log", default=(None, None)
)
_cause: ContextVar[str | None] = ContextVar("mplang_log_cause", default=None)


@contextlib.contextmanager
def log_context(session: str, job: LoggedRun | None = None) -> Iterator[None]:
    """Attach a session and a job to all log records of this thread.

    Args:
        session: name of the session.
        job: the job, for its run and running op.

    Example:
        >>> with log_context("5c1f"):
        ...     logging.getLogger("mplang.http").info("its coordinator was not heard of")
    """
    token = _context.set((session, job))
    try:
        yield
    finally:
        _context.reset(token)


@contextlib.contextmanager
def log_cause(cause: str | None) -> Iterator[None]:
    """Count what is logged inside of ``with`` in the quota of a coordinator.

    Args:
        cause: the coordinator; ``None`` for the worker itself, which has no quota.
    """
    token = _cause.set(cause)
    try:
        yield
    finally:
        _cause.reset(token)


def charge_log(cause: str) -> None:
    """Count what the rest of this task logs in the quota of a coordinator."""
    _cause.set(cause)


def limit_log(may_write: Callable[[str, int], bool]) -> None:
    """Apply quotas to this process's log.

    Args:
        may_write: returns whether a line may be written, by who causes it and its bytes.
    """
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _LimitedHandler):
            handler.may_write = may_write


def configure_logging(name: str | None, log_format: str, log_level: str) -> None:
    """Configure the root logger of this process to write to stderr.

    In JSON also warnings and uncaught exceptions are records, so that each line is an object.

    Args:
        name: name of the party; ``None`` while it is unknown.
        log_format: ``text`` or ``json``.
        log_level: minimum level.
    """
    handler = _LimitedHandler()
    handler.addFilter(_ContextFilter(name))
    handler.setFormatter(_JsonFormatter() if log_format == "json" else _TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(log_level.upper())
    if log_format == "json":
        logging.captureWarnings(True)
        sys.excepthook = _log_uncaught
        sys.unraisablehook = threading.excepthook = _log_uncaught_by
    elif sys.excepthook is _log_uncaught:  # of an earlier call, before the file was read
        logging.captureWarnings(False)
        sys.excepthook, sys.unraisablehook = sys.__excepthook__, sys.__unraisablehook__
        threading.excepthook = threading.__excepthook__


def json_event(name: str, message: str, **fields: str) -> str:
    """Return a record as a JSON line, for what is told whatever the log's level.

    Args:
        name: name of the party.
        message: text for people.
        **fields: further fields.
    """
    record = logging.LogRecord("mplang.http.front", logging.INFO, "", 0, message, (), None)
    _ContextFilter(name).filter(record)
    return json.dumps(json.loads(_JsonFormatter().format(record)) | fields)


def _log_uncaught(
    kind: type[BaseException], error: BaseException | None, where: TracebackType | None
) -> None:
    told = (kind, error or kind(), where)
    logging.getLogger("mplang.http").critical("an exception was not caught", exc_info=told)


def _log_uncaught_by(told: Any) -> None:
    """Log what a thread or a finalizer has raised."""
    _log_uncaught(told.exc_type, told.exc_value, told.exc_traceback)


class _LimitedHandler(logging.StreamHandler[Any]):
    """Handler that leaves out the lines of whoever has used up its quota."""

    may_write: Callable[[str, int], bool] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        cause = _cause.get()
        if cause is None or self.may_write is None or self.may_write(cause, self._size(record)):
            super().emit(record)

    def _size(self, record: logging.LogRecord) -> int:
        return len(self.format(record).encode(errors="replace")) + 1


class _ContextFilter(logging.Filter):
    """Logging filter that adds party, session, run and op to each record."""

    def __init__(self, party: str | None) -> None:
        super().__init__()
        self._party = party

    def filter(self, record: logging.LogRecord) -> bool:
        session, job = _context.get()
        run, op = (None, None) if job is None else (job.run, job.op_location()["op"])
        for name, value in zip(FIELDS, (self._party, session, run, op), strict=True):
            setattr(record, name, value)
        return True


class _JsonFormatter(logging.Formatter):
    """Formatter of records as JSON, one object per line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            **{name: _printable(getattr(record, name, None)) for name in FIELDS},
            "message": printable(shortened(record.getMessage(), MAX_MESSAGE)),
        }
        if record.exc_info:
            detail = self.formatException(record.exc_info)
            fields["error"] = printable(detail[-MAX_DETAIL:], keep="\n")
        return json.dumps(fields)


def _printable(text: str | None) -> str | None:
    return None if text is None else printable(text)


class _TextFormatter(logging.Formatter):
    """Formatter of records as text."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(party)s%(where)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        fields = (getattr(record, name, None) for name in ("run", "op"))
        found = [str(field) for field in fields if field]
        record.where = f" [{' '.join(found)}]" if found else ""
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Escape control characters: parts of a message may come from other parties."""
        return printable(shortened(super().formatMessage(record), MAX_MESSAGE))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Quote a traceback, so that no line of it can be taken for a record."""
        return _quoted(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802
        """Quote a stack, likewise."""
        return _quoted(super().formatStack(stack_info))


def _quoted(text: str) -> str:
    lines = printable(text[-MAX_DETAIL:], keep="\n").split("\n")
    return "\n".join(f"    | {line}" for line in lines)
