"""Data sets of a worker, as the front holds them: checked at the start, opened for engines.

Engines have no path and no password. One asks for a data set by its name, and is given open files
if its coordinator is among the readers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from mplang_core.ext import ConfigError
from mplang_http.config import WorkerConfig
from mplang_http.front_session import FrontSession

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
        """Return descriptions of the data sets that a coordinator may read, by name."""
        return {
            name: each.public() for name, each in self._sets.items() if coordinator in each.readers
        }

    async def serve(self, session: FrontSession, number: int, name: str) -> None:
        """Answer an engine that asks for a data set.

        Args:
            session: its session.
            number: the number of the question.
            name: the name of the data set.
        """
        process = session.process
        if process is None or session.asking >= MAX_ASKED:
            return  # no engine of ours asks so often
        session.asking += 1
        try:
            answer, files = await self._answer(session.key[0], name)
        finally:
            session.asking -= 1
        for file in files:
            process.tell({"call": "data_file", "number": number}, file)
        process.tell({"call": "data", "number": number, "answer": answer})

    async def _answer(self, coordinator: str, name: str) -> tuple[dict[str, Any], Sequence[int]]:
        """Return what an engine is told of a data set, and its open files."""
        if not self._sets:
            return {"unknown": True}, []
        from mplang_data import SourceError
        from mplang_data.holding import open_for

        loop = asyncio.get_running_loop()
        try:
            opened = await loop.run_in_executor(None, open_for, self._sets, name, coordinator)
        except LookupError:
            return {"unknown": True}, []
        except SourceError as error:
            log.error("data set %s cannot be read: %s", name, error)
            return {"failed": str(error)}, []
        log.info("%s reads data set %s", coordinator, name)
        found = self._sets[name]
        return {"kind": found.kind, "description": found.public()}, opened.files


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
    wrong = [
        f"field 'data.{name}': {told['error']}" for name, told in found.items() if told["error"]
    ]
    if wrong:
        raise ConfigError("\n".join(wrong))
