"""Data sets of the party, as an engine has them: open files that the front gives it."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from mplang_core import BaseType

if TYPE_CHECKING:
    from mplang_data import Opened


class EngineData:
    """Questions of an engine to the front about data sets.

    Args:
        ask: sends a message to the front.
    """

    def __init__(self, ask: Callable[[dict[str, Any]], None]) -> None:
        self._ask = ask
        self._numbers = itertools.count()
        self._answers: dict[int, Future[dict[str, Any]]] = {}
        self._files: dict[int, list[int]] = {}
        self._lock = threading.Lock()
        self._turn = threading.BoundedSemaphore(2)

    @contextlib.contextmanager
    def open(self, name: str, kind: BaseType) -> Iterator[Opened]:
        """Open a data set inside of ``with``; wait for the front.

        Args:
            name: its name.
            kind: the type that is read.

        Raises:
            NoDataSetError: there is none of that name that the coordinator may read.
            NotOfferedError: it does not offer that.
            SourceError: its source is not there.
        """
        from mplang_data import (
            Description,
            NoDataSetError,
            NotOfferedError,
            Opened,
            SourceError,
            source_of,
        )
        from mplang_data.sources.files import close_all

        answer: Future[dict[str, Any]] = Future()
        with self._lock:
            number = next(self._numbers)
            self._answers[number], self._files[number] = answer, []
        self._turn.acquire()  # the front answers no more at once
        try:
            self._ask({"event": "data", "number": number, "name": name, "type": str(kind)})
            found, files = answer.result(), self._files.pop(number)
        finally:
            self._turn.release()
            self._ask({"event": "data_taken"})
        if len(files) != found["files"]:  # the system has too many on their way
            close_all(files)
            raise SourceError("not all of its files could be passed on; try again")
        if "unknown" in found:
            raise NoDataSetError(name)
        if "refused" in found:
            raise NotOfferedError(found["refused"])
        if "failed" in found:
            raise SourceError(found["failed"])
        opened = Opened(source_of(found["kind"]), Description(**found["description"]), files)
        try:
            yield opened
        finally:
            opened.close()

    def take_file(self, number: int, file: int | None) -> None:
        """Take a file of an answer; ``None`` if it was lost on its way."""
        if file is not None:
            self._files[number].append(file)

    def take(self, number: int, answer: dict[str, Any]) -> None:
        """Take an answer, after its files."""
        self._answers.pop(number).set_result(answer)
