"""Addresses of workers that differ by who asks: NAT, a relay, split horizon."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
import yaml
from mplang_http import LocalCluster
from mplang_testing.waiting import in_time, wait_until
from mplang_worker.tls.keygen import make_certificates

import mplang_core as mp
from mplang_core.errors import RunError

NAMES = ["alice", "bob"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    files = make_certificates(tmp_path_factory.mktemp("certificates"), [*NAMES, "host"])
    imports = ("mplang_testing.dialect",)
    with LocalCluster(NAMES, tls=files, imports=imports, timeouts={"connect": 2.0}) as made:
        yield made


@contextlib.contextmanager
def relayed(address):
    """Yield another address of a worker, of a relay that passes bytes on."""
    host, _, port = address.removeprefix("https://").rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    near, _ = server.accept()
                    far = socket.create_connection((host, int(port)))
                    for source, sink in ((near, far), (far, near)):
                        threading.Thread(target=pass_on, args=(source, sink), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def pass_on(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def exchanged(host):
    """Have bob tell alice a number, over the link of their workers."""
    with mp.with_ctx(host):
        x = mp.put("P1", np.int64(41))
    return mp.fetch(host, mp.evaluate(host, lambda x: mp.put("P0", x + 1), x))


def test_a_coordinator_reaches_a_worker_by_another_address_than_its_peers(cluster):
    """A peer is who its certificate says; each worker connects to the address of its own file."""
    alice, bob = (node.address for node in cluster.spec.nodes)
    with relayed(bob) as at, in_time():
        addresses = [alice, at]
        with mp.connect("http", cluster.spec, tls=cluster.tls, addresses=addresses) as host:
            assert exchanged(host) == 42
    with relayed(alice) as at, in_time():
        addresses = [at, bob]
        with mp.connect("http", cluster.spec, tls=cluster.tls, addresses=addresses) as host:
            assert exchanged(host) == 42


def test_a_peer_is_taken_away_and_added_while_all_run(cluster):
    """A session that is open goes on once the peer is back; nobody is restarted."""
    file = Path(cluster._path("alice"))
    before = yaml.safe_load(file.read_text())

    def refused(host):
        try:
            exchanged(host)
        except RunError as error:
            return "bob is not a peer of alice" in str(error)
        return False

    with mp.connect("http", cluster.spec, tls=cluster.tls) as host:
        assert exchanged(host) == 42
        file.write_text(yaml.safe_dump({**before, "peers": {}}))
        wait_until(lambda: refused(host))
        file.write_text(yaml.safe_dump(before))
        wait_until(lambda: not refused(host))
    with mp.connect("http", cluster.spec, tls=cluster.tls) as host:
        assert exchanged(host) == 42


def test_an_address_of_another_worker_is_no_identity(cluster):
    """Who answers at bob's address with alice's certificate is not bob."""
    alice, _ = (node.address for node in cluster.spec.nodes)
    with relayed(alice) as at, pytest.raises(RunError, match="bob"):
        mp.connect("http", cluster.spec, tls=cluster.tls, addresses=[alice, at])
