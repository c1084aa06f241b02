"""What a coordinator with raw access to the wire can fetch: results of its programs."""

from __future__ import annotations

import contextlib
import os
import signal

import gated_ops
import numpy as np
import pytest
from http_raw import RawWorker
from log_reading import LogReader
from mplang_http import LocalCluster
from mplang_http.coordinator.client import LostWorkerError, WorkerClient
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, wait_until
from processes import engine_of

import mplang_core as mp
from mplang_core.errors import PartyError, RunError

LARGE = np.arange(8 << 20, dtype=np.float64)


@pytest.fixture(scope="module", params=["production", "development"])
def cluster(request, tmp_path_factory):
    logs = tmp_path_factory.mktemp("logs")
    options = {"imports": ("mplang_testing.dialect", "gated_ops"), "mode": request.param}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.path.dirname(__file__))
        with LocalCluster(2, log=str(logs), **options) as made:
            made.mode, made.logs = request.param, logs
            yield made


@pytest.fixture
def host(cluster):
    with mp.connect("http", cluster.spec) as made:
        yield made


def get(cluster, host, name, rank=0):
    return RawWorker(cluster, rank).ask("GET", f"/v1/sessions/{host.session}/values/{name}")


def put(host, value):
    with mp.with_ctx(host):
        return mp.put("P0", value)


def name_of(value, rank=0):
    return value.value.values[rank].name


def test_a_result_is_fetched_and_nothing_else_of_its_program(cluster, host):
    """Not what it computed on the way, and not what it got and did not return."""
    x = put(host, np.int64(20))

    def program(x):
        kept = mp.keep(mp.invoke(dialect.add, x, x))
        return mp.invoke(dialect.add, kept, x), kept

    result, kept = mp.evaluate(host, program, x)
    assert mp.fetch(host, result) == 60
    assert get(cluster, host, name_of(result)).status == 200
    assert get(cluster, host, name_of(kept)).error == (403, "protected")
    assert get(cluster, host, name_of(x)).status == (200 if cluster.mode == "development" else 403)
    run = name_of(result).rpartition(".")[0]
    for i in range(2, 8):  # whatever the values of the program are called
        assert get(cluster, host, f"{run}.{i}").error == (404, "unknown-value")
    assert get(cluster, host, f"{run}.0", rank=1).error == (404, "unknown-value")


def test_a_value_that_came_from_another_party_is_not_fetched_there_unless_returned(cluster, host):
    x = put(host, np.int64(20))

    def program(x):
        there = mp.put("P1", x)
        return mp.keep(there), mp.invoke(dialect.add, there, there)

    there, result = mp.evaluate(host, program, x)
    assert get(cluster, host, name_of(there, 1), rank=1).error == (403, "protected")
    assert get(cluster, host, name_of(result, 1), rank=1).status == 200


def test_there_is_no_result_before_the_program_ends_and_none_of_one_that_fails(
    cluster, host, tmp_path
):
    x = put(host, np.int64(20))

    def fails(x):
        first = mp.invoke(dialect.add, x, x)
        return first, mp.simp.pcall_static((0,), dialect.fail_at, first, party=0)

    with pytest.raises(PartyError):
        mp.evaluate(host, fails, x)
    session = RawWorker(cluster).ask("GET", f"/v1/sessions/{host.session}/jobs").json
    (run,) = [job["run"] for job in session["jobs"] if job["state"] == "failed"]
    assert get(cluster, host, f"{run}.0").error == (404, "unknown-value")

    gate = tmp_path / "gate"

    def waits(x):
        return x, mp.simp.pcall_static((0,), gated_ops.wait, x, gate=str(gate))

    waiting = host._lease.pool.submit(mp.evaluate, host, waits, x)
    (job,) = wait_until(lambda: running(cluster, host))
    assert get(cluster, host, f"{job}.0").error == (404, "unknown-value")
    gate.touch()
    waiting.result(DEADLINE)
    assert get(cluster, host, f"{job}.0").status == 200


def running(cluster, host):
    """Return the names of the jobs that run."""
    jobs = RawWorker(cluster).ask("GET", f"/v1/sessions/{host.session}/jobs").json["jobs"]
    return [job["run"] for job in jobs if job["state"] == "running"]


def test_values_of_another_session_are_not_there(cluster, host):
    result = mp.evaluate(host, lambda x: mp.invoke(dialect.add, x, x), put(host, np.int64(20)))
    with mp.connect("http", cluster.spec) as other:
        found = get(cluster, other, name_of(result))
        assert found.error == (404, "unknown-value")


# -- a large value, which is streamed


def fetch_and(action, cluster, host):
    """Fetch a value of 64 MB, and do something when its first bytes have come."""
    x = put(host, LARGE)
    result = mp.evaluate(host, lambda x: mp.invoke(dialect.add, x, x), x)  # there until the end
    node = cluster.spec.nodes[0]
    actions = iter([action])
    client = WorkerClient(node.name, node.address, None, DEADLINE, host.session)
    with contextlib.closing(client):
        path = ("v1", "sessions", host.session, "values", name_of(result))
        return client.fetch(*path, on_progress=lambda _: next(actions, lambda: None)())


def test_an_engine_that_ends_amid_a_value_is_an_error_and_the_front_goes_on(cluster, host):
    def kill():
        os.kill(engine_of(cluster.workers[0].pid), signal.SIGKILL)

    with pytest.raises(LostWorkerError, match=r"worker node0 at http.* does not answer: "):
        fetch_and(kill, cluster, host)
    with mp.connect("http", cluster.spec) as other:
        assert mp.fetch(other, mp.evaluate(other, lambda: mp.constant(7)))[0] == 7
    log = cluster.logs / "node0.log"
    LogReader(log, begin=0).wait_for("a value does not come whole: the engine ended")
    assert "Traceback" not in log.read_text()


def test_whoever_leaves_amid_a_value_leaves_nothing_behind(cluster, host):
    def leave():
        raise OSError("gone")

    engine = engine_of(cluster.workers[0].pid)
    for _ in range(20):  # an engine writes eight values at a time
        with pytest.raises(LostWorkerError, match="gone"):
            fetch_and(leave, cluster, host)
    found = fetch_and(lambda: None, cluster, host)
    np.testing.assert_array_equal(found[-LARGE.nbytes :].view(np.float64), 2 * LARGE)
    wait_until(lambda: sockets_of(engine) < 8)


def sockets_of(pid):
    """Return the number of sockets that a process has open."""
    found = 0
    for file in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # it was closed just now
            found += os.readlink(f"/proc/{pid}/fd/{file}").startswith("socket:")
    return found


def test_a_value_of_a_closed_host_is_not_fetched(cluster):
    with mp.connect("http", cluster.spec) as host:
        value = put(host, 1.0)
    with pytest.raises(RunError, match=r"test_fetch\.py:\d+: this host is closed") as error:
        mp.fetch(host, value)
    assert error.value.code == "R003"
