"""Storage of workers: each coordinator has its own, and what an engine asks harms nobody else."""

from __future__ import annotations

import asyncio
import fcntl
import os

import numpy as np
import pytest
from http_raw import RawWorker
from mplang_http import LocalCluster
from mplang_testing.waiting import stays_async, wait_until, wait_until_async
from mplang_worker.base.config import WorkerConfig
from mplang_worker.front.questions import MAX_ASKED, MAX_FILES
from mplang_worker.tls.keygen import make_certificates
from mplang_worker.wire import ipc
from test_data_sets import Engine, in_thread, served as served

import mplang_core as mp
from mplang_core.errors import AdmissionError, ConfigError, PartyError, TraceError

VERSION = "0" * 64
NUMBER = mp.TensorType("i64")


@pytest.fixture
def config(tmp_path):
    (tmp_path / "key").write_bytes(bytes(32))
    sink = {"folder": str(tmp_path / "sink"), "key_file": str(tmp_path / "key")}
    return WorkerConfig(name="alice", sink=sink)


# -- coordinators


def test_a_coordinator_has_its_own_values_and_no_other(tmp_path):
    files = make_certificates(tmp_path / "certs", ["alice", "bob", "host", "eve"], replace=True)
    options = {"coordinators": ("host", "eve"), "mode": "production"}
    with LocalCluster(["alice", "bob"], tls=files, **options) as workers:

        def store(number):
            mp.store(mp.put("P0", np.int64(number)), "number")
            mp.store(mp.seal(mp.put("P0", np.float64(number))), "secret")

        def load():
            return mp.load("P0", "number", type=NUMBER)

        with mp.connect("http", workers.spec, tls=files["host"]) as host:
            mp.evaluate(host, lambda: store(1))
        with mp.connect("http", workers.spec, tls=files["eve"]) as eve:
            assert eve.catalogue.stored == {"alice": {}, "bob": {}}
            with pytest.raises((AdmissionError, PartyError), match="nothing is stored as 'number'"):
                mp.evaluate(eve, load)
            mp.evaluate(eve, lambda: (mp.remove("P0", "number"), mp.remove("SP0", "secret")))
            mp.evaluate(eve, lambda: store(2))
            assert mp.fetch(eve, mp.evaluate(eve, load)) == 2
            mp.evaluate(eve, lambda: mp.remove("P0", "number"))
        with mp.connect("http", workers.spec, tls=files["host"]) as host:
            assert mp.fetch(host, mp.evaluate(host, load)) == 1
            secret = mp.evaluate(host, lambda: mp.reveal(mp.load("SP0", "secret")))
            assert mp.fetch(host, secret)[0] == pytest.approx(1)


def test_hosts_of_one_coordinator_know_what_the_other_has_stored(tmp_path):
    with (
        LocalCluster(2, sink=tmp_path, mode="production") as workers,
        mp.connect("http", workers.spec) as one,
        mp.connect("http", workers.spec) as other,
    ):
        mp.evaluate(one, lambda: mp.store(mp.put("P0", np.int64(7)), "number"))
        with pytest.raises(TraceError, match=r"host.refresh\(\)"):
            mp.evaluate(other, lambda: mp.load("P0", "number"))
        other.refresh()
        assert mp.fetch(other, mp.evaluate(other, lambda: mp.load("P0", "number"))) == 7


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mode": "production"}, False),
        ({"mode": "production", "observable": True}, True),
        ({}, True),
    ],
)
def test_when_something_was_stored_is_told_where_the_worker_is_observable(tmp_path, options, told):
    with (
        LocalCluster(1, sink=tmp_path, **options) as workers,
        mp.connect("http", workers.spec) as host,
    ):
        mp.evaluate(host, lambda: mp.store(mp.put("P0", np.int64(7)), "number"))
        stored = RawWorker(workers).ask("GET", "/facts").json["stored"]["number"]
        assert ("time" in stored) == told
        host.refresh()
        assert mp.fetch(host, mp.evaluate(host, lambda: mp.load("P0", "number"))) == 7


def test_a_store_that_fails_at_one_member_is_at_none_and_can_be_tried_again(tmp_path):
    """The other member has staged it meanwhile, or not; nobody waits."""

    def program(x):
        mp.store(mp.seal(x), "model")

    with (
        LocalCluster(2, sink=tmp_path, mode="production") as workers,
        mp.connect("http", workers.spec) as host,
    ):
        with mp.with_ctx(host):
            x = mp.put("P0", np.float64([1.0]))
        folder = tmp_path / "sinks" / "node1" / "local"
        folder.write_text("in the way")
        for _ in range(3):
            with pytest.raises(PartyError, match="cannot be written"):
                mp.evaluate(host, program, x)
        folder.unlink()
        mp.evaluate(host, program, x)
        found = mp.evaluate(host, lambda: mp.reveal(mp.load("SP0", "model")))
        assert mp.fetch(host, found)[0] == pytest.approx(1.0)


def test_a_worker_without_a_sink_says_so():
    with LocalCluster(1, plugins=None, mode="production") as workers:
        config = workers._configs["node0"]
        workers._write(config.model_copy(update={"sink": None}))
        workers.workers[0].terminate()
        workers.restart(0)
        with mp.connect("http", workers.spec) as host:
            for use in (
                lambda: mp.store(mp.put("P0", 1), "x"),
                lambda: mp.load("P0", "x", type=NUMBER),
            ):
                with pytest.raises((AdmissionError, PartyError), match="names a folder as `sink`"):
                    mp.evaluate(host, use)


@pytest.mark.parametrize(
    ("sink", "told"),
    [
        ({"folder": "/dev/null/x"}, None),
        ({"folder": "s", "key_file": "s/key"}, "must be outside of"),
        ({"folder": "s", "size": 0}, "size"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_wrong_sinks_of_a_configuration_are_told(sink, told):
    if told is None:
        WorkerConfig(name="alice", sink=sink)  # told when the worker starts
        return
    with pytest.raises(ConfigError, match=f"(?s)sink.*{told}"):
        WorkerConfig(name="alice", sink=sink)


# -- what an engine asks


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("sink.open", {"name": "x", "version": "../../alice/salaries/current"}),
        ("sink.open", {"name": "x", "version": "/etc"}),
        ("sink.open", {"name": "../x", "version": VERSION}),
        ("sink.open", {"name": "x"}),
        ("sink.open", {"name": ["x"], "version": {"a": 1}}),
        ("sink.commit", {"name": "x", "version": VERSION}),
        ("sink.settle", {"name": "x", "version": VERSION}),
        ("sink.abandon", {"name": "x", "version": VERSION, "told": 7}),
        ("sink.begin", {"name": "x", "members": [1]}),
        ("sink.begin", {"name": "x", "members": ["alice"]}),
        ("sink.begin", {"name": "..", "members": [0]}),
        ("sink.remove", {"name": "x", "members": None}),
        ("sink.stage", {"entry": {}}),
        ("sink.stage", {"entry": 7}),
        ("sink.stage", {"entry": {"time": float("nan")}}),
        ("sink.held", {}),
        ("sink.held", {"name": 7}),
        ("data.read", {"name": "x", "type": "no type"}),
        ("data.read", {}),
        ("sink.no-such-method", {}),
        ("no-such-section.read", {}),
        ("gate.refuses", {}),
        ("held", {"name": "x"}),
        ("no-such-method", {}),
    ],
)
def test_hostile_questions_are_answered_and_refused(served, method, args):
    async def test(session, theirs):
        engine, seen = Engine(theirs), []
        for _ in range(3 * MAX_ASKED):
            answer, files = await in_thread(lambda: engine.questions.ask(method, args))
            assert not files
            assert {"refused", "unknown"} & answer.keys()
            await wait_until_async(lambda: session.asking == 0)
            seen.append(open_files())
        assert seen[-1] <= seen[1]

    served(test)


def test_files_of_no_question_are_few_and_closed(served):
    async def test(session, theirs):
        before = open_files()
        theirs.setblocking(True)
        for number in range(MAX_FILES + 10):
            file = ipc.write_file([b"x"])
            ipc.send(theirs, {"event": "question_file", "number": number}, file)
            os.close(file)
            await asyncio.sleep(0)
        await wait_until_async(lambda: session.process._process.killed)
        assert session.files <= MAX_FILES
        assert open_files() <= before + MAX_FILES

    served(test)


def test_a_file_that_could_change_ends_its_engine(served):
    async def test(session, theirs):
        theirs.setblocking(True)
        file = os.memfd_create("x", os.MFD_ALLOW_SEALING)
        ipc.send(theirs, {"event": "question_file", "number": 0}, file)
        os.close(file)
        await wait_until_async(lambda: session.process._process.killed)

    served(test)


def test_an_engine_cannot_say_that_it_has_taken_what_it_has_not(served):
    async def test(session, theirs):
        theirs.setblocking(True)
        for number in range(20):
            question = {"event": "question", "method": "sink.held", "args": {"name": "x"}}
            ipc.send(theirs, {**question, "number": number})
            ipc.send(theirs, {"event": "answer_taken", "receipt": f"{number:016x}"})
        await wait_until_async(lambda: session.asking == MAX_ASKED)
        await stays_async(lambda: session.asking == MAX_ASKED)

    served(test)


def test_what_was_encrypted_comes_by_a_pipe(served, config):
    """It is not decrypted into the front's memory, and nobody waits for who reads none."""
    from mplang_crypto.types import SymmetricKey, SymmetricKeyType
    from mplang_data.stored import values
    from mplang_data.stored.run import StoreRun

    async def test(session, theirs):
        engine = Engine(theirs)
        storage, kind = engine.data.stored, SymmetricKeyType()
        run = StoreRun("s-1", VERSION, ["alice"])

        def store():
            storage.begin("key", (0,))
            file = values.write(kind, SymmetricKey(b"k" * 32))
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, ipc.SEALS)
            storage.stage(run.entry("key", VERSION, mp.Mask.of(0), [kind], "0"), [file])
            os.close(file)
            storage.commit("key", VERSION)
            storage.settle("key", VERSION)
            before = open_files()
            for _ in range(5):
                _, (found,) = storage.open("key", VERSION)
                assert values.read(kind, found).secret == b"k" * 32
                os.close(found)
            _, (unread,) = storage.open("key", VERSION)
            os.close(unread)
            wait_until(lambda: open_files() <= before)

        await in_thread(store)

    served(test)
