"""Compatibility checks of versions and settings before a program starts."""

from __future__ import annotations

import re
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from mplang_analysis import MAX_EFFORT
from mplang_http import LocalCluster
from mplang_worker.base.config import EngineConfig
from mplang_worker.wire.worker_info import worker_info

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError, PluginConflictError
from mplang_core.ext import plugin_manager

USE_CHANNELS = "MPLANG_SPU_USE_CHANNELS"


@contextmanager
def environment_of(cluster, rank, monkeypatch, **environment):
    """Restart one worker with other environment variables."""
    with monkeypatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        cluster.signal(rank, signal.SIGKILL)
        cluster.restart(rank)
    yield
    cluster.signal(rank, signal.SIGKILL)
    cluster.restart(rank)


@pytest.fixture(scope="module")
def workers():
    with LocalCluster(3) as cluster:
        yield cluster


def cell(text):
    return re.compile(r"\s+".join(map(re.escape, text.split())))


def works(host):
    assert mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7)))[0] == 7


def test_versions_that_differ(workers, monkeypatch, tmp_path):
    """The metadata of one worker has another version of JAX."""
    folder = tmp_path / "jax-0.1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.1.2\n")
    with environment_of(workers, 1, monkeypatch, PYTHONPATH=str(tmp_path)):
        with pytest.raises(ConfigError, match="the parties do not fit together") as error:
            mp.connect("http", workers.spec)
        assert error.value.code == "C009"
        head, *rows = str(error.value).splitlines()[1:]
        assert head.split() == ["(coordinator)", "node0", "node1", "node2"]
        row, _, command = rows  # rows of equal versions are left out
        name, mine, first, second, third = row.split()
        assert (name, second) == ("jax", "0.1.2")
        assert mine == first == third != second
        assert command == f"  at node1: pip install 'jax=={mine}'"
    with mp.connect("http", workers.spec) as host:
        works(host)


@pytest.mark.long("a worker starts again, twice a case")
@pytest.mark.parametrize(("since", "fits"), [("0.1.0", True), ("0.1.5", False)])
def test_a_core_that_is_upgraded_first(workers, monkeypatch, tmp_path, since, fits):
    """One worker has a later core, which says with which ones it works."""
    folder = tmp_path / "mplang_core-0.1.9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mplang-core\nVersion: 0.1.9\n")
    (folder / "entry_points.txt").write_text(f"[mplang.compatible]\n{since} = mplang_core\n")
    with environment_of(workers, 1, monkeypatch, PYTHONPATH=str(tmp_path)):
        if fits:
            with mp.connect("http", workers.spec) as host:
                works(host)
        else:
            with pytest.raises(ConfigError, match=r"mplang-core +0\.1\.0 +0\.1\.0 +0\.1\.9"):
                mp.connect("http", workers.spec)


def test_two_plugins_with_a_setting_of_one_name(monkeypatch):
    class Plugin:
        mplang_settings = staticmethod(lambda: {"TONE": "warm"})

    found = [("mplang-one", Plugin), ("mplang-two", Plugin)]
    monkeypatch.setattr(plugin_manager, "modules", lambda: found)
    with pytest.raises(PluginConflictError, match="mplang-one and mplang-two both have a setting"):
        worker_info(EngineConfig(name="alice"))


def test_the_limit_of_an_analysis_is_compared():
    alike = worker_info(EngineConfig(name="alice"))["alike"]
    assert alike["analysis effort"] == str(MAX_EFFORT)


def test_settings_that_differ(workers, monkeypatch):
    with environment_of(workers, 2, monkeypatch, **{USE_CHANNELS: "0"}):
        with pytest.raises(ConfigError) as error:
            mp.connect("http", workers.spec)
        assert cell("(coordinator) node0 node1 node2").search(str(error.value))
        assert cell(f"{USE_CHANNELS} - not set not set 0").search(str(error.value))
        command = f"at node2: unset {USE_CHANNELS}, and start the worker again"
        assert str(error.value).endswith(command)


def test_a_worker_that_comes_back_as_another(workers, monkeypatch):
    """Versions are compared again after each failure, before the next program starts."""
    with mp.connect("http", workers.spec) as host:
        works(host)
        with environment_of(workers, 0, monkeypatch, **{USE_CHANNELS: "0"}):
            with pytest.raises(PartyError, match="node0"):
                mp.evaluate(host, lambda: mp.put("P0", np.ones(3)))
            with pytest.raises(ConfigError, match=USE_CHANNELS):
                works(host)
        works(host)


def test_a_setting_that_is_none(workers, monkeypatch):
    """The worker does not start, and tells why."""
    with pytest.raises(ConfigError, match=f"{USE_CHANNELS} is 1 or 0, got 'maybe'"):  # noqa: SIM117
        with environment_of(workers, 1, monkeypatch, **{USE_CHANNELS: "maybe"}):
            pass
    workers.restart(1)


def with_spu(workers, members, **config):
    nodes = [{"name": node.name, "address": node.address} for node in workers.spec.nodes]
    plain = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(3)}
    spu = {"SP0": {"kind": "SPU", "members": members, "config": config}}
    return mp.ClusterSpec.from_dict({"nodes": nodes, "devices": plain | spu})


def precise(x):
    y = mp.device("SP0")(lambda x: x * 1)(mp.put("P0", x))
    return mp.reveal(y, to="P1")


def test_hosts_have_devices_of_their_own(workers):
    """Concurrent hosts on the same workers have other fields, precisions, protocols and members."""
    coarse = with_spu(workers, [0, 1, 2], field="FM64", fxp_fraction_bits=8)
    fine = with_spu(workers, [0, 1, 2], field="FM128", fxp_fraction_bits=40)
    two = with_spu(workers, [0, 1], protocol="CHEETAH", fxp_fraction_bits=18)
    x = np.float64([0.1234567890123])

    def errors(cluster):
        with mp.connect("http", cluster) as host:
            found = [mp.fetch(host, mp.evaluate(host, precise, x)) for _ in range(5)]
            return [abs(np.ravel(value)[0] - x[0]) for value in found]

    with ThreadPoolExecutor(3) as pool:
        off = list(pool.map(errors, (coarse, fine, two)))
    assert min(off[0]) > 1e-5
    assert max(off[0]) < 1e-2
    assert max(off[1]) < 1e-7
    assert max(off[2]) < 1e-4


def test_a_protocol_that_a_worker_does_not_allow(workers):
    cluster = with_spu(workers, [0, 1, 2], protocol="SEMI2K")
    with mp.connect("http", cluster) as host:
        with pytest.raises(PartyError, match=r"SEMI2K trusts its first party .* insecure: true"):
            mp.evaluate(host, precise, np.float32([1]))
        works(host)
