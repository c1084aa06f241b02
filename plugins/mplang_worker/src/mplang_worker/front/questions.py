"""Questions of engines to the front: about runs, data sets, and storage."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mplang_http.ext import MAX_HEAD

from mplang_core.ext import AdmissionError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.logs import log_cause, log_context
from mplang_worker.base.sections import DATA, SINK
from mplang_worker.front.data_sets import FrontDataSets
from mplang_worker.front.failure_budget import FailureBudget
from mplang_worker.front.gate import WITHDRAWN, FrontGate
from mplang_worker.front.readiness import Readiness
from mplang_worker.front.reviewed import (
    CHANGED,
    permit_readings,
    refuse_question,
    refuse_storage,
    sees_one_state,
)
from mplang_worker.front.sections import Answer, OtherSections
from mplang_worker.front.session import FrontSession
from mplang_worker.front.storage import FrontStorage
from mplang_worker.front.threads import in_thread
from mplang_worker.wire import ipc

AT_ONCE = 4  # questions of one coordinator that are being answered: a database may take long
MAX_ASKED = 2  # answers that an engine has not taken
MAX_FILES = 64  # of questions of an engine
log = logging.getLogger("mplang.http.front")


class FrontQuestions:
    """Answers to the questions of engines. What they ask is untrusted.

    Args:
        config: configuration of the worker.
        data: its data sets.
        storage: its storage.
        gate: its gate.
        budget: failed runs of its coordinators.
        readiness: is to be probed when a source cannot be reached.

    Raises:
        ConfigError: the worker cannot start with a section of another package.
    """

    def __init__(
        self,
        config: WorkerConfig,
        data: FrontDataSets,
        storage: FrontStorage,
        gate: FrontGate,
        budget: FailureBudget,
        readiness: Readiness,
    ) -> None:
        self._data, self._budget, self._readiness = data, budget, readiness
        self._gate = gate
        self._storage = storage
        self._others = OtherSections(config)
        self._max_file = config.limits.value + MAX_HEAD  # bytes
        self._turns: dict[str, asyncio.Semaphore] = {}  # by coordinator

    def prepare(self, after: WorkerConfig) -> Callable[[], None]:
        """Return what makes other packages' changed sections count; see `LiveConfig`."""
        return self._others.prepare(after)

    def take_file(self, session: FrontSession, number: int, file: int | None) -> None:
        """Take a file of a question that is to come.

        Raises:
            ValueError: there are too many, or it is too large or could change.
        """
        if file is None:
            return
        try:
            ipc.check_file(file, self._max_file)
            if session.files >= MAX_FILES:
                raise ValueError("too many files")
        except BaseException:
            os.close(file)
            raise
        session.files += 1
        session.given.setdefault(number, []).append(file)

    async def serve(
        self, session: FrontSession, number: int, method: str, args: Mapping[str, Any]
    ) -> None:
        """Answer a question.

        Args:
            session: the session of the engine.
            number: the number of the question.
            method: what is asked for; for a section, its name, a dot, and what it is asked.
            args: plain data.
        """
        given = session.given.pop(number, [])
        try:
            if session.process is None or session.asking >= MAX_ASKED:
                return  # no engine of ours asks so often
            turns = self._turns.setdefault(session.key[0], asyncio.Semaphore(AT_ONCE))
            session.asking += 1  # until it has taken the answer: open files do not pile up here
            with log_cause(session.key[0]), log_context(session.key[1]):
                async with turns:
                    answer = await self._answer(session, method, args, given)
                    self._tell(session, number, answer)
                    if answer.afterwards is not None:
                        await in_thread(answer.afterwards)
        finally:
            for file in given:
                os.close(file)
            session.files -= len(given)

    def _tell(self, session: FrontSession, number: int, answer: Answer) -> None:
        receipt, process = secrets.token_hex(8), session.process
        session.receipts.add(receipt)
        assert process is not None
        for file in answer.files:
            session.answered.note(file)
            process.tell({"call": "answer_file", "number": number}, file)
        fields = {**answer.fields, "files": len(answer.files), "receipt": receipt}
        process.tell({"call": "answer", "number": number, "answer": fields})

    async def _answer(
        self, session: FrontSession, method: str, args: Mapping[str, Any], files: Sequence[int]
    ) -> Answer:
        try:
            if method == "begin_run":
                return Answer(await self._gate.begin(session, args))
            if method == "commit_run":
                return Answer(await self._gate.commit(session, str(args["run"])))
            if method == "start_clock":
                job = session.jobs.start_clock(str(args["run"]))
                await self._storage.hide(session, job, list(map(str, args["changes"])))
                return Answer({})
            section, _, method = method.rpartition(".")
            if section == DATA:
                question = self._data.question(method, args)
                if question is None:
                    return Answer({"unknown": True})
                if not self._gate.may_ask(session, question):
                    return await refuse_question(self._gate, session, question)
                asking = session.permitted.run
                answer = await self._data.answer(session, method, args)
                versions = answer.fields.get("versions", {})
                if not sees_one_state(session, asking, question, versions):
                    for file in answer.files:
                        os.close(file)
                    return Answer({"failed": CHANGED})
                if "whole" in answer.fields:  # its source cannot run the query
                    permit_readings(session, asking, question)
                if answer.fields.get("unreachable") is True:
                    self._readiness.probe_soon()
                    run = session.jobs.executing
                    if run is not None and args.get("perhaps") is not True:
                        self._budget.excuse((session.key[0], session.link, run))
                return answer
            if section == SINK:
                if not self._gate.may_store(session, method, args):
                    return await refuse_storage(self._gate, session, method, args)
                answer = await self._storage.answer(session, method, args, files)
                return await self._checked(session, answer) if method == "open" else answer
            return await self._others.answer(session, section, method, args, files)
        except Exception as error:  # it would wait for ever
            log.error("an engine's question cannot be answered: %s", type(error).__name__)
            log.debug("why", exc_info=error)
            return Answer({"refused": "it cannot be answered", "failed": "it cannot be answered"})

    async def _checked(self, session: FrontSession, answer: Answer) -> Answer:
        """Return what is loaded, or a refusal if the run that has stored it was stopped."""
        run = str(answer.fields.get("entry", {}).get("run", ""))
        why = WITHDRAWN
        try:
            if "entry" not in answer.fields or await self._gate.load(session, run):
                return answer
        except AdmissionError as error:
            why = str(error)
        for file in answer.files:
            os.close(file)
        if answer.afterwards is not None:  # closes what is to be decrypted: nobody reads it
            await in_thread(answer.afterwards)
        return Answer({"refused": why})

    def taken(self, session: FrontSession, receipt: str) -> None:
        """Mark an answer as acknowledged by the engine."""
        if receipt in session.receipts:
            session.receipts.discard(receipt)
            session.asking -= 1

    def forget(self, session: FrontSession) -> None:
        """Close what an engine that has ended has left open."""
        self._data.release(session)
        self._storage.release(session)
        self._others.release(session)
        for files in session.given.values():
            for file in files:
                with contextlib.suppress(OSError):
                    os.close(file)
        session.given.clear()
        session.answered.close()
