"""Warm process of a worker, as the front sees it: prepared once, and replaced when it ends."""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import Any

from mplang_confinement import MemoryFolders

from mplang_core.ext import ConfigError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.front.process_log import ProcessLog
from mplang_worker.process.backoff import Backoff
from mplang_worker.process.forks import Child, ForkServer

WARM = "mplang_worker.engine.warm"
log = logging.getLogger("mplang.http.front")


class WarmProcess:
    """Process that forks the engines of a worker.

    Args:
        config: configuration of the worker.
        forks: its fork server; replaced by a new interpreter if it ends, and closed at the end.
        file: the file of the configuration; empty if there is none.

    Attributes:
        state: ``starting``, ``ready`` or ``ended``: whether engines can be forked.
        info: description of the worker.
        folders: folders in memory of the MPC processes.
    """

    def __init__(self, config: WorkerConfig, forks: ForkServer, file: str = "") -> None:
        self.state = "starting"
        self.info: dict[str, Any] = {}
        self.folders = MemoryFolders()
        self._config = config
        self._file = file
        self._forks = forks
        self._warmed = asyncio.Event()
        self._failure: ConfigError | None = None
        self._backoff = Backoff()
        self._log: ProcessLog | None = None
        self._delay = 0.0  # seconds until the next start

    async def ready(self, timeout: float) -> None:
        """Wait until engines can be forked.

        Raises:
            TimeoutError: they cannot within ``timeout`` seconds.
            ConfigError: a plugin or a module of the configuration cannot be imported.
        """
        await asyncio.wait_for(self._warmed.wait(), timeout)
        if self._failure is not None:
            raise self._failure

    async def warm_up(self) -> None:
        """Prepare it; start another one while it ends, ever more rarely."""
        loop = asyncio.get_running_loop()
        captured = self._config.log_format == "json"
        argument = {"config": self._config.for_engines, "memory": self.folders.path}
        argument["file"] = self._file
        while self.state == "starting":
            await asyncio.sleep(self._delay)
            try:
                if not self._forks.alive:
                    self._forks.close()
                    start = functools.partial(ForkServer, WARM, captured=captured)
                    self._forks = await loop.run_in_executor(None, start)
                self._take_output()
                prepare = functools.partial(self._forks.prepare, argument)
                self.info = await loop.run_in_executor(None, prepare)
                if self.state == "starting":
                    self.state = "ready"
                    self._backoff.begun()
            except ConfigError as error:
                self._failure = ConfigError(
                    f"WorkerConfig {self._config.name}: {error}", code="C003"
                )
                self._forks.alive = False
            except OSError as error:
                log.error("the process that starts engines does not start: %s", error)
            if self.state == "ready" or self._failure is not None:
                self._warmed.set()
            if self.state == "starting":
                self._delay = self._backoff.ended()

    def _take_output(self) -> None:
        """Pass on what the process prints, from now on."""
        if self._forks.output is not None:
            reader, self._forks.output = self._forks.output, None
            self._log = ProcessLog(self._config.name, None, as_json=True, reader=reader)

    async def fork(self, argument: dict[str, Any], file: int) -> Child:
        """Start an engine.

        Args:
            argument: what it is started with.
            file: descriptor of its socket; the caller closes its own.

        Raises:
            OSError: the process has ended, or the system has no room for another one.
        """
        fork = functools.partial(self._forks.fork, argument, file)
        return await asyncio.get_running_loop().run_in_executor(None, fork)

    def has_ended(self) -> bool:
        """Return whether it has ended by itself, and is to be warmed up again."""
        if self.state != "ready" or self._forks.check():
            return False
        self._delay = self._backoff.ended()
        log.error(
            "the process that starts engines has ended; another is started in %g s", self._delay
        )
        self.state = "starting"
        return True

    def close(self) -> None:
        """End it for good, and so all engines."""
        self.state = "ended"
        self._forks.close()
        self.folders.close()
        if self._log is not None:
            self._log.drain()
            self._log.close()
