"""Data sets of a worker, as the front holds them: checked at the start, opened for engines.

Engines have no path and no password. One asks for a data set by its name, and is given open files if
its coordinator is among the readers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from typing import Any

from mplang_core.ext import ConfigError
from mplang_http.config import WorkerConfig
from mplang_http.engine_process import EngineProcess

CHECK_TIMEOUT = 600.0  # seconds
MAX_ASKED = 8  # data sets that an engine has asked for, and was not answered
log = logging.getLogger("mplang.http.front")


class FrontDataSets:
    """Data sets of a worker, for the engines of coordinators that may read them.

    Args:
        config: configuration of the worker.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._sets = config.data_sets()

    def told(self, coordinator: str) -> dict[str, Any]:
        """Return what a coordinator is told: the descriptions of those that it may read, by name."""
        return {
            name: each.public()
            for name, each in self._sets.items()
            if coordinator in each.readers
        }

    async def serve(self, coordinator: str, process: EngineProcess, asked: dict[str, Any]) -> None:
        """Answer an engine that asks for a data set.

        Args:
            coordinator: the coordinator of its session.
            process: the engine.
            asked: its message: ``number`` of the question, and ``name`` of the data set.
        """
        number, name = int(asked["number"]), str(asked["name"])
        answer: dict[str, Any]
        files: list[int] = []
        try:
            from mplang_data.description import SourceError
            from mplang_data.holding import open_for
        except ModuleNotFoundError:
            answer = {"unknown": True}
        else:
            loop = asyncio.get_running_loop()
            try:
                opened = await loop.run_in_executor(
                    None, open_for, self._sets, name, coordinator
                )
                files = list(opened.files)
                found = self._sets[name]
                answer = {"kind": found.kind, "description": found.public()}
                log.info("%s reads data set %s", coordinator, name)
            except LookupError:
                answer = {"unknown": True}
            except SourceError as error:
                log.error("data set %s cannot be read: %s", name, error)
                answer = {"failed": str(error)}
        for file in files:
            process.tell({"call": "data_file", "number": number}, file)
        process.tell({"call": "data", "number": number, "answer": answer})


def check_data(config: WorkerConfig) -> None:
    """Compare the data sets of a worker with their sources, in a process of its own.

    Raises:
        ConfigError: a source is not there, or does not hold what the configuration says.
    """
    if not config.data:
        return
    command = [sys.executable, "-P", "-m", "mplang_data.check"]
    try:
        done = subprocess.run(
            command, input=json.dumps(config.data).encode(), capture_output=True,
            timeout=CHECK_TIMEOUT, check=False,
        )  # fmt: skip
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise ConfigError(f"field 'data': it takes longer than {CHECK_TIMEOUT:g} s") from None
    except ValueError:
        raise ConfigError(
            f"field 'data': a source ends the process that checks it, with {done.returncode}"
        ) from None
    wrong = [f"field 'data.{name}': {told['error']}" for name, told in found.items() if told["error"]]
    if wrong:
        raise ConfigError("\n".join(wrong))
