"""Large-value tests: one copy per process that holds the value, and progress bars."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_http.coordinator import progress_bars
from mplang_http.coordinator.progress_bars import ProgressBars
from mplang_testing.waiting import wait_until
from processes import engine_of
from rich.console import Console

import mplang_core as mp

MB = 1 << 20
GB = 1 << 30


def peak_memory(pid):
    """Return the peak resident memory of a process in bytes, including shared memory."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) << 10


@pytest.mark.slow("moves a gigabyte between five processes")
@pytest.mark.timeout(600)
def test_a_gigabyte_is_copied_once_at_each():
    """The host uploads it, a party sends it to another, the host fetches it from there."""
    with LocalCluster(2) as cluster, mp.connect("http", cluster.spec, timeout=300.0) as host:
        fronts = [worker.pid for worker in cluster.workers]
        engines = [engine_of(pid) for pid in fronts]
        everyone = [os.getpid(), *fronts, *engines]
        before = {pid: peak_memory(pid) for pid in everyone}
        x = np.arange(GB // 8, dtype=np.int64)
        x.flags.writeable = False
        put = mp.evaluate(host, lambda x: mp.put("P0", x), x)
        moved = mp.evaluate(host, lambda x: mp.put("P1", x), put)
        found = mp.fetch(host, moved)
        assert np.array_equal(found, x)
        grown = {pid: (peak_memory(pid) - before[pid]) / GB for pid in everyone}
    for pid in (*engines, *fronts):
        assert grown[pid] < 1.25, grown
    assert grown[os.getpid()] < 3.5, grown  # the array, what a program was given, what it gave


def test_a_value_goes_to_a_party_and_back(five_workers):
    cluster = mp.ClusterSpec(five_workers.spec.nodes[:2])
    x = np.random.default_rng(0).normal(size=(MB, 4))
    with mp.connect("http", cluster) as host:
        put = mp.evaluate(host, lambda x: mp.put("P0", x), x)
        moved = mp.evaluate(host, lambda x: mp.put("P1", x), put)
        assert np.array_equal(mp.fetch(host, moved), x)


def test_what_takes_long_shows_a_bar(five_workers, monkeypatch, capfd):
    monkeypatch.setattr(progress_bars, "SHOW_AFTER", 0.0)
    cluster = mp.ClusterSpec(five_workers.spec.nodes[:2])
    x = np.zeros(MB)
    for progress, shown in ((True, True), (False, False), (None, False)):  # this is not a terminal
        with mp.connect("http", cluster, progress=progress) as host:
            mp.fetch(host, mp.evaluate(host, lambda x: mp.put("P1", mp.put("P0", x)), x))
        told = capfd.readouterr().err
        assert ("put to node0" in told) == shown
        assert ("fetch from node1" in told) == shown


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def test_a_bar_tells_what_how_much_and_goes(monkeypatch):
    monkeypatch.setattr(progress_bars, "SHOW_AFTER", 0.0)
    console = terminal()
    bars = ProgressBars(console=console)
    with bars.track("put to alice", 8 * MB) as moved, bars.track("put to bob", None) as also:
        moved(2 * MB)
        also(MB)
        moved(2 * MB)
        wait_until(lambda: "4.2/8.4 MB" in console.file.getvalue())
        told = console.file.getvalue()
    assert "put to alice" in told
    assert "put to bob" in told
    assert "4.2/8.4 MB" in told
    assert "1.0/? MB" in told
    assert console.file.getvalue().endswith("\x1b[2K")  # the lines are wiped


def test_what_is_quick_shows_none():
    console = terminal()
    with ProgressBars(console=console).track("put to alice", MB) as moved:
        moved(MB)
    assert console.file.getvalue() == ""


def test_a_bar_goes_with_an_error(monkeypatch):
    monkeypatch.setattr(progress_bars, "SHOW_AFTER", 0.0)
    console = terminal()
    bars = ProgressBars(console=console)

    def lost():
        with bars.track("put to alice", MB) as moved:
            moved(1)
            raise ConnectionError

    with pytest.raises(ConnectionError):
        lost()
    assert "put to alice" in console.file.getvalue()
    assert console.file.getvalue().endswith("\x1b[2K")  # the line is wiped
