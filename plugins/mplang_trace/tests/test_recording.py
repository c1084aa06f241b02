"""What ran when, at whom, and what went over which link: recordings, traces, the live table."""

from __future__ import annotations

import functools
import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mplang_cli.cli import app
from mplang_simulator import ThreadCommunicator
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, NEVER, wait_until
from mplang_trace import SpanRecorder, live_table, terminal
from rich.console import Console
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import ConfigError, MPLangError, PartyError
from mplang_core.ext import ObservedWorker, PartyState

X = np.arange(1000.0)


def around(x):
    doubled = mp.invoke(dialect.add, x, x)
    return mp.pshfl_s(doubled, [0, 1, 2], [2, 0, 1])


def loop(x):
    below = lambda i: mp.invoke(dialect.less, i, mp.constant(np.int64(5)))  # noqa: E731
    return mp.while_loop(below, lambda i: mp.invoke(dialect.add, i, mp.constant(np.int64(1))), x)


def slow(x, seconds=5.0):
    return mp.pshfl_s(mp.invoke(dialect.late, x, party=1, seconds=seconds), [0, 1, 2], [1, 1, 1])


def slices(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def assert_nested(events):
    """Slices of a thread lie within one another, or apart: others are not shown right."""
    threads = {}
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        ends = threads.setdefault((event["pid"], event["tid"]), [])
        while ends and ends[-1] <= event["ts"] + 1e-3:
            ends.pop()
        end = event["ts"] + event["dur"]
        assert not ends or end <= ends[-1] + 1e-3, event
        ends.append(end)


def test_a_trace_has_all_parties_and_is_nested(simulate, mode, tmp_path):
    sim = simulate(3)
    with mp.record(sim) as recording:
        mp.fetch(sim, mp.evaluate(sim, around, X, mode=mode))
    recording.save(tmp_path / "out.json")
    trace = json.loads((tmp_path / "out.json").read_text())
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    assert names == ["host", "P0 node0", "P1 node1", "P2 node2"]
    events = slices(trace)
    assert {event["pid"] for event in events} == {0, 1, 2, 3}
    assert_nested(events)
    for party in (1, 2, 3):
        found = {event["name"] for event in events if event["pid"] == party}
        assert {"simp.pcall_static", "kit.add", "simp.shuffle_static"} <= found
    lines = {event["args"].get("line") for event in events if event["name"] == "kit.add"}
    assert lines == {f"test_recording.py:{around.__code__.co_firstlineno + 1}"}


def test_arrows_go_from_who_sends_to_who_waits(simulate, mode):
    sim = simulate(3)
    with mp.record(sim) as recording:
        mp.evaluate(sim, around, X, mode=mode)
    events = recording.to_json()["traceEvents"]
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    pairs = {(starts[i]["pid"], ends[i]["pid"]) for i in starts}
    assert pairs == {(1, 2), (2, 3), (3, 1)}
    assert all(starts[i]["ts"] <= ends[i]["ts"] for i in starts)


@pytest.mark.once
def test_bytes_are_those_of_the_values(simulate, mode):
    sim = simulate(3)
    with mp.record(sim) as recording:
        mp.evaluate(sim, around, X, mode=mode)
    expected = {(rank, (rank + 1) % 3): (1, X.nbytes) for rank in range(3)}
    found = {link: (use.messages, use.bytes) for link, use in recording.links().items()}
    assert found == expected


@pytest.mark.once
def test_ops_in_loops_are_there_as_often_as_they_run(simulate, mode):
    sim = simulate(2)
    with mp.record(sim) as recording:
        mp.evaluate(sim, loop, np.int64(0), mode=mode)
    turns = [s for s in recording.spans if (s.party, s.name) == (0, "kit.add")]
    assert len(turns) == 5


def test_what_failed_is_marked(simulate, mode):
    sim = simulate(3)

    def fails(x):
        return mp.invoke(dialect.fail_at, x, party=1)

    with mp.record(sim) as recording, pytest.raises(PartyError):
        mp.evaluate(sim, fails, X, mode=mode)
    failed = {(span.party, span.name) for span in recording.spans if "failed" in span.facts}
    assert {(1, "kit.fail_at"), (None, "fails")} <= failed
    assert not {party for party, _ in failed} & {0, 2}


def test_only_what_runs_inside_is_recorded(simulate, mode):
    sim = simulate(3)
    mp.evaluate(sim, around, X, mode=mode)
    with mp.record(sim) as recording:
        pass
    mp.evaluate(sim, around, X, mode=mode)
    assert not recording.spans
    assert recording.to_json()["traceEvents"]


def test_recordings_overlap_and_take_in_other_threads(simulate):
    sim = simulate(3)
    with mp.record(sim) as all_of_it:
        mp.evaluate(sim, around, X)
        with mp.record(sim) as rest:
            thread = threading.Thread(target=mp.evaluate, args=(sim, around, X))
            thread.start()
            thread.join()
    assert len(all_of_it.spans) == 2 * len(rest.spans) > 0
    assert_nested(slices(all_of_it.to_json()))


def test_a_listener_and_a_recording_at_once(simulate):
    class Counts:
        started = finished = 0

        def op_started(self, op, index, total):
            self.started += 1

        def op_finished(self, op, index, total):
            self.finished += 1

    sim, counts = simulate(3), Counts()
    with mp.record(sim) as recording:
        mp.evaluate(sim, around, X, listener=counts)
    host = [span for span in recording.spans if span.party is None and span.kind == "op"]
    assert counts.started == counts.finished == len(host) > 0


def test_spans_are_capped_and_it_says_so():
    program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), loop, np.int64(0)).program
    recorder = SpanRecorder(0, "run", most=10)
    (comm,) = ThreadCommunicator.connected(1, timeout=10.0)
    comm.open("run")
    worker = ObservedWorker(comm, session="session")
    worker.evaluate(program, [np.int64(0)], "run", recorder=recorder)
    assert len(recorder.spans) == 10
    assert recorder.dropped > 0


@pytest.mark.once
def test_the_host_knows_where_parties_are(simulate, monkeypatch):
    sim, seen = simulate(3), threading.Event()
    monkeypatch.setattr(dialect, "pause", lambda seconds, why: seen.wait(DEADLINE))
    thread = threading.Thread(target=mp.evaluate, args=(sim, slow, X), kwargs={"mode": "launch"})
    thread.start()
    waiting, late = ("running", "simp.shuffle_static"), ("running", "kit.late")
    wanted = [waiting, late, waiting]
    line = f"test_recording.py:{slow.__code__.co_firstlineno + 1}"

    def as_wanted():
        states = sim.progress()
        return states if [(state.state, state.op) for state in states] == wanted else None

    states = wait_until(as_wanted)
    assert {state.location for state in states} == {line}
    assert sim.at() is not None
    seen.set()
    thread.join()
    assert {(state.state, state.op) for state in sim.progress()} == {("idle", None)}
    assert sim.progress()[1].links[2].sent == X.nbytes
    assert sim.at() is None


class Pause:
    """A listener that stops an evaluation at its first op until it is told to go on."""

    def __init__(self):
        self.op, self.reached, self.go = None, threading.Event(), threading.Event()

    def op_started(self, op, index, total):
        self.op = op
        self.reached.set()
        assert self.go.wait(DEADLINE)

    def op_finished(self, op, index, total):
        pass


def test_evaluations_of_several_threads_are_told_apart(simulate):
    sim, pauses, threads = simulate(2), [Pause(), Pause()], []
    for value, pause in enumerate(pauses):
        program = mp.compile(lambda value=value: mp.constant(value))
        run = functools.partial(mp.evaluate, sim, program, listener=pause)
        threads.append(threading.Thread(target=run))
        threads[-1].start()
        assert pause.reached.wait(DEADLINE)
    for pause, thread in zip(pauses, threads, strict=True):
        assert sim.at() is pause.op, "of the evaluation that began first"
        pause.go.set()
        thread.join()
    assert sim.at() is None


def test_a_table_is_shown_when_it_takes_long(simulate, monkeypatch):
    out = io.StringIO()

    def shown(*words):
        return all(word in out.getvalue() for word in words)

    console = Console(file=out, force_terminal=True, width=120)
    sim = simulate(3)
    with monkeypatch.context() as patch, mp.watch(sim, console):
        patch.setattr(live_table, "AFTER", NEVER)  # a busy machine may take long for this one
        mp.evaluate(sim, around, X)
    assert not out.getvalue()
    wanted = "node0", "running", "kit.late", "test_recording.py:"
    monkeypatch.setattr(dialect, "pause", lambda *_: wait_until(lambda: shown(*wanted)))
    with mp.watch(sim, console):
        mp.evaluate(sim, slow, X, mode="launch")
    assert shown(*wanted)
    assert shown("8.0 kB")  # what the first program sent
    assert not terminal.locked()


def test_no_table_where_there_is_no_terminal_or_another_has_it(simulate):
    sim = simulate(3)
    quiet = lambda x: slow(x, 1.8)  # noqa: E731
    plain = Console(file=io.StringIO(), force_terminal=False, width=120)
    with mp.watch(sim, plain):
        mp.evaluate(sim, quiet, X)
    assert not plain.file.getvalue()
    busy = Console(file=io.StringIO(), force_terminal=True, width=120)
    with terminal, mp.watch(sim, busy):
        mp.evaluate(sim, quiet, X)
    assert not busy.file.getvalue()


def test_colours_that_are_forced_make_no_terminal(simulate, monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as notebooks and CI do
    sim = simulate(3)
    with mp.watch(sim):
        mp.evaluate(sim, lambda x: slow(x, 1.8), X)
    assert "\x1b" not in capfd.readouterr().err


SOURCE = """
import mplang_core as mp
from mplang_testing import dialect

def around(x):
    return mp.pshfl_s(mp.invoke(dialect.add, x, x), [0, 1], [1, 0])

def fails(x):
    return mp.invoke(dialect.fail_at, x, party=1)
"""


@pytest.mark.parametrize("fn", ["around", "fails"])
def test_the_command_writes_a_trace_also_of_what_fails(fn, tmp_path):
    (tmp_path / "prog.py").write_text(SOURCE)
    path = tmp_path / "out.json"
    args = ["run", f"{tmp_path / 'prog.py'}:{fn}", "--cluster", "2", "--arg", "x=3"]
    result = CliRunner().invoke(app, [*args, "--trace", str(path)])
    assert (result.exit_code == 0) is (fn == "around")
    assert "spans of 2 parties" in result.stderr
    assert {event["pid"] for event in slices(json.loads(path.read_text()))} == {0, 1, 2}


def test_a_trace_that_cannot_be_written_is_told_before_anything_runs(tmp_path):
    (tmp_path / "prog.py").write_text(SOURCE)
    args = ["run", f"{tmp_path / 'prog.py'}:around", "--cluster", "2", "--arg", "x=3"]
    result = CliRunner().invoke(app, [*args, "--trace", str(tmp_path / "none" / "out.json")])
    assert isinstance(result.exception, ConfigError)
    assert "cannot write the trace" in str(result.exception)


@pytest.mark.parametrize("name", ["out.json", "out.html", "out.svg"])
def test_a_recording_that_cannot_be_written_is_an_error_of_ours(simulate, tmp_path, name):
    sim = simulate(3)
    with mp.record(sim) as recording:
        mp.evaluate(sim, around, X)
    with pytest.raises(ConfigError, match=r"test_recording\.py:\d+: cannot write .*No such") as e:
        recording.save(tmp_path / "none" / name)
    assert e.value.code == "C005"
    recording.save(tmp_path / name)


def test_a_recording_without_with_says_how(simulate):
    recording = mp.record(simulate(1))
    assert repr(recording) == "<no recording yet; write: with mp.record(host) as recording>"
    told = r"test_recording\.py:\d+: .*write: with mp\.record\(host\) as recording"
    with pytest.raises(MPLangError, match=told):
        recording.save("out.json")
    with pytest.raises(AttributeError, match="no attribute 'svae'"):
        recording.svae("out.json")


def test_recordings_of_several_threads_at_once_all_hear_of_a_run(simulate):
    sim, ready, over = simulate(3), threading.Barrier(9), threading.Event()

    def recorded(_):
        with mp.record(sim) as recording:
            ready.wait(DEADLINE)
            assert over.wait(DEADLINE)
        return recording

    for _ in range(5):
        ready.reset()
        over.clear()
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(recorded, i) for i in range(8)]
            ready.wait(DEADLINE)
            mp.evaluate(sim, around, X)
            over.set()
            assert all(each.result().links() for each in waiting)
        assert sim.observe is None


def test_a_host_that_tells_nothing_is_not_recorded_and_not_shown():
    class Silent(mp.simp.SimpHost):
        _submit = _collect = _fetch = None

    host = Silent(mp.ClusterSpec.simple(1))
    with pytest.raises(ConfigError, match="a Silent cannot be recorded"), mp.record(host):
        pass
    with mp.watch(host, Console(force_terminal=True)):
        pass


def test_a_long_op_is_shown_with_the_seconds_since_it_was_seen():
    """As of a query: by the clock of the host, whatever the party tells."""
    seen = live_table.Seen()
    query, other = (PartyState("running", op, "a.py:7") for op in ("ibis.run", "jax.run"))
    passed = [seen.since("bank", query, now, int(now)) for now in (2.0, 3.0, 9.5)]
    assert passed == [(0.0, 0), (1.0, 1), (7.5, 7)]
    assert seen.since("bank", other, 10.0, 10) == (0.0, 0)
    assert seen.since("shop", query, 10.0, 10) == (0.0, 0)
