"""Programs of one op, of standard mode and of eager calls, run in development only."""

from __future__ import annotations

import pathlib
import signal
from dataclasses import replace

import numpy as np
import pytest
from http_raw import RawWorker
from mplang_http import LocalCluster, WorkerConfig

import mplang_core as mp
from mplang_core.errors import AdmissionError, MPLangError, PartyError, RunError

KIT = ("mplang_testing.dialect",)
HOW = r'inside of one function and evaluate that \(mode="launch"\), or .* mode: development'


@mp.function
def swap(x):
    return mp.pshfl_s(x, [0, 1], [1, 0])


def line_of(text):
    """Return the place of a line of this file, as errors name it."""
    lines = pathlib.Path(__file__).read_text(encoding="utf-8").split("\n")
    return f"test_development.py:{next(i for i, line in enumerate(lines, 1) if text in line)}: "


@pytest.fixture(scope="module")
def production():
    with LocalCluster(2, mode="production", imports=KIT) as cluster:
        yield cluster


@pytest.fixture
def host(production):
    with mp.connect("http", production.spec) as made:
        yield made


def jobs(host, cluster):
    """Return the jobs of a host's session at the first worker."""
    found = RawWorker(cluster).ask("GET", f"/v1/sessions/{host.session}/jobs").json
    return found["jobs"]


def test_a_worker_is_in_production_by_default_and_a_local_cluster_in_development():
    assert WorkerConfig(name="alice").mode == "production"
    with pytest.raises(MPLangError, match="mode"):
        WorkerConfig(name="alice", mode="debug")


def test_production_takes_whole_programs_and_data(host):
    """Launch mode, eager put and fetch: data is not a program. What was put is not a result."""
    with mp.with_ctx(host):
        small, large = mp.put("P0", np.int64([1, 2])), mp.put("P1", np.arange(10_000))
    with pytest.raises(RunError, match="it was put, or kept by mp.keep, and is not a result"):
        mp.fetch(host, large)
    moved, theirs = mp.evaluate(host, lambda x, y: (mp.put("P1", x), y), small, large)
    np.testing.assert_array_equal(mp.fetch(host, moved), [1, 2])
    np.testing.assert_array_equal(mp.fetch(host, theirs), np.arange(10_000))
    with mp.with_ctx(host):
        assert mp.fetch(host, swap(7)) == [7, 7]  # a function, and not an op


def test_a_launch_is_whole_in_standard_mode_too(host):
    with mp.with_ctx(host), host.options(mode="standard"):
        assert mp.fetch(host, mp.launch(lambda x: swap(swap(x)))(7)) == [7, 7]


def test_the_host_refuses_standard_mode_early(host, production):
    with pytest.raises(AdmissionError, match=HOW) as caught:
        mp.evaluate(host, lambda: mp.pshfl_s(mp.constant(1), [0], [1]), mode="standard")  # whole
    assert line_of("# whole") in str(caught.value)
    assert "in production are node0, node1." in str(caught.value)
    assert jobs(host, production) == []  # nothing was sent
    assert mp.fetch(host, mp.evaluate(host, swap, 7)) == [7, 7]  # the host stays usable


def test_the_host_refuses_eager_calls_in_launch_mode(host, production):
    with mp.with_ctx(host):
        x = mp.put("P0", np.int64(5))
        with pytest.raises(AdmissionError, match=HOW) as caught:
            mp.put("P1", x)  # eager
    assert line_of("# eager") in str(caught.value)
    assert "simp.shuffle_static" in str(caught.value)
    assert jobs(host, production) == []


def test_the_worker_itself_refuses(host, production):
    """A host that does not look is refused by the first worker that is in production."""
    host._facts = [replace(each, mode="development") for each in host._facts]
    with pytest.raises(PartyError, match=HOW) as caught:
        mp.evaluate(host, lambda: mp.pshfl_s(mp.constant(1), [0], [1]), mode="standard")  # lying
    assert line_of("# lying") in str(caught.value)
    assert "worker node" in str(caught.value)
    assert not any(job["program"] for job in jobs(host, production))  # at most what was cancelled


def test_the_parties_need_not_agree_on_it():
    """The stricter one refuses, by name; what both take runs."""
    with LocalCluster(["alice", "bob"], imports=KIT) as cluster:
        strict = cluster._configs["bob"].model_copy(update={"mode": "production"})
        cluster._write(strict)
        cluster.signal(1, signal.SIGTERM)
        cluster.restart(1)
        with mp.connect("http", cluster.spec) as host:
            assert mp.fetch(host, mp.evaluate(host, swap, 7)) == [7, 7]
            with pytest.raises(AdmissionError, match="in production are bob") as caught:
                mp.evaluate(host, swap, 7, mode="standard")
            assert "alice" not in str(caught.value)


def test_development_takes_both(three_workers):
    with mp.connect("http", three_workers.spec) as host:
        assert mp.fetch(host, mp.evaluate(host, swap, 7, mode="standard")) == [7, 7, None]
        with mp.with_ctx(host):
            assert mp.fetch(host, mp.put("P1", mp.put("P0", np.int64(5)))) == 5


def test_facts_health_and_status_tell_the_mode(production, three_workers):
    from mplang_http.cli.status import cluster_status

    for cluster, mode in ((production, "production"), (three_workers, "development")):
        worker = RawWorker(cluster)
        assert worker.ask("GET", "/facts").json["mode"] == mode
        assert worker.ask("GET", "/health").json["mode"] == mode
        assert {row["mode"] for row in cluster_status(cluster.spec)} == {mode}
