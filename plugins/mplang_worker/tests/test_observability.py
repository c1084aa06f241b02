"""In production a coordinator gets results and failures, and nothing to measure private data by."""

from __future__ import annotations

import functools
import json
import os
import threading
from pathlib import Path

import gated_ops
import httpx
import numpy as np
import pytest
from mplang_http import LocalCluster, WorkerConfig
from mplang_http.coordinator.failure_report import party_locations
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, wait_until
from mplang_trace.live_table import _table

import mplang_core as mp
from mplang_core.errors import AbortedError, PartyError
from mplang_core.ext import PartyState

KIT = ("mplang_testing.dialect", "gated_ops")
X = np.arange(10.0)
TOLD = {"run", "program", "state", "held", "error", "observable", "receipt"}
MEASURES = {"at", "begun", "ended", "now", "links"}


def moved(x):
    return mp.pshfl_s(mp.invoke(dialect.add, x, x), [0, 1], [1, 0])


def gated(x, gate):
    """Have party 1 wait for a file, and party 0 for party 1."""
    late = mp.simp.pcall_static([1], gated_ops.wait, x, gate=gate)
    return mp.pshfl_s(late, [0, 1], [1, 1])


def cluster(**options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        return LocalCluster(2, imports=KIT, mode="production", **options)


@pytest.fixture(scope="module")
def workers():
    with cluster() as found:
        yield found


@pytest.fixture
def host(workers):
    with mp.connect("http", workers.spec) as made:
        yield made


@pytest.fixture
def job(host, workers):
    """Return a function that asks a worker about the first run of the host."""

    def ask(rank, ending="", method="GET"):
        at = workers.spec.nodes[rank].address
        url = f"{at}/v1/sessions/{host.session}/jobs/{host.session}-0{ending}"
        return httpx.request(method, url, timeout=DEADLINE)

    return ask


def test_a_worker_is_observable_in_development_and_where_its_owner_says_so():
    assert not WorkerConfig(name="a").is_observable
    assert WorkerConfig(name="a", mode="development").is_observable
    assert WorkerConfig(name="a", observable=True).is_observable
    assert not WorkerConfig(name="a", mode="development", observable=False).is_observable


def test_no_response_about_a_run_has_anything_to_measure_by(host, workers, job):
    mp.evaluate(host, moved, X)
    at = workers.spec.nodes[0].address
    (listed,) = httpx.get(f"{at}/v1/sessions/{host.session}/jobs").json()["jobs"]
    (told,) = [json.loads(line[6:]) for line in job(0, ending="/events").text.split("\n\n")[:-1]]
    for found in (job(0).json(), listed, told, job(0, method="DELETE").json()):
        assert found.keys() == TOLD
        assert (found["state"], found["observable"]) == ("done", False)


def test_a_run_that_goes_on_does_not_tell_where_it_is(host, job, tmp_path):
    gate = tmp_path / "gate"
    thread = threading.Thread(
        target=mp.evaluate, args=(host, functools.partial(gated, gate=str(gate)), X)
    )
    thread.start()
    wait_until(lambda: [each.state for each in host.progress()] == ["running"] * 2)
    assert [each.observable for each in host.progress()] == [False, False]
    for rank in (0, 1):
        found = job(rank).json()
        assert (found.keys(), found["state"]) == (TOLD, "running")
    table = _table(host, 1.0)
    assert [row[2] for row in table.rows][-2:] == ["not observable"] * 2
    gate.touch()
    thread.join()


def test_a_recording_says_that_workers_are_not_observable(host, job):
    told = pytest.warns(RuntimeWarning, match="workers node0, node1 are not observable: their own")
    with told as warned, mp.record(host) as recording:
        mp.evaluate(host, moved, X)
    assert [each.filename for each in warned] == [__file__]
    assert recording.links() == {}
    response = job(0, ending="/spans")
    assert (response.status_code, response.json()["error"]["code"]) == (403, "not-observable")


def test_the_op_that_failed_is_told_and_its_line(host):
    def fails(x):
        return mp.invoke(dialect.fail_at, x, party=1)

    with pytest.raises(PartyError, match=r"party 1 failed in kit\.fail_at at test_observability"):
        mp.evaluate(host, fails, X)


def test_where_a_run_was_when_it_was_stopped_is_not_told(host, job, tmp_path):
    """A coordinator could stop a run at a time of its choice, and see how far it was."""
    gate = tmp_path / "gate"
    run = functools.partial(gated, gate=str(gate))
    failures = []

    def evaluate():
        with pytest.raises(PartyError) as caught:
            mp.evaluate(host, run, X)
        failures.append(caught.value)

    thread = threading.Thread(target=evaluate)
    thread.start()
    wait_until(lambda: [each.state for each in host.progress()] == ["running"] * 2)
    stopped = job(0, method="DELETE").json()
    job(1, method="DELETE")  # else its part could end before it hears of that
    gate.touch()
    wait_until(lambda: job(1).json()["state"] in ("failed", "cancelled"))
    thread.join()
    for error in (stopped["error"], job(0).json()["error"], job(1).json()["error"]):
        assert (error["kind"], error["op"], error["location"]) == ("AbortedError", None, None)


def test_an_owner_can_make_a_worker_in_production_observable():
    with cluster(observable=True) as workers, mp.connect("http", workers.spec) as host:
        with mp.record(host) as recording:
            mp.evaluate(host, moved, X)
        assert recording.links().keys() == {(0, 1), (1, 0)}
        url = f"{workers.spec.nodes[0].address}/v1/sessions/{host.session}/jobs/{host.session}-0"
        assert httpx.get(url).json().keys() >= MEASURES


def test_a_failure_says_of_whom_nothing_is_told():
    states = [PartyState(), PartyState("running", observable=False), PartyState("running")]
    failures = [(0, AbortedError("a")), (1, AbortedError("b")), (2, AbortedError("c"))]
    assert list(party_locations(failures, states, 0)) == [
        "party 1 is not observable, so their ops are unknown"
    ]
