"""Ends of links: a link comes at any moment, also while its process is told of its peers."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from mplang_testing.waiting import DEADLINE, wait_until
from mplang_worker.base.config import Timeouts
from mplang_worker.link.end_server import LinkEndServer
from mplang_worker.link.handshake import Handshake
from mplang_worker.link.links import Links
from mplang_worker.tls.credentials import LinkEnd
from msgspec import to_builtins

NAMES = ["alice", "bob"]
TIMEOUTS = Timeouts(connect=DEADLINE)


class Bob(Handshake):
    """Handshake of a party that gets a link as soon as it can accept it."""

    def __init__(self, links):
        super().__init__("bob", "b" * 32, TIMEOUTS, tls=False)
        self.connections = []  # of alice, which end with them
        self.links, self.server = links, LinkEndServer(self, links, NAMES, TIMEOUTS)

    def introduce(self, ends):
        found, before = super().introduce(ends), self.links.get("alice")
        alice = Handshake("alice", ends[0].link, TIMEOUTS, tls=False)
        alice.introduce(ends)
        near, far = socket.socketpair()
        with ThreadPoolExecutor(1) as pool:
            dialled = pool.submit(alice.dial, near, "bob")
            self.server.accept(far.detach())
            self.connections.append(dialled.result(DEADLINE))
        wait_until(lambda: self.links.get("alice") not in (None, before), "a link of alice")
        return found


@pytest.fixture
def links():
    """Return the links of bob, closed at the end."""
    made = Links("bob", max_message=1 << 20)
    yield made
    made.close()


@pytest.mark.parametrize("ends", [["a" * 32], ["0" * 32, "a" * 32]], ids=["first", "another"])
def test_a_link_that_comes_while_its_party_is_told_of_the_peers_stays(links, ends):
    bob = Bob(links)
    for end in ends:
        told = [LinkEnd("alice", end), LinkEnd("bob", "b" * 32)]
        bob.server.introduce(b"", ends=to_builtins(told))
        assert links.get("alice") is not None
