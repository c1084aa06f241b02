"""Events of engines: what they tell the front without being asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any

from mplang_worker.front.failure_budget import FailureBudget
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.mpc import FrontMpc
from mplang_worker.front.questions import FrontQuestions
from mplang_worker.front.session import FrontSession


class EngineEvents:
    """Handler of events of a worker's engines.

    Args:
        questions: answers their questions.
        mpc: replaces MPC processes that hang.
        gate: records the ends of runs.
        budget: counts failed runs.
        begin: starts work that goes on after the event.
    """

    def __init__(
        self,
        questions: FrontQuestions,
        mpc: FrontMpc,
        gate: FrontGate,
        budget: FailureBudget,
        begin: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._questions, self._mpc, self._gate = questions, mpc, gate
        self._budget, self._begin = budget, begin

    def handle(self, session: FrontSession, message: dict[str, Any], file: int | None) -> None:
        """Handle an event.

        Args:
            session: session of the engine.
            message: the event.
            file: descriptor that came with it.
        """
        if message["event"] == "question_file" and type(message.get("number")) is int:
            self._questions.take_file(session, message["number"], file)
            return
        if file is not None:
            os.close(file)
        if message["event"] == "ready":
            if not session.ready.done():
                session.ready.set_result(message["key"])
        elif message["event"] == "answer_taken":
            self._questions.taken(session, str(message["receipt"]))
        elif message["event"] == "question":
            number, method, args = int(message["number"]), message["method"], message["args"]
            self._begin(self._questions.serve(session, number, str(method), dict(args)))
        elif message["event"] == "mpc_hangs":
            self._mpc.replace(session, str(message["service"]))
        elif message["event"] == "head":
            heard = str(message["run"]), str(message["peer"]), bytes(memoryview(message["head"]))
            self._begin(self._gate.hear(session, *heard))
        elif message["event"] == "ended":
            session.jobs.update(message["status"], settled=message["settled"])
            if message["settled"]:
                self._gate.end_questions(session, str(message["run"]))
                run = (session.key[0], session.link, message["run"])
                if self._budget.end(run, failed=message["op_failed"]):
                    self._begin(self._gate.end(session, message["status"]))
