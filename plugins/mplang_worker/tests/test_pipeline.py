"""Steps that are sent ahead: their order, their failures, and how many there may be."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import gated_ops
import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_http.coordinator import flights
from mplang_http.coordinator.remote_worker import RemoteWorker
from mplang_policy import Ledger
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, NEVER, in_time, wait_until
from processes import engine_of

import mplang_core as mp
from mplang_core.errors import PartyError, RunError

KIT = ("mplang_testing.dialect", "gated_ops")
FAILED = "party 1 failed in kit.fail_at at .*test_pipeline.py:{}: "


@contextlib.contextmanager
def workers(count=2, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.path.dirname(__file__))
        with LocalCluster(count, imports=KIT, insecure=True, **options) as cluster:
            yield cluster


def connect(cluster, **options):
    return mp.connect("http", cluster.spec, mode="standard", **options)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def two(logs):
    with workers(log=str(logs)) as cluster:
        yield cluster


@pytest.fixture
def host(two):
    with connect(two) as made:
        yield made


@pytest.fixture
def gate(tmp_path):
    """Return the file that lets ``gated`` ops end."""
    return tmp_path / "gate"


def one(host):
    return mp.evaluate(host, lambda: mp.constant(np.int64(1)))


def doubled(host, x):
    return mp.evaluate(host, lambda x: mp.invoke(dialect.add, x, x), x)


def waited(host, x, gate):
    return mp.evaluate(host, lambda x: mp.invoke(gated_ops.wait, x, gate=str(gate)), x)


def failed(host, x):
    return mp.evaluate(host, lambda x: mp.invoke(dialect.fail_at, x, party=1), x)


def noted(host, x, text):
    return mp.evaluate(host, lambda x: mp.invoke(gated_ops.note, x, text=text), x)


def line() -> int:
    """Return the line of the caller."""
    return sys._getframe(1).f_lineno


FAILING = failed.__code__.co_firstlineno + 1


def many(host, x):
    for _ in range(flights.MAX_FLIGHTS + 1):
        doubled(host, x)


def works(host):
    assert mp.fetch(host, doubled(host, one(host))) == [2] * host.world_size


# -- order


def test_steps_run_in_the_order_in_which_they_were_sent(host, logs):
    with host.pipeline():
        x = one(host)
        for i in range(40):
            x = noted(host, doubled(host, x), f"order {i}.")
        assert mp.fetch(host, x) == [1 << 40] * 2
    log = (logs / "node1.log").read_text()
    places = [log.index(f"gated.note order {i}.") for i in range(40)]
    assert places == sorted(places)


def test_a_step_is_sent_before_the_one_before_has_ended(host, gate):
    with host.pipeline(), in_time():
        x = waited(host, one(host), gate)
        y = doubled(host, x)
        assert len(host._flights) == 3
        gate.touch()
        assert mp.fetch(host, y) == [2, 2]
        assert len(host._flights) == 0
    works(host)


def test_what_has_ended_is_fetched_while_others_wait(host, gate):
    x = one(host)
    with host.pipeline():
        waited(host, x, gate)
        with in_time():
            assert mp.fetch(host, x) == [1, 1]
        gate.touch()


def test_values_are_released_in_time(host):
    """What a step still needs is not released before it runs, and all is afterwards."""

    def values():
        found = host._workers[0].client.request("GET", "v1", "sessions", host.session, "jobs")
        return found["values"]

    before, x = values(), one(host)
    with host.pipeline():
        for _ in range(40):
            x = doubled(host, x)
        assert mp.fetch(host, x) == [1 << 40] * 2
    del x
    wait_until(lambda: values() == before)


def test_a_step_with_other_parties_waits(two, gate):
    with connect(two) as host, host.pipeline():
        x = waited(host, one(host), gate)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: wait_until(lambda: len(host._flights) == 2) and gate.touch())
            y = mp.evaluate(host, lambda x: mp.simp.pcall_static((0,), dialect.add, x, x), x)
        assert len(host._flights) == 1
        assert mp.fetch(host, y)[0] == 2


def test_launched_programs_and_storage_are_awaited(host):
    with host.pipeline():
        x = mp.evaluate(host, lambda: mp.constant(np.int64(3)), mode="launch")
        assert len(host._flights) == 0
        assert mp.fetch(host, x) == [3, 3]


def test_a_party_that_works_on_an_earlier_step_is_waited_for(two):
    """One party has ended a step and begins the next, which the other has not come to."""
    slow = lambda x: mp.invoke(dialect.late, x, party=1, seconds=3.0)  # noqa: E731
    with connect(two, timeout=0.5) as host, host.pipeline():
        x = mp.evaluate(host, slow, one(host))
        y = mp.evaluate(host, lambda x: mp.pshfl_s(x, (0, 1), (1, 0)), x)
        assert mp.fetch(host, y) == [1, 1]


# -- failures


@pytest.mark.parametrize("gated", [False, True])
def test_a_failure_is_raised_at_the_next_fetch_and_names_its_line(host, logs, gated, monkeypatch):
    monkeypatch.setattr(RemoteWorker, "has_gate", gated)  # then each one's end is asked for
    x = one(host)
    with host.pipeline():
        y = doubled(host, x)
        z = failed(host, y)
        w = noted(host, z, f"after a failure {gated}")
        with pytest.raises(PartyError, match=FAILED.format(FAILING)) as error:
            mp.fetch(host, w)
        assert error.value.rank == 1
        assert error.value.location.endswith(f"test_pipeline.py:{FAILING}")
        assert any("sent ahead" in note for note in error.value.__notes__)
        assert mp.fetch(host, y) == [2, 2]
        for again in (lambda: mp.fetch(host, z), lambda: doubled(host, w)):
            with pytest.raises(PartyError, match=FAILED.format(FAILING)):
                again()
        assert mp.fetch(host, doubled(host, y)) == [4, 4]
    for name in ("node0.log", "node1.log"):
        assert f"after a failure {gated}" not in (logs / name).read_text()


def test_a_failure_is_raised_at_the_end_of_the_pipeline_at_the_latest(host):
    with pytest.raises(PartyError, match=FAILED.format(FAILING)), host.pipeline():
        doubled(host, failed(host, one(host)))
    works(host)


def test_a_failure_is_raised_where_the_host_waits_for_room(host):
    with host.pipeline():
        x = failed(host, one(host))
        with pytest.raises(PartyError, match=FAILED.format(FAILING)):
            many(host, x)
    works(host)


def test_a_failure_is_noted_on_the_error_that_ends_the_pipeline(host):
    def program():
        with host.pipeline():
            failed(host, one(host))
            raise KeyError("of the user")

    with pytest.raises(KeyError) as error:
        program()
    assert any("kit.fail_at" in note for note in error.value.__notes__)
    works(host)


def test_an_earlier_failure_is_told_before_a_later_one(host):
    first = None
    with host.pipeline():
        x = one(host)
        first = line() + 1
        y = mp.evaluate(host, lambda x: mp.invoke(dialect.fail_at, x, party=1), x)
        z = failed(host, y)
        with pytest.raises(PartyError, match=FAILED.format(first)):
            mp.fetch(host, z)


def test_another_thread_is_not_told_of_failures_that_are_not_its_own(host):
    x = one(host)

    def program():
        with host.pipeline(), ThreadPoolExecutor(1) as pool:
            failed(host, x)
            assert pool.submit(lambda: mp.fetch(host, doubled(host, x))).result(DEADLINE) == [2, 2]

    with pytest.raises(PartyError, match=FAILED.format(FAILING)):
        program()


def test_outside_of_a_pipeline_a_failure_is_raised_at_its_line(host):
    with pytest.raises(PartyError, match=FAILED.format(FAILING)):
        failed(host, one(host))


# -- how many


@pytest.mark.parametrize("bound", ["MAX_FLIGHTS", "MAX_BYTES"])
def test_steps_under_way_are_bounded(host, gate, monkeypatch, bound):
    literal = mp.public(np.zeros(100, np.int64))
    if bound == "MAX_BYTES":
        monkeypatch.setattr(flights, "MAX_BYTES", 6 * 1000)
    most = {"MAX_FLIGHTS": flights.MAX_FLIGHTS, "MAX_BYTES": 6}[bound]
    seen = []

    def send():
        with host.pipeline():
            waited(host, literal, gate)
            for _ in range(2 * most):
                doubled(host, literal)
                seen.append(len(host._flights))

    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send)
        wait_until(lambda: len(seen) >= most - 2 or sending.done())
        gate.touch()
        sending.result(DEADLINE)
    assert len(seen) == 2 * most
    assert max(seen) <= most


@pytest.mark.parametrize("bound", [{"limits": {"failures": 2}}, {"quotas": {"jobs": 2}}])
def test_a_worker_that_takes_few_runs_at_a_time_gets_no_more(bound):
    with workers(**bound) as cluster, connect(cluster) as host, host.pipeline(), in_time():
        x = one(host)
        for _ in range(10):
            x = doubled(host, x)
        assert mp.fetch(host, x) == [1 << 10] * 2


# -- ends


def jobs_of(host):
    path = ("v1", "sessions", host.session, "jobs")
    found = [each.client.request("GET", *path)["jobs"] for each in host._workers]
    return [[job["state"] for job in jobs] for jobs in found]


def test_an_interrupt_cancels_what_was_sent_ahead(host, gate):
    def interrupt():  # once both steps are at all workers: what is not yet sent has no job there
        wait_until(lambda: all(len(states) == 3 for states in jobs_of(host)))
        wait_until(lambda: any("running" in states for states in jobs_of(host)))
        os.kill(os.getpid(), signal.SIGINT)

    def program():
        with host.pipeline(), in_time():
            sent.append(waited(host, one(host), gate))
            last = doubled(host, sent[0])
            interrupting.start()
            mp.fetch(host, last)

    sent, interrupting = [], threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        program()
    interrupting.join()
    assert all(states[-2:] == ["cancelled"] * 2 for states in jobs_of(host))
    with pytest.raises(RunError, match="interrupted"):
        mp.fetch(host, sent[0])
    gate.touch()
    works(host)


def test_a_host_that_is_closed_with_steps_under_way_says_so(two, gate):
    def program():
        with connect(two) as host, host.pipeline():
            doubled(host, waited(host, one(host), gate))
            host.close()

    with in_time(), pytest.raises(RunError, match="was closed when 3 steps"):
        program()


def test_a_host_that_is_dropped_is_collected(two):
    host = connect(two)
    with host.pipeline():
        mp.fetch(host, doubled(host, one(host)))
    gone = weakref.ref(host)
    del host
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("process", ["front", "engine"])
def test_a_worker_that_is_killed_meanwhile_is_named(process, gate):
    def program(host, front):
        with host.pipeline():
            doubled(host, waited(host, one(host), gate))
            wait_until(lambda: all("running" in states for states in jobs_of(host)))
            os.kill(front if process == "front" else engine_of(front), signal.SIGKILL)

    with workers(3) as cluster, connect(cluster, patience=NEVER) as host:
        with in_time(), pytest.raises(PartyError, match=r"test_pipeline.py:\d+") as error:
            program(host, cluster.workers[1].pid)
        assert error.value.rank == 1
        assert error.value.location is not None
        gate.touch()


def entries(path):
    with contextlib.closing(Ledger(path, read_only=True)) as ledger:
        return [(each.kind, each.body) for each in ledger.entries() if "run" in each.body]


@pytest.mark.parametrize("ahead", [False, True])
def test_what_is_on_record_is_the_same(tmp_path, ahead):
    """Each party has each run on record, in order; what did not run is an attempt at most."""
    names = ["node0", "node1"]
    for name in names:
        (tmp_path / f"{name}.cedar").write_text("permit (principal, action, resource);")
    gates = {
        name: {"policy": str(tmp_path / f"{name}.cedar"), "log": str(tmp_path / f"{name}.db")}
        for name in names
    }

    def program(host):
        with host.pipeline() if ahead else contextlib.nullcontext():
            x = one(host)
            for _ in range(5):
                x = doubled(host, x)
            doubled(host, failed(host, x))

    with workers(gates=gates) as cluster, connect(cluster) as host:
        assert all(worker.has_gate for worker in host._workers)
        with pytest.raises(PartyError, match=FAILED.format(FAILING)):
            program(host)
        works(host)
        mine = host.session
    runs = [f"{mine}-{i}" for i in range(7)]
    for name in names:
        found = entries(tmp_path / f"{name}.db")
        begun = [body["run"] for kind, body in found if kind == "run"]
        ended = [body["run"] for kind, body in found if kind == "end"]
        assert begun[:7] == runs
        assert sorted(begun) == sorted(ended)
        if ahead:  # the one after the failure
            kinds = {kind for kind, body in found if body["run"] == f"{mine}-7"}
            assert kinds <= {"attempt"}


def test_simulators_await_each_step():
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim, sim.pipeline():
        x = one(sim)
        with pytest.raises(PartyError, match=FAILED.format(FAILING)):
            failed(sim, x)
