"""Data sets, storage and gate of the party, as an engine has them: it asks the front."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from mplang_core.ext import AdmissionError, RunError
from mplang_worker.base.section_protocols import StoreClient
from mplang_worker.base.sections import DATA, SINK, section_of
from mplang_worker.wire.opening import Opening

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

    def ask_section(
        self, section: str, method: str, args: Mapping[str, Any], files: Sequence[int] = ()
    ) -> tuple[dict[str, Any], list[int]]:
        """Ask a section in the front, and wait; see :meth:`ask`."""
        return self.ask(f"{section}.{method}", args, files)

    def take_file(self, number: int, file: int | None) -> None:
        """Take a file of an answer; ``None`` if it was lost on its way."""
        if file is not None:
            self._files[number].append(file)

    def take(self, number: int, answer: dict[str, Any]) -> None:
        """Take an answer, after its files."""
        self._answers.pop(number).set_result(answer)


class EngineData:
    """Sections of the worker's configuration, as kernels of the engine reach them.

    Args:
        questions: questions to the front.
        sections: names of the sections that the configuration has.

    Attributes:
        gate: the gate of the party.
        sections: what the packages of sections make in an engine, by name.
        read: reads a data set of the party; ``None`` if it has none.
        query: runs SQL on data sets where they are; ``None`` if it has none.
        stored: the storage of the party; ``None`` if it has none.
    """

    def __init__(self, questions: Questions, sections: Collection[str]) -> None:
        self._questions = questions
        self.gate = EngineGate(questions)
        self.sections: dict[str, Any] = {
            name: section_of(name).engine(partial(questions.ask_section, name)) for name in sections
        }
        self.read = getattr(self.sections.get(DATA), "read", None)
        self.query = getattr(self.sections.get(DATA), "query", None)
        self.stored: StoreClient | None = self.sections.get(SINK)

    def start_clock(self, run: str, changes: Sequence[str]) -> None:
        """Request that the front reports the end of a run at clock ticks, whatever happens.

        Args:
            run: its name.
            changes: names of what it stores or removes, which nobody sees before.

        Raises:
            RunError: what is stored cannot be read.
        """
        found, _ = self._questions.ask("start_clock", {"run": run, "changes": list(changes)})
        if "refused" in found:
            raise RunError(found["refused"], code="A006")


class EngineGate:
    """The gate of the party, as the engine asks it.

    Args:
        questions: questions to the front.
    """

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    def begin(self, run: str, openings: Mapping[int, Opening]) -> bytes | None:
        """Ask whether a run may begin, and wait.

        Args:
            run: its name.
            openings: the openings of all parties, by rank.

        Returns:
            What the peers are told of this party's log, which has the run on record now; ``None``
            if it begins once all of them permit it, by :meth:`commit`.

        Raises:
            AdmissionError: it may not.
        """
        return _permitted(self._ask(run, openings, whole=True))

    def commit(self, run: str) -> bytes | None:
        """Begin a run that all parties permit, and wait; see :meth:`begin`."""
        answer, _ = self._questions.ask("commit_run", {"run": run})
        return _permitted(answer)

    def missed(self, run: str, openings: Mapping[int, Opening]) -> None:
        """Report a run that did not begin at this party."""
        self._ask(run, openings, whole=False)

    def _ask(self, run: str, openings: Mapping[int, Opening], *, whole: bool) -> dict[str, Any]:
        told = [[rank, each.write()] for rank, each in openings.items()]
        found, _ = self._questions.ask("begin_run", {"run": run, "openings": told, "whole": whole})
        return found


def _permitted(answer: Mapping[str, Any]) -> bytes | None:
    if answer["refused"]:
        raise AdmissionError(str(answer["refused"]), code="A002")
    head: bytes | None = answer.get("head")
    return head
