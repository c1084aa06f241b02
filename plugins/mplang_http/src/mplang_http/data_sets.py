"""Data sets of a worker, as the front holds them: checked at the start, opened for engines.

Engines have no path and no password. One asks for a data set by its name, and is given open files
if its coordinator is among the readers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from mplang_core import BaseType
from mplang_core.ext import ConfigError
from mplang_http.config import WorkerConfig
from mplang_http.front_session import FrontSession
from mplang_http.logs import log_context

CHECK_TIMEOUT = 600.0  # seconds
AT_ONCE = 4  # data sets of one coordinator that are being opened: a database may take long
MAX_ASKED = 2  # answers that an engine has not taken
T = TypeVar("T")
log = logging.getLogger("mplang.http.front")


class FrontDataSets:
    """Data sets of a worker, for the engines of coordinators that may read them.

    Args:
        config: configuration of the worker.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._sets = config.data_sets()
        self._turns: dict[str, asyncio.Semaphore] = {}  # by coordinator

    def told(self, coordinator: str) -> dict[str, Any]:
        """Return descriptions of the data sets that a coordinator may read, by name."""
        return {
            name: each.public() for name, each in self._sets.items() if coordinator in each.readers
        }

    async def serve(self, session: FrontSession, number: int, name: str, kind: BaseType) -> None:
        """Answer an engine that asks for a data set.

        Args:
            session: its session.
            number: the number of the question.
            name: the name of the data set.
            kind: the type that is read.
        """
        process, coordinator = session.process, session.key[0]
        if process is None or session.asking >= MAX_ASKED:
            return  # no engine of ours asks so often
        turns = self._turns.setdefault(coordinator, asyncio.Semaphore(AT_ONCE))
        session.asking += 1  # until it has taken the answer: open files are not to pile up here
        with log_context(session.key[1]):
            async with turns:
                answer, files = await self._answer(coordinator, name, kind)
        for file in files:
            process.tell({"call": "data_file", "number": number}, file)
        answer["files"] = len(files)
        process.tell({"call": "data", "number": number, "answer": answer})

    async def _answer(
        self, coordinator: str, name: str, kind: BaseType
    ) -> tuple[dict[str, Any], Sequence[int]]:
        """Return what an engine is told of a data set, and its open files."""
        if not self._sets:
            return {"unknown": True}, []
        from mplang_data import NoDataSetError, NotOfferedError, SourceError
        from mplang_data.holding import open_for

        try:
            opened = await _in_thread(open_for, self._sets, name, kind, coordinator)
        except NoDataSetError:
            log.warning("%s is no reader of a data set %r", coordinator, name)
            return {"unknown": True}, []
        except NotOfferedError as error:
            return {"refused": str(error)}, []
        except SourceError as error:
            log.error("data set %s cannot be read: %s: %s", name, error, error.__cause__)
            return {"failed": str(error)}, []
        except Exception as error:  # of a plugin; its text may have a password
            log.error("data set %s cannot be read: %s", name, type(error).__name__)
            return {"failed": "its source cannot be opened"}, []
        log.info("%s reads data set %s", coordinator, name)
        found = self._sets[name]
        return {"kind": found.kind, "description": found.public()}, opened.files


async def _in_thread(fn: Callable[..., T], *args: Any) -> T:
    """Call a function in a thread that the end of this process does not wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast(T, result))

    def run() -> None:
        result, failure = None, None
        try:
            result = fn(*args)
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="mplang-data", daemon=True).start()
    return await done


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
