"""In production the end of a run that takes as long as private data say is told at a clock's steps.

What no test waits for, an hour, is a step of ``hourly_clock``.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import gated_ops
import numpy as np
import pytest
import timed_ops
from http_raw import RawWorker, program
from log_reading import LogReader
from mplang_http import LocalCluster
from mplang_http.tls.contexts import client_context
from mplang_testing import dialect
from mplang_testing.waiting import stays, wait_until
from mplang_worker.base.step_clock import FIRST, StepClock
from processes import engine_of, mpc_process_of, mpc_processes_of
from timed_ops import timed

import mplang_core as mp
from mplang_core.errors import PartyError

KIT = ("mplang_testing.dialect", "gated_ops", "timed_ops")
X = np.float64(7)
LATELY = 1.5e9  # seconds since 1970, in 2017
HELD = "its end is published at the next step of its clock"


@pytest.mark.parametrize(
    ("elapsed", "step"), [(0, 1), (0.01, 1), (1, 1), (1.01, 2), (2, 2), (5, 8), (40_000, 65_536)]
)
def test_steps_double(elapsed, step):
    times, paused = [0.0], []
    clock = StepClock(lambda: times[0], paused.append)
    times[0] = elapsed
    assert clock.left() == pytest.approx(step - elapsed)
    clock.wait()
    assert paused == [clock.left()]


# -- live workers in production, with mutual TLS


def cluster(names, folder, *imports, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        return LocalCluster(
            names, tls=True, imports=(*KIT, *imports), mode="production", log=str(folder),
            log_level="info", **options,
        )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def workers(folder):
    with cluster(["alice", "bob"], folder) as found:
        yield found


@pytest.fixture
def host(workers):
    with mp.connect("http", workers.spec, tls=workers.tls) as made:
        yield made


def took(work) -> float:
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def test_a_run_that_ends_well_is_told_of_at_a_step(host, folder):
    log = LogReader(folder / "alice.log", folder / "bob.log")
    assert took(lambda: mp.evaluate(host, timed, X)) >= FIRST
    log.wait_for(rf"(?s){HELD}.*{HELD}")


def test_a_run_whose_ops_only_take_longer_for_more_is_told_of_at_once(host, folder):
    log = LogReader(folder / "alice.log", folder / "bob.log")
    mp.evaluate(host, lambda x: mp.invoke(dialect.add, x, mp.invoke(timed_ops.read, x)), X)
    log.wait_for(r"(?s)is done after.*is done after")
    assert HELD not in log._text()


def test_a_failure_is_told_at_a_step_with_its_op_and_line(host, tmp_path):
    (tmp_path / "gate").touch()

    def fails(x):
        late = timed(x)
        return mp.simp.pcall_static([1], gated_ops.fail, late, gate=str(tmp_path / "gate"))

    def run():
        with pytest.raises(PartyError, match=r"party bob failed in gated\.fail at test_step_clock"):
            mp.evaluate(host, fails, X)

    assert took(run) >= FIRST


def test_the_end_of_an_engine_is_told_at_a_step(host, workers, folder, tmp_path):
    """Whether it passes a limit, as its memory, may depend on data as well."""
    raw = RawWorker(workers, 0, client_context(workers.tls, "http/1.1"))
    before, failures, log = raw.crashes(), [], LogReader(folder / "alice.log")

    def waits(x):
        late = timed(x)
        return mp.simp.pcall_static([0], gated_ops.wait, late, gate=str(tmp_path / "none"))

    def run():
        with pytest.raises(PartyError) as caught:
            mp.evaluate(host, waits, X)
        failures.append(caught.value)

    engine, begin = engine_of(raw.front), time.monotonic()
    thread = threading.Thread(target=run)
    thread.start()
    log.wait_for("timed work")  # the run has a clock
    os.kill(engine, signal.SIGKILL)
    wait_until(lambda: raw.crashes() == before + 1)
    assert time.monotonic() - begin >= FIRST
    thread.join()
    assert "SIGKILL" in str(failures[0])


# -- what a coordinator could ask after the step


def test_when_a_run_stored_something_is_not_told_after_the_step_either(workers, host):
    """It would be the end of the run to the microsecond."""
    mp.evaluate(host, lambda x: mp.store(timed(x), "late"), X)
    raw = RawWorker(workers, 0, client_context(workers.tls, "http/1.1"))
    (told,) = [each for name, each in raw.ask("GET", "/facts").json["stored"].items()]
    assert told["name"] == "late"
    assert not times_in(told)


def times_in(told) -> list[float]:
    """Return the numbers of what was told that may be times, in seconds since 1970."""
    match told:
        case dict():
            return [each for value in told.values() for each in times_in(value)]
        case list():
            return [each for value in told for each in times_in(value)]
        case int() | float():
            return [told] * (LATELY < told < 10 * LATELY)
    return []


# -- what a coordinator could ask before the step


@pytest.fixture
def hourly(tmp_path):
    """Return the only worker of a cluster whose clocks have steps of hours, and its log."""
    with cluster(["alice"], tmp_path, "hourly_clock") as workers:
        context = client_context(workers.tls, "http/1.1")
        yield RawWorker(workers, 0, context), LogReader(tmp_path / "alice.log")


@pytest.mark.parametrize("fails", [False, True], ids=["ends well", "fails"])
def test_nothing_tells_that_it_is_over_before_the_step(hourly, tmp_path, fails):
    worker, log = hourly
    (tmp_path / "gate").touch()
    then = gated_ops.fail if fails else gated_ops.wait

    def held(x):
        found = timed(x)
        mp.store(found, "kept")
        return mp.simp.pcall_static([0], then, found, gate=str(tmp_path / "gate"))

    programs = [program(fn, X) for fn in (held, lambda x: mp.invoke(dialect.add, x, x))]
    with worker.opened() as session, worker.opened() as other:
        for data in programs:
            assert worker.put_program(data, session).status == 200
        for number, data in enumerate(programs):
            found = worker.submit(session, data, X, wait=0, run=f"{session}-{number}")
            assert found.status == 202
        log.wait_for(HELD)
        jobs = f"/v1/sessions/{session}/jobs"
        one, two = f"{jobs}/{session}-0", f"{jobs}/{session}-1"
        assert [worker.ask("GET", each).json["state"] for each in (one, two)] == [
            "running",
            "queued",
        ]
        listed = worker.ask("GET", jobs).json
        assert ([job["state"] for job in listed["jobs"]], listed["values"]) == (
            ["running", "queued"],
            0,
        )
        value = worker.ask("GET", f"/v1/sessions/{session}/values/{session}-0.0")
        assert value.status == 404
        assert worker.ask("GET", "/facts").json["stored"] == {}
        assert worker.ask("GET", "/health").json["failures"]["used"] == 0
        refused = _load_in(worker, other)
        assert refused.endswith("a run of another session is about to change it")
        assert worker.ask("DELETE", one).json["state"] == "cancelled"
        assert worker.ask("GET", one).json["state"] == "cancelled"
        assert worker.ask("GET", two).json["state"] == "queued"


def test_nothing_tells_that_an_mpc_process_has_ended_before_the_step(hourly, tmp_path):
    """It may end by a limit, as of memory, when the coordinator's program makes it."""
    worker, log = hourly

    def waits(x):
        found = timed(x)
        return mp.simp.pcall_static([0], gated_ops.wait, found, gate=str(tmp_path / "none"))

    data = program(waits, X)
    name = worker.open_with_mpc()
    assert worker.put_program(data, name).status == 200
    assert worker.submit(name, data, X, wait=0, run=f"{name}-0").status == 202
    log.wait_for("timed work")  # the run has a clock
    killed, opened = mpc_process_of(worker.front), worker.begin_with(name, native=["spu"])
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: killed not in mpc_processes_of(worker.front))
    stays(lambda: worker.crashes() == 0 and _linked(worker, name))
    assert worker.begin_with(name, native=["spu"]) == opened


def _linked(worker, session):
    return worker.ask("POST", f"/v1/sessions/{session}/release", b"[]").json["linked"]


def _load_in(worker, session):
    data = program(lambda: mp.load("P0", "kept", type=mp.TensorType("f64")))
    assert worker.put_program(data, session).status == 200
    return worker.submit(session, data).json["error"]["text"]
