"""Reload of a worker's configuration: all of a changed file counts, or nothing of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from mplang_core import MPLangError
from mplang_core.ext import AdmissionError, ConfigError
from mplang_worker.base.config import RELOADED, WorkerConfig
from mplang_worker.base.config_lines import with_lines
from mplang_worker.base.errors import RequestError
from mplang_worker.front.section_reload import needs_restart
from mplang_worker.front.session import FrontSession
from mplang_worker.front.threads import in_thread

INTERVAL = 1.0  # seconds between two looks at the file
RETRY = 10.0  # seconds until a file that was refused is read again
log = logging.getLogger("mplang.http.front")

Commit = Callable[[], None]
"""What makes a part of a configuration count; one that fails has all of it taken back."""


class ConfigFile(NamedTuple):
    """File of a worker's configuration.

    Attributes:
        path: where it is.
        read: reads it, as it was read at the start.
    """

    path: str
    read: Callable[[], WorkerConfig]


class ConfiguredPart(Protocol):
    """Part of a front that keeps something of the configuration."""

    def prepare(self, after: WorkerConfig) -> Commit:
        """Return what makes a changed configuration count; called in a thread.

        Raises:
            ConfigError: it is wrong, or cannot count while the worker runs.
        """


class Record(Protocol):
    """Log of the owner."""

    async def note_configuration(self, after: WorkerConfig) -> None:
        """Record a changed configuration.

        Raises:
            AdmissionError: it cannot be recorded.
        """


class Configured(Protocol):
    """Sessions of a worker, as a reload needs them."""

    @property
    def gate(self) -> Record:
        """What has a changed configuration on record."""

    @property
    def sessions(self) -> Sequence[FrontSession]:
        """The sessions that are open."""

    def end_soon(self, session: FrontSession, why: str) -> None:
        """End a session without waiting."""


class LiveConfig:
    """The configuration of a worker, which follows its file.

    Args:
        config: the configuration, changed in place, so that all parts of the front see it.
        file: its file; ``None`` for a configuration that was made in Python.
        front: the sessions of the worker.
        parts: the parts of the front that keep something of the configuration.

    Attributes:
        failure: why the file does not count, for the owner; empty if it does.
    """

    def __init__(
        self,
        config: WorkerConfig,
        file: ConfigFile | None,
        front: Configured,
        parts: Sequence[ConfiguredPart],
    ) -> None:
        self._config, self._file, self._front, self._parts = config, file, front, parts
        self.failure = ""
        self._seen = self._look()
        self._retry = 0.0
        self._lock = asyncio.Lock()

    @property
    def state(self) -> str:
        """``current``, or ``refused`` while the file differs from what counts."""
        return "refused" if self.failure else "current"

    async def reload(self) -> str:
        """Read the file again; all of it counts from now on, or nothing.

        Sessions and runs go on, but for the sessions of coordinators that were removed.

        Returns:
            Why it does not count, for the owner, with the lines that are wrong; empty if it does.
        """
        async with self._lock:
            self._seen, self._retry = self._look(), time.monotonic() + RETRY
            before = self.failure
            try:
                self.failure = ""
                await self._read_again()
            except (MPLangError, OSError) as error:
                self.failure = str(error)
                if self.failure != before:
                    log.error("the configuration before is kept: %s", self.failure)
            except Exception as error:  # of a section that is not ours; the text may have a secret
                self.failure = f"a section cannot be reloaded: {type(error).__name__}"
                if self.failure != before:
                    log.exception("the configuration before is kept")
            return self.failure

    async def _read_again(self) -> None:
        if self._file is None:
            raise ConfigError(
                "the configuration of this worker is of no file, so it stays", code="C003"
            )
        after, commits = await in_thread(self._prepare, self._file)
        changed = changed_fields(self._config, after)
        if not changed:
            log.info("the configuration was read again, and nothing has changed")
            return
        try:
            await self._front.gate.note_configuration(after)
        except AdmissionError as error:
            raise ConfigError(f"its change cannot be logged: {error}", code="C003") from None
        await self._commit(commits)
        self._config.adopt(after)
        log.warning("the configuration has changed: %s", ", ".join(changed))
        self._end_removed()

    async def _commit(self, commits: Sequence[Commit]) -> None:
        """Commit a changed configuration; where a part fails, all parts take back the old one.

        Raises:
            Exception: that of the part, which is not ours.
        """
        for done, commit in enumerate(commits, start=1):
            try:
                commit()
            except Exception:
                for part in self._parts[:done]:
                    await self._take_back(part)
                with contextlib.suppress(AdmissionError):  # which is logged, and refuses what comes
                    await self._front.gate.note_configuration(self._config)
                raise

    async def _take_back(self, part: ConfiguredPart) -> None:
        """Restore in a part the configuration that counts."""
        try:
            commit = await in_thread(part.prepare, self._config)
            commit()
        except Exception:  # of a section that is not ours: the others go on all the same
            log.exception("a section does not take back the configuration before; restart it")

    def _prepare(self, file: ConfigFile) -> tuple[WorkerConfig, Sequence[Commit]]:
        try:
            after = file.read()
            own = WorkerConfig.model_fields.keys() - RELOADED
            stuck = [each for each in changed_fields(self._config, after) if each in own]
            if stuck:
                raise ConfigError("\n".join(map(needs_restart, stuck)), code="C003")
            return after, [part.prepare(after) for part in self._parts]
        except ConfigError as error:
            text = Path(file.path).read_text(encoding="utf-8", errors="replace")
            raise ConfigError(with_lines(file.path, text, str(error)), code="C003") from None

    def _end_removed(self) -> None:
        if self._config.tls is None:
            return
        for session in self._front.sessions:
            coordinator = session.key[0]
            if coordinator not in self._config.coordinators:
                why = f"{coordinator} is no longer a coordinator here"
                log.warning("a session ends: %s", why)
                self._front.end_soon(session, why)

    async def watch(self) -> None:
        """Reload the file whenever it changes, until cancelled."""
        while self._file is not None:
            await asyncio.sleep(INTERVAL)
            late = bool(self.failure) and time.monotonic() >= self._retry
            if late or self._look() != self._seen:
                await self.reload()

    def _look(self) -> tuple[int, ...] | None:
        """Return what changes whenever the file does; ``None`` if it cannot be looked at."""
        try:
            at = os.stat(self._file.path) if self._file is not None else None
        except OSError:
            return None
        return at and (at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns)


def changed_fields(before: WorkerConfig, after: WorkerConfig) -> list[str]:
    """Return the names of the fields that differ; of sections of other packages their own."""
    names = [name for name in WorkerConfig.model_fields if name != "sections"]
    own = [name for name in names if getattr(before, name) != getattr(after, name)]
    others = sorted({*before.sections, *after.sections})
    return own + [name for name in others if before.sections.get(name) != after.sections.get(name)]


def check_coordinator(coordinator: str | None, config: WorkerConfig) -> None:
    """Check that a client is a coordinator of a worker.

    Args:
        coordinator: its name; ``None`` without a certificate.
        config: configuration of the worker.

    Raises:
        RequestError: it is not, or not any more.
    """
    if config.tls is not None and coordinator not in config.coordinators:
        raise RequestError(
            403, "no-coordinator", f"{coordinator} is not among the coordinators of {config.name}"
        )


def check_peers(session: FrontSession, config: WorkerConfig) -> None:
    """Check that a session may run something new: all its parties are still peers.

    Args:
        session: the session.
        config: configuration of the worker.

    Raises:
        RequestError: one was removed since the session was opened.
    """
    if config.peers is None:
        return
    gone = [name for name in session.parties if name != config.name and name not in config.peers]
    if gone:
        raise RequestError(
            403, "no-peer", f"{gone[0]} is no longer a peer of {config.name}, by its owner's choice"
        )
