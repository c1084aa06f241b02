"""Tracing tests: one trace of all processes on the host's clock, and progress reports."""

from __future__ import annotations

import functools
import json
import threading
from pathlib import Path

import gated_ops
import httpx
import msgspec
import numpy as np
import pytest
from mplang_cli.cli import app
from mplang_http import LocalCluster
from mplang_http.coordinator.client import RefusedError, WorkerClient
from mplang_http.coordinator.job_monitor import JobMonitor, clock_offset
from mplang_http.wire.spans import read_spans
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, wait_until
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import PartyError, WireError

KIT = ("mplang_testing.dialect", "gated_ops")
X = np.arange(1000.0)


def around(x):
    doubled = mp.invoke(dialect.add, x, x)
    return mp.pshfl_s(doubled, [0, 1, 2], [2, 0, 1])


def gated(x, gate):
    """Have party 1 wait for a file, and the others for party 1."""
    sent = mp.pshfl_s(x, [0, 1, 2], [2, 0, 1])
    late = mp.simp.pcall_static([1], gated_ops.wait, sent, gate=gate)
    return mp.pshfl_s(late, [0, 1, 2], [1, 1, 1])


@pytest.fixture(scope="module")
def workers():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        with LocalCluster(3, insecure=True, imports=KIT) as cluster:
            yield cluster


@pytest.fixture
def host(workers):
    with mp.connect("http", workers.spec) as made:
        yield made


def test_events_tell_of_a_job_until_it_has_ended(host, workers, tmp_path):
    gate = tmp_path / "gate"
    program = functools.partial(gated, gate=str(gate))
    thread = threading.Thread(target=mp.evaluate, args=(host, program, X))
    thread.start()
    address = workers.spec.nodes[1].address
    run = f"/v1/sessions/{host.session}/jobs/{host.session}-0"
    seen = []
    with httpx.Client(base_url=address, timeout=DEADLINE) as client:
        wait_until(lambda: client.get(run).status_code != 404)
        with client.stream("GET", f"{run}/events?every=0.1") as told:
            assert told.headers["content-type"].startswith("text/event-stream")
            for line in filter(None, told.iter_lines()):
                seen.append(json.loads(line[6:]))
                if [status["at"]["op"] for status in seen].count("gated.wait") == 2:
                    gate.touch()
        assert client.get(f"{run}9/events").status_code == 404
    thread.join()
    assert [status["state"] for status in seen[:-1]] == ["running"] * (len(seen) - 1)
    assert seen[-1]["state"] == "done"
    assert len(seen) > 2


@pytest.fixture(params=["standard", "launch"])
def mode(request):
    return request.param


def test_the_spans_of_all_parties_are_in_one_trace(host, mode, tmp_path):
    with mp.record(host) as recording:
        mp.fetch(host, mp.evaluate(host, around, X, mode=mode))
    recording.save(tmp_path / "out.json")
    trace = json.loads((tmp_path / "out.json").read_text())
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    for party in (1, 2, 3):
        found = {event["name"] for event in events if event["pid"] == party}
        assert {"simp.pcall_static", "kit.add", "simp.shuffle_static"} <= found
    found = {event["name"] for event in events if event["pid"] == 0}
    assert {"around", "fetch from P0", "fetch from P1", "fetch from P2"} <= found
    arrows = [event for event in trace["traceEvents"] if event["ph"] in "sf"]
    assert len(arrows) == 6


def test_times_are_those_of_the_host(host, mode):
    """The clocks on one machine are equal, so causes precede effects."""
    with mp.record(host) as recording:
        mp.evaluate(host, around, X, mode=mode)
    (call,) = [span for span in recording.spans if span.kind == "program"]
    sends = {s.party: s for s in recording.spans if s.kind == "send"}
    waits = {s.party: s for s in recording.spans if s.kind == "wait"}
    for span in recording.spans:
        assert call.begin <= span.begin <= span.end <= call.end
    for party, wait in waits.items():
        assert sends[wait.facts["peer"]].begin < wait.end, party


def test_bytes_are_those_of_the_values(host, mode):
    with mp.record(host) as recording:
        mp.evaluate(host, around, X, mode=mode)
    expected = {(rank, (rank + 1) % 3): (1, X.nbytes) for rank in range(3)}
    found = {link: (use.messages, use.bytes) for link, use in recording.links().items()}
    assert found == expected


def test_a_failed_program_leaves_a_trace_of_all(host, mode):
    def fails(x):  # after two turns, so that all parties have begun
        return around(mp.invoke(dialect.fail_at, around(around(x)), party=1))

    with mp.record(host) as recording, pytest.raises(PartyError):
        mp.evaluate(host, fails, X, mode=mode)
    failed = {(span.party, span.name) for span in recording.spans if "failed" in span.facts}
    assert (1, "kit.fail_at") in failed
    assert {0, 1, 2} <= {span.party for span in recording.spans}
    assert dialect.SECRET not in str(recording.to_json())


def test_the_host_knows_where_workers_are(host, tmp_path):
    gate = tmp_path / "gate"
    program = functools.partial(gated, gate=str(gate))
    thread = threading.Thread(target=mp.evaluate, args=(host, program, X))
    thread.start()
    line = gated.__code__.co_firstlineno
    waiting = [("running", "simp.shuffle_static", f"test_tracing.py:{line + 4}")] * 2
    late = ("running", "gated.wait", f"test_tracing.py:{line + 3}")
    wanted = [waiting[0], late, waiting[1]]

    def there():
        assert thread.is_alive()
        states = host.progress()
        found = [(state.state, state.op, state.location) for state in states]
        return states if found == wanted else None

    states = wait_until(there)
    assert [states[rank].links[(rank + 1) % 3].sent for rank in range(3)] == [X.nbytes] * 3
    gate.touch()
    thread.join()
    states = host.progress()
    assert [state.state for state in states] == ["done"] * 3
    assert states[1].links[0].sent_messages == 1
    assert states[1].links[2].sent == 2 * X.nbytes


def test_a_status_tells_of_its_own_job_only(host):
    for _ in range(2):
        mp.evaluate(host, around, X)
    node = host.cluster_spec.nodes[0]
    client = WorkerClient(node.name, node.address, None, DEADLINE)
    jobs = client.request("GET", "v1", "sessions", host.session, "jobs")["jobs"]
    assert len(jobs) == 2
    for job in jobs:
        assert job["links"]["1"] == {
            "sent": X.nbytes, "sent_messages": 1, "received": 0, "received_messages": 0
        }  # fmt: skip
    assert host.progress()[0].links[1].sent == 2 * X.nbytes
    with pytest.raises(RefusedError, match="not recorded"):
        client.fetch("v1", "sessions", host.session, "jobs", jobs[0]["run"], "spans")
    client.close()


def test_spans_are_kept_for_one_job_only(host):
    runs = []
    for _ in range(2):
        with mp.record(host) as recording:
            mp.evaluate(host, around, X)
        runs.append(next(s.facts["run"] for s in recording.spans if s.party == 0))
    node = host.cluster_spec.nodes[0]
    client = WorkerClient(node.name, node.address, None, DEADLINE)
    path = ("v1", "sessions", host.session, "jobs")
    assert len(client.fetch(*path, runs[1], "spans"))
    with pytest.raises(RefusedError, match="or another one since"):
        client.fetch(*path, runs[0], "spans")
    client.close()


@pytest.mark.parametrize(
    "span",
    [
        {"begin": float("nan")},
        {"duration": -1.0},
        {"duration": float("inf")},
        {"kind": "send"},
        {"kind": "send", "facts": {"peer": "x"}},
        {"kind": "else"},
        {"facts": {"bytes": [1]}},
        None,
    ],
)
def test_spans_that_are_none_are_refused(span):
    right = {"name": "a", "kind": "op", "party": 0, "begin": 1.0, "duration": 0.0}
    assert read_spans(msgspec.msgpack.encode({"spans": [right], "dropped": 0})).spans
    wrong = right | span if span is not None else span
    with pytest.raises(WireError, match="span"):
        read_spans(msgspec.msgpack.encode({"spans": [wrong], "dropped": 0}))


@pytest.mark.parametrize("ahead", [-3600.0, -0.5, 0.5, 3600.0])
def test_a_clock_that_differs_is_found_by_the_order_of_what_happened(ahead):
    """The error is at most the duration of a request."""
    sent, begun, told, heard = 1000.0, 1000.02, 1007.0, 1007.1
    shift = clock_offset(sent, begun + ahead, told + ahead, heard)
    assert abs(shift + ahead) <= 0.1


def test_what_was_sent_in_jobs_before_counts():
    def status(sent, ended=None):
        link = {"sent": sent, "sent_messages": 1, "received": 0, "received_messages": 0}
        return {"state": "running", "ended": ended, "links": {"1": link}}

    monitor = JobMonitor(2)
    for told in (status(5), status(10, ended=1.0), status(3), status(4)):
        monitor.update(0, told)
    assert (monitor.states[0].links[1].sent, monitor.states[0].links[1].sent_messages) == (14, 2)
    assert monitor.states[1].links == {}


SOURCE = """
import mplang_core as mp

def around(x):
    return mp.pshfl_s(x, [0, 1], [1, 0])
"""


def test_the_command_writes_a_trace(workers, tmp_path):
    nodes = [{"name": node.name, "address": node.address} for node in workers.spec.nodes[:2]]
    (tmp_path / "cluster.yaml").write_text(json.dumps({"nodes": nodes}))
    (tmp_path / "prog.py").write_text(SOURCE)
    path = tmp_path / "out.json"
    args = ["--cluster", str(tmp_path / "cluster.yaml"), "--arg", "x=3", "--trace", str(path)]
    args = ["run", f"{tmp_path / 'prog.py'}:around", "--backend", "http", *args]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    events = json.loads(path.read_text())["traceEvents"]
    assert {event["pid"] for event in events if event["ph"] == "X"} == {0, 1, 2}
