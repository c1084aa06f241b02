"""What failures tell: nothing that depends on operands, and to each coordinator only so often."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading

import failing_ops
import gated_ops
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_http.cli.status import cluster_status
from mplang_http.coordinator.client import WorkerClient
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, NEVER, wait_until
from mplang_worker.base.config import Limits
from mplang_worker.base.errors import RequestError
from mplang_worker.front.failure_budget import FailureBudget
from processes import engine_of

import mplang_core as mp
from mplang_core.errors import PartyError

KIT = ("mplang_testing.dialect", "failing_ops", "gated_ops")
SECRET = np.float32(98.6125)
HERE = os.path.dirname(__file__)
ENDED = ("done", "failed", "cancelled")


@pytest.fixture(scope="module")
def two_workers():
    """Return two workers, shared by tests that read no log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", HERE)
        with LocalCluster(2, imports=KIT) as cluster:
            yield cluster


@pytest.fixture
def workers(tmp_path, monkeypatch):
    """Return a function that starts two workers, which log into ``tmp_path``."""
    monkeypatch.setenv("PYTHONPATH", HERE)
    with contextlib.ExitStack() as stack:

        def start(parties=2, **options):
            options = {"imports": KIT, "log": str(tmp_path), "log_level": "debug", **options}
            return stack.enter_context(LocalCluster(parties, **options))

        yield start


def client(cluster, rank):
    node = cluster.spec.nodes[rank]
    return contextlib.closing(WorkerClient(node.name, node.address, None, DEADLINE))


def used(cluster, rank):
    """Return the failed runs that a worker has counted."""
    with client(cluster, rank) as made:
        return made.request("GET", "health")["failures"]["used"]


# -- the attack of the review: a private number, a bit a run


def bit_fails(value, index, polarity):
    """Fail to make shares of infinity where a bit of the value is set."""

    def infinite(x, i):
        bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
        return jnp.where((bits >> i) & 1 == polarity, jnp.float32(jnp.inf), jnp.float32(0))

    return mp.seal(mp.device("P0")(infinite)(value, mp.put("P0", index)))


@pytest.mark.parametrize(
    "polarity", [1, pytest.param(0, marks=pytest.mark.long("the same with the other bits"))]
)
def test_a_number_is_not_read_bit_by_bit(workers, polarity):
    """As a coordinator would that only runs programs, with the limits that a worker has."""
    cluster = workers(limits=Limits())
    bits, last, texts = {}, None, set()
    with mp.connect("http", cluster.spec) as host:
        with mp.with_ctx(host):
            value = mp.put("P0", SECRET)
        for index in reversed(range(32)):
            try:
                mp.evaluate(host, lambda x, i: bit_fails(x, i, polarity), value, np.uint32(index))
                bits[index] = 1 - polarity
            except PartyError as error:
                last = str(error)
                if "used up" in last:
                    break
                texts.add(last)
                bits[index] = polarity
        assert "local has used up its 10 failed runs at node0" in last
        assert len(bits) < 32
        assert len(texts) == 1
        assert list(bits.values()).count(polarity) == 10
        assert (used(cluster, 0), used(cluster, 1)) == (10, 0)
        assert [row["failures"] for row in cluster_status(cluster.spec)] == ["10 of 10", "0 of 10"]
        # neither another session nor another engine helps
        os.kill(engine_of(cluster.workers[0].pid), signal.SIGKILL)
        wait_until(lambda: cluster_status(cluster.spec)[0]["crashes"] == 1)
    with mp.connect("http", cluster.spec) as host, pytest.raises(PartyError, match="used up"):
        mp.evaluate(host, lambda: mp.put("P0", mp.constant(1)))


# -- one text


GONE = "party 0 has left the run"
OTHER_MODE = pytest.mark.long("nine operands each, in the other mode")


def failing(x):
    return mp.pshfl_s(mp.invoke(failing_ops.fail, x), [0, 1], [0, 0])


def failing_inside(x):
    def turn(i, y):
        return mp.invoke(dialect.add, i, mp.constant(np.int64(1))), mp.invoke(failing_ops.fail, y)

    def below(i, y):
        return mp.invoke(dialect.less, i, mp.constant(np.int64(2)))

    zero = mp.constant(np.int64(0))
    _, y = mp.while_loop(lambda s: below(*s), lambda s: turn(*s), (zero, x))
    return mp.pshfl_s(y, [0, 1], [0, 0])


def bounded(x):
    return mp.put("P1", mp.put("P0", x, range=(-1, -0.5)))


def sealed(x):
    return mp.seal(mp.device("P0")(lambda x: 10.0 ** (300 + x))(x))


@pytest.mark.filterwarnings("ignore::mplang_core.errors.PrecisionWarning")  # told to the analyst
@pytest.mark.parametrize(
    ("program", "mode"),
    [
        (failing, "standard"),
        (failing_inside, "launch"),
        (bounded, "launch"),
        (sealed, "standard"),
        pytest.param(failing, "launch", marks=OTHER_MODE),
        pytest.param(failing_inside, "standard", marks=OTHER_MODE),
        pytest.param(bounded, "standard", marks=OTHER_MODE),
        pytest.param(sealed, "launch", marks=OTHER_MODE),
    ],
)
def test_a_failure_has_one_text(two_workers, program, mode):
    """Whatever the operand and the way to fail; at the host, in both jobs, in recordings."""
    cluster = two_workers
    told, peers = set(), set()
    with mp.connect("http", cluster.spec) as host:
        for number in (*range(failing_ops.COUNT), 1.5, 17.25):
            with mp.with_ctx(host):
                x = mp.put("P0", np.float64(number))
            with pytest.raises(PartyError) as caught, mp.record(host) as recording:
                mp.evaluate(host, program, x, mode=mode)
            error = caught.value
            cause = error.__cause__
            spans = [s for s in recording.spans if s.party == 0]
            ops = [(s.name, "failed" in s.facts) for s in spans if s.kind == "op"]
            told.add((
                str(error), error.rank, error.op, error.location, type(cause), str(cause),
                str(ops), str(last_job(cluster, 0, host.session)),
            ))  # fmt: skip
            peers.add(last_job(cluster, 1, host.session)[2])
    assert len(told) == 1, "\n".join(map(str, told))
    ((text, rank, op, location, *_),) = told
    # what aborts a peer first is a matter of time, and so is where it is then
    assert peers - {None} <= {f"party 1 stopped: party 0 failed in {op} at {location}", GONE}
    assert rank == 0
    assert text == (
        f"party 0 failed in {op} at {location}: the reason is in that party's log, at log_level: "
        "debug"
    )
    assert location.startswith("test_private_failures.py:")


def last_job(cluster, rank, session):
    """Return state, results and the text of the error of the last job; without the run's name."""
    with client(cluster, rank) as made:
        job = made.request("GET", "v1", "sessions", session, "jobs")["jobs"][-1]
    text = job["error"] and job["error"]["text"].replace(job["run"], "run")
    return [job["state"], job["held"], text and text.replace(f"local:{session}:", "")]


def test_a_simulator_tells_all():
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        for number, kind in enumerate(["KernelError", "RunError"]):
            with pytest.raises(PartyError, match=f"the operand is {float(number)}, of 7") as caught:
                mp.evaluate(sim, lambda x: mp.invoke(failing_ops.fail, x), np.float64(number))
            assert caught.value.__cause__ is None or kind in type(caught.value.__cause__).__name__


# -- the log


@pytest.mark.parametrize(
    ("log_level", "log_format"),
    [
        ("debug", "json"),
        ("warning", "text"),
        pytest.param("debug", "text", marks=pytest.mark.long("each way to fail, of a cluster")),
        pytest.param("warning", "json", marks=pytest.mark.long("each way to fail, of a cluster")),
    ],
)
def test_the_reason_is_in_the_log_at_debug(workers, tmp_path, log_format, log_level):
    cluster = workers(log_format=log_format, log_level=log_level)

    def evil(x):
        return failing(x)

    evil.__name__ = evil.__qualname__ = f"evil{failing_ops.FORGED}"
    with mp.connect("http", cluster.spec) as host:
        for way in range(failing_ops.COUNT):
            with mp.with_ctx(host):
                x = mp.put("P0", np.float64(way + failing_ops.COUNT))
            with pytest.raises(PartyError):
                mp.evaluate(host, evil, x)
        last = f"{host.session}-{failing_ops.COUNT - 1}"
    log = tmp_path / "node0.log"
    wait_until(lambda: f"run {last} failed here" in log.read_text())
    text = log.read_text()
    marks = set("".join(text.split("\n")))
    assert all(mark.isprintable() for mark in marks)
    assert not any(line.startswith("2026-01-01") for line in text.split("\n"))
    detail = f"the operand is {float(failing_ops.COUNT)}, of 7 rows"
    for private in (detail, "PanicError", "Traceback", "RecursionError"):
        assert (private in text) == (log_level == "debug"), private
    assert (
        f"failed in failing.fail at test_private_failures.py:{failing.__code__.co_firstlineno + 1}"
        in text
    )
    assert host.session in text
    if log_format == "json":
        for line in text.splitlines():
            fields = json.loads(line)
            assert all(mark.isprintable() or mark == "\n" for mark in str(fields.get("error", "")))
            rest = {key: value for key, value in fields.items() if key != "error"}
            assert all(str(value).isprintable() for value in rest.values())


# -- the budget


def test_what_is_counted(workers):
    """Ops that fail here: not the failures of others, nor those of the transport."""
    cluster = workers(3)

    def at_1(x):
        return mp.pshfl_s(mp.invoke(dialect.fail_at, x, party=1), [0, 1, 2], [1, 1, 1])

    def waits_in_spu(x):
        y = mp.device("SP0")(lambda a: a * 2)(mp.seal(mp.put("P1", x)))
        z = mp.device("SP0")(lambda a: a * 3)(y)
        late = mp.device("P2")(lambda a: a)(mp.put("P2", x))
        failed = mp.simp.pcall_static((2,), dialect.fail_at, late, party=2)
        return mp.reveal(mp.device("SP0")(lambda a, b: a + b)(z, mp.seal(failed)), to="P0")

    def slow(x):
        return mp.pshfl_s(mp.invoke(dialect.late, x, party=1, seconds=3.0), [2], [1])

    def wait_counted(host, *expected):
        """Wait until the jobs have ended, and the failed runs are as expected."""
        for rank in range(3):
            wait_until(lambda rank=rank: last_job(cluster, rank, host.session)[0] in ENDED)
        wait_until(lambda: tuple(used(cluster, rank) for rank in range(3)) == expected)

    with mp.connect("http", cluster.spec) as host:
        with pytest.raises(PartyError):
            mp.evaluate(host, at_1, np.int64(1))
        wait_counted(host, 0, 1, 0)
        with pytest.raises(PartyError, match="party 2"):
            mp.evaluate(host, waits_in_spu, np.float32(1))
        wait_counted(host, 0, 1, 1)
    with mp.connect("http", cluster.spec, timeout=1.0) as hasty:
        mp.evaluate(hasty, slow, np.int64(1))  # who works is waited for
        wait_counted(hasty, 0, 1, 1)


def test_an_engine_that_ends_counts(workers):
    """Else whether it ends would tell as much as a failure."""
    cluster = workers(1, limits={"failures": 2})
    with mp.connect("http", cluster.spec) as host:
        for number in (1, 2):
            with pytest.raises(PartyError):
                mp.evaluate(host, lambda x: mp.invoke(failing_ops.crash, x), np.int64(1))
            wait_until(lambda number=number: used(cluster, 0) == number)
            wait_until(lambda: cluster_status(cluster.spec)[0]["state"] == "ready")
        with pytest.raises(PartyError, match="used up its 2 failed runs"):
            mp.evaluate(host, lambda x: mp.invoke(failing_ops.crash, x), np.int64(1))


def test_concurrent_runs_share_the_budget(workers):
    """A coordinator that begins many runs at once gets no more failures than one after another."""
    cluster = workers(1, limits={"failures": 3})
    outcomes = []

    def one():
        with mp.connect("http", cluster.spec) as host:
            try:
                mp.evaluate(host, lambda x: mp.invoke(failing_ops.late, x), np.float64(2))
            except PartyError as error:
                outcomes.append(str(error))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("failing.late" in text for text in outcomes) == 3
    assert sum("wait for one to end" in text or "used up" in text for text in outcomes) == 5
    assert used(cluster, 0) == 3


def test_a_run_that_was_cancelled_counts_if_it_fails(workers, tmp_path):
    cluster = workers(1, limits={"failures": 1}, timeouts={"cancel": NEVER})
    gate = tmp_path / "gate"

    def fails(x):
        return mp.invoke(gated_ops.fail, x, gate=str(gate))

    with mp.connect("http", cluster.spec) as host, client(cluster, 0) as made:

        def cancel():
            path = ("v1", "sessions", host.session, "jobs")
            wait_until(lambda: "gated.fail waits" in (tmp_path / "node0.log").read_text())
            made.request("DELETE", *path, f"{host.session}-0")

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(PartyError):
            mp.evaluate(host, fails, np.int64(1))
        thread.join()
        assert used(cluster, 0) == 0
        with pytest.raises(PartyError, match="1 active runs"):
            mp.evaluate(host, fails, np.int64(1))
        gate.touch()
        wait_until(lambda: used(cluster, 0) == 1)


def test_each_coordinator_has_a_budget_of_its_own():
    budget = FailureBudget("alice", 2)
    runs = [("host", "s", f"s-{i}") for i in range(4)]
    assert budget.begin(runs[0])
    assert not budget.begin(runs[0])
    assert budget.begin(runs[1])
    with pytest.raises(RequestError, match="2 active runs, which may fail"):
        budget.begin(runs[2])
    assert budget.begin(("other", "s", "s-0"))
    budget.end(runs[0], failed=False)
    assert budget.begin(runs[2])
    budget.session_ended("host", "s", failed=True)
    budget.session_ended("other", "t", failed=True)
    budget.session_ended("other", "s", failed=False)
    assert (budget.used("host"), budget.used("other")) == (2, 0)
    with pytest.raises(RequestError, match=r"used up its 2 .*limits\.failures"):
        budget.begin(runs[3])
    assert budget.begin(("other", "s", "s-1"))
