"""Insecure workers: their MPC processes make BRPC links, and their engines reach no network."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import numpy as np
import pytest
from fault_testbed import works
from intruder import run
from mplang_confinement import has_seccomp
from mplang_http import LocalCluster
from spu_links import addresses

import mplang_core as mp

REACHES = [
    "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "socket.create_connection(('127.0.0.1', 9))",
    "socket.create_server(('127.0.0.1', 0))",
    "socket.socketpair()[0].bind('')",
    "socket.socketpair()[0].listen()",
]
pytestmark = pytest.mark.skipif(not has_seccomp(), reason="no system calls can be given up here")


@pytest.fixture(scope="module")
def brpc():
    """Return the addresses of the members, for libspu's own links."""
    return addresses(3)


@pytest.fixture(scope="module")
def host(brpc):
    """Return a host of three insecure workers, whose SPU has BRPC links."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        imports = ("intruder", "mplang_testing.dialect")
        with LocalCluster(3, insecure=True, imports=imports, log_level="debug") as cluster:
            nodes = [{"name": node.name, "address": node.address} for node in cluster.spec.nodes]
            config = {"protocol": "ABY3", "use_mplang_channel": False, "brpc_addresses": brpc}
            devices = {
                **{f"P{i}": {"kind": "PPU", "members": [i]} for i in range(3)},
                "SP0": {"kind": "SPU", "members": [0, 1, 2], "config": config},
            }
            spec = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})
            with mp.connect("http", spec) as made:
                yield made


@pytest.mark.slow("libspu makes its links on ports that were free before")
def test_brpc_links_are_made_in_the_mpc_process(host, brpc):
    works(host)
    for address in brpc:
        name, port = address.split(":")
        socket.create_connection((name, int(port))).close()  # somebody listens


@pytest.mark.parametrize("code", REACHES)
def test_an_engine_reaches_no_network(host, code):
    """It has the plain data, and needs none: the links of BRPC are the MPC process's."""
    value = mp.evaluate(host, lambda x: mp.invoke(run, x, code=code), np.float32([1]))
    assert int(np.ravel(mp.fetch(host, value)[0])[0]) == errno.EPERM


def test_the_doctor_tells_of_an_insecure_worker(tmp_path):
    from mplang_cli.doctor import examine

    def told(fields):
        path = tmp_path / "alice.yaml"
        path.write_text(f"name: alice\n{fields}")
        return [row for row in examine(str(path)) if row["check"].startswith("alice runs")]

    (row,) = told("insecure: true\n")
    assert row["status"] == "failed"
    told_of_network = "MPC processes whose native services declare it use the network"
    assert told_of_network in row["detail"]
    assert told("") == []
