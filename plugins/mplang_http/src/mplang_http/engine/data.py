"""Data sets and storage of the party, as an engine has them: it asks the front for open files."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from mplang_core import BaseType
from mplang_core.ext import AdmissionError, RunError
from mplang_http.wire.opening import Opening

if TYPE_CHECKING:
    from mplang_data import Opened
    from mplang_data.ext import Entry, Held, StoreRun

AT_ONCE = 2  # questions that the front answers at once


class Questions:
    """Questions of an engine to the front, with open files to and fro.

    Args:
        send: sends a message to the front, perhaps with a file.
    """

    def __init__(self, send: Callable[[dict[str, Any], int | None], None]) -> None:
        self._send = send
        self._numbers = itertools.count()
        self._answers: dict[int, Future[dict[str, Any]]] = {}
        self._files: dict[int, list[int]] = {}
        self._lock = threading.Lock()
        self._turn = threading.BoundedSemaphore(AT_ONCE)

    def ask(
        self, method: str, args: Mapping[str, Any], files: Sequence[int] = ()
    ) -> tuple[dict[str, Any], list[int]]:
        """Ask the front, and wait.

        Args:
            method: what is asked for.
            args: plain data.
            files: descriptors of sealed memory files, which the caller closes.

        Returns:
            The answer, and descriptors of open files, which the caller closes.

        Raises:
            OSError: not all of the files could be passed on.
        """
        answer: Future[dict[str, Any]] = Future()
        with self._turn:  # the front answers no more at once
            with self._lock:
                number = next(self._numbers)
                self._answers[number], self._files[number] = answer, []
            for file in files:
                self._send({"event": "question_file", "number": number}, file)
            question = {"event": "question", "number": number, "method": method, "args": args}
            self._send(question, None)
            found, opened = answer.result(), self._files.pop(number)
            self._send({"event": "answer_taken", "receipt": found["receipt"]}, None)
        if len(opened) != found["files"]:  # the system has too many on their way
            for each in opened:
                os.close(each)
            raise OSError("not all of its files could be passed on; try again")
        return found, opened

    def take_file(self, number: int, file: int | None) -> None:
        """Take a file of an answer; ``None`` if it was lost on its way."""
        if file is not None:
            self._files[number].append(file)

    def take(self, number: int, answer: dict[str, Any]) -> None:
        """Take an answer, after its files."""
        self._answers.pop(number).set_result(answer)


class EngineData:
    """Data sets of the party; see :class:`mplang_data.DataSets`.

    Args:
        questions: questions to the front.

    Attributes:
        gate: the gate of the party.
        stored: the storage of the party.
    """

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self.gate = EngineGate(questions)
        self.stored = EngineStorage(questions)

    def start_clock(self, run: str, changes: Sequence[str]) -> None:
        """Have the front tell of the end of a run at the steps of a clock, whatever happens.

        Args:
            run: its name.
            changes: names of what it stores or removes, which nobody sees before.

        Raises:
            RunError: what is stored cannot be read.
        """
        found, _ = self._questions.ask("start_clock", {"run": run, "changes": list(changes)})
        if "refused" in found:
            raise RunError(found["refused"])

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

        try:
            found, files = self._questions.ask("read", {"name": name, "type": str(kind)})
        except OSError as error:
            raise SourceError(str(error)) from error
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


class EngineGate:
    """The gate of the party, as the engine asks it.

    Args:
        questions: questions to the front.
    """

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    def begin(self, run: str, openings: Mapping[int, Opening]) -> None:
        """Ask whether a run may begin, and wait.

        Args:
            run: its name.
            openings: the openings of all parties, by rank.

        Raises:
            AdmissionError: it may not.
        """
        refused = self._ask(run, openings, whole=True)
        if refused:
            raise AdmissionError(refused)

    def missed(self, run: str, openings: Mapping[int, Opening]) -> None:
        """Tell of a run that does not begin here, and perhaps elsewhere."""
        self._ask(run, openings, whole=False)

    def _ask(self, run: str, openings: Mapping[int, Opening], *, whole: bool) -> str:
        told = [[rank, each.write()] for rank, each in openings.items()]
        found, _ = self._questions.ask("begin_run", {"run": run, "openings": told, "whole": whole})
        return str(found["refused"])


class EngineStorage:
    """Storage of the party for the engine's coordinator; see :class:`mplang_data.stored.Storage`.

    Args:
        questions: questions to the front.

    Attributes:
        run: the run that uses it now; ``None`` between runs.
    """

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self.run: StoreRun | None = None

    def held(self, name: str) -> Sequence[Held]:
        """Return the versions that are here, whole."""
        from mplang_data.ext import decode_versions

        found, _ = self._ask("held", {"name": name})
        return decode_versions(found["held"])

    def begin(self, name: str, members: Sequence[int]) -> None:
        """Begin to store."""
        self._ask("begin", {"name": name, "members": list(members)})

    def stage(self, entry: Entry, files: Sequence[int]) -> None:
        """Write a version whole, beside the current one."""
        self._ask("stage", {"entry": entry.model_dump(mode="json")}, files)

    def commit(self, name: str, version: str) -> None:
        """Make a version the current one."""
        self._ask("commit", {"name": name, "version": version})

    def settle(self, name: str, version: str) -> None:
        """Remove all other versions."""
        self._ask("settle", {"name": name, "version": version})

    def abandon(self, name: str, version: str, *, told: bool) -> None:
        """Let others store the name."""
        self._ask("abandon", {"name": name, "version": version, "told": told})

    def open(self, name: str, version: str) -> tuple[Entry, Sequence[int]]:
        """Return a version and its open files."""
        from mplang_data.ext import Entry

        found, files = self._ask("open", {"name": name, "version": version})
        return Entry(**found["entry"]), files

    def remove(self, name: str, members: Sequence[int]) -> None:
        """Remove all versions."""
        self._ask("remove", {"name": name, "members": list(members)})

    def end(self) -> None:
        """Let go of what the run might have loaded."""
        self.run = None
        self._ask("done", {})

    def _ask(
        self, method: str, args: Mapping[str, Any], files: Sequence[int] = ()
    ) -> tuple[dict[str, Any], list[int]]:
        from mplang_data.ext import StoreError

        try:
            found, opened = self._questions.ask(method, args, files)
        except OSError as error:
            raise StoreError(str(error)) from error
        if "refused" in found:
            raise StoreError(found["refused"])
        return found, opened
