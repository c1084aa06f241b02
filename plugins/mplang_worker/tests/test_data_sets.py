"""Data sets between front and engine: every question is answered, and nothing piles up."""

from __future__ import annotations

import asyncio
import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_data import SourceError
from mplang_data.sources.parquet_file import ParquetFiles
from mplang_testing.waiting import pause_async, stays_async, wait_until_async
from mplang_worker.base.config import WorkerConfig
from mplang_worker.engine.data import EngineData, Questions
from mplang_worker.front.data_sets import FrontDataSets
from mplang_worker.front.engine_process import MAX_UNSENT, EngineProcess
from mplang_worker.front.failure_budget import FailureBudget
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.log_quota import LogQuota
from mplang_worker.front.process_log import ProcessLog
from mplang_worker.front.questions import MAX_ASKED, FrontQuestions
from mplang_worker.front.readiness import Readiness
from mplang_worker.front.session import FrontSession
from mplang_worker.front.storage import FrontStorage
from mplang_worker.wire import ipc
from mplang_worker.wire.requests import Party, SessionRequest
from test_engine_process import Killed

import mplang_core as mp

KIND = mp.TableType((("x", "int64"),))
FILES = 40
OF_PROCESS = 10  # files of the process that reads, beside those that it is given
READ = {"tables": {"": {"data": "numbers", "type": str(KIND), "ranges": []}}, "perhaps": False}
QUESTION = {"event": "question", "method": "data.read", "args": READ}


@pytest.fixture
def config(tmp_path):
    for i in range(FILES):
        pq.write_table(pa.table({"x": [i]}), tmp_path / f"{i:02}.parquet")
    fields = {"source": f"parquet:{tmp_path}/*.parquet", "columns": {"x": "int64"}}
    return WorkerConfig(name="alice", data={"numbers": {**fields, "readers": ["host"]}})


class Engine:
    """Engine's side of the socket, in a thread: asks as an engine does."""

    def __init__(self, sock):
        self.sock = sock
        self.questions = Questions(lambda message, file: ipc.send(sock, message, file))
        self.data = EngineData(self.questions, ["data", "sink"])
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self):
        while True:
            try:
                message, file = ipc.receive(self.sock)
            except (EOFError, OSError):
                return
            if message["call"] == "answer_file":
                self.questions.take_file(message["number"], file)
            elif message["call"] == "answer":
                self.questions.take(message["number"], message["answer"])

    def rows(self):
        return self.data.read("numbers", KIND, (), perhaps=False).num_rows


@pytest.fixture
def served(config):
    """Return a function that runs a test with a session's front, and the engine's socket."""

    def run(test):
        async def main():
            storage = FrontStorage(config)
            gate = FrontGate(config, storage, LogQuota(1 << 20))
            front = FrontQuestions(
                config,
                FrontDataSets(config),
                storage,
                gate,
                FailureBudget("alice", 10),
                Readiness({}),
            )
            party = Party(name="alice", address="127.0.0.1:1")
            session = FrontSession(("host", "s"), SessionRequest(rank=0, parties=[party]))
            mine, theirs = ipc.channel()
            tasks = set()

            def handle(message, file):
                if message["event"] == "answer_taken":
                    front.taken(session, message["receipt"])
                elif message["event"] == "question_file":
                    front.take_file(session, message["number"], file)
                else:
                    number, args = message["number"], message["args"]
                    answer = front.serve(session, number, message["method"], args)
                    tasks.add(asyncio.get_running_loop().create_task(answer))

            child = Killed()
            session.process = EngineProcess(
                child, mine, "the engine", ProcessLog("alice", "s", as_json=False), 1000, handle,
                lambda: None,
            )  # fmt: skip
            await test(session, theirs)
            theirs.close()
            child.gone.set()
            await session.process.end("")

        asyncio.run(main())

    return run


def in_thread(fn):
    return asyncio.get_running_loop().run_in_executor(None, fn)


def test_files_that_the_system_does_not_pass_on_are_told(served, monkeypatch):
    async def test(session, theirs):
        engine = Engine(theirs)
        assert await in_thread(engine.rows) == FILES
        send, failed = ipc.send, []

        def fail_once(sock, message, file=None):
            if message.get("call") == "answer_file" and not failed:
                failed.append(message)
                raise OSError("too many on their way")
            send(sock, message, file)

        monkeypatch.setattr(ipc, "send", fail_once)
        with pytest.raises(SourceError, match="not all of its files"):
            await in_thread(engine.rows)
        assert len(failed) == 1
        assert await in_thread(engine.rows) == FILES

    served(test)


def test_an_engine_that_takes_no_answer_gets_few(served):
    async def test(session, theirs):
        before = len(os.listdir("/proc/self/fd"))
        theirs.setblocking(True)
        for number in range(50):
            ipc.send(theirs, {**QUESTION, "number": number})
        await wait_until_async(lambda: session.asking == MAX_ASKED)
        await stays_async(
            lambda: (
                session.asking == MAX_ASKED
                and len(os.listdir("/proc/self/fd")) <= before + MAX_ASKED * (FILES + OF_PROCESS)
            )
        )

    served(test)


def test_an_engine_that_says_that_it_takes_answers_and_does_not_is_ended(served):
    async def test(session, theirs):
        before = len(os.listdir("/proc/self/fd"))
        theirs.setblocking(True)
        for number in range(50):
            ipc.send(theirs, {**QUESTION, "number": number})
            ipc.send(theirs, {"event": "answer_taken"})
            await pause_async(0.02, "an engine that is slow enough to be answered")
        await wait_until_async(lambda: session.process._process.killed)
        await wait_until_async(
            lambda: len(os.listdir("/proc/self/fd")) <= before + MAX_UNSENT + FILES
        )

    served(test)


def test_an_error_of_a_plugin_is_an_answer_without_its_text(served, monkeypatch, caplog):
    def fails(self, where):
        raise TypeError("password=hunter2")

    monkeypatch.setattr(ParquetFiles, "files", fails)

    async def test(session, theirs):
        with pytest.raises(SourceError, match="its source cannot be opened"):
            await in_thread(Engine(theirs).rows)
        assert "data set numbers cannot be read: TypeError" in caplog.text
        assert "hunter2" not in caplog.text

    served(test)
