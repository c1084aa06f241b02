"""Frames are the same however the bytes of a link are cut."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest
from mplang_http.wire.values import Head, pack
from mplang_worker.link.connection import Connection
from mplang_worker.link.frames import CHUNK, Kind, frame
from mplang_worker.link.link import Link
from mplang_worker.wire.opening import Opening

VALUES = [
    np.arange(5),
    True,
    b"x" * 200,
    np.zeros((0, 3)),
    np.arange(20_000),  # in memory of its own
    np.arange(90_000),
    np.arange(300_000),  # in pieces
]


class Cut(Connection):
    """Connection that has received bytes, and gives some at a time."""

    certificate = ""

    def __init__(self, data: bytes, seed: int) -> None:
        self._left, self._dice = memoryview(data), random.Random(seed)

    def read_into(self, view, deadline=None):
        most = min(len(view), len(self._left))
        few = self._dice.choice([1, 2, 19, 100, 5000, most, most // 2])
        count = min(most, max(few, 1))
        view[:count], self._left = self._left[:count], self._left[count:]
        return count

    def close(self):
        pass


class Listener:
    agreed = True

    def __init__(self):
        self.got, self.reason = [], None

    def message(self, link, key, packed):
        self.got.append((key, packed.value()))

    def opened(self, link, run, opening):
        self.got.append(("opened", run))

    def headed(self, link, run, name, head):
        self.got.append((name, head))

    def closed(self, link, run):
        self.got.append(("closed", run))
        return True

    def aborted(self, link, run, reason):
        self.got.append((reason, run))

    def lost(self, link, reason):
        self.reason = reason


class Keeper(Listener):
    """Listener that keeps messages, as runs do that have not come to them, or drops them."""

    def __init__(self, keep):
        super().__init__()
        self._keep = keep

    def message(self, link, key, packed):
        if self._keep:
            self.got.append(packed)


def message(key: str, value: object, stream: int) -> bytes:
    head, buffers = pack(value)
    body = b"".join(buffers)
    if len(body) <= CHUNK:
        return frame(Kind.MESSAGE, key.encode(), head, len(body)) + body
    pieces = [body[i : i + CHUNK] for i in range(0, len(body), CHUNK)]
    return frame(Kind.MESSAGE, key.encode(), head, len(body), stream) + b"".join(
        frame(Kind.CHUNK, size=len(piece), stream=stream) + piece for piece in pieces
    )


def test_heads_of_messages_count_as_what_they_take():
    """A head is decoded, so each of its bytes may take many of memory."""
    head = msgspec.msgpack.encode(Head("!bytes", {}, [0] * 100_000))
    data = [frame(Kind.MESSAGE, f"run/{i}".encode(), head) for i in range(20)]

    def reason_of(count, keep):
        listener = Keeper(keep)
        cut = Cut(b"".join([frame(Kind.OPEN, b"run"), *data[:count]]), 0)
        link = Link(cut, "peer", listener, max_message=1, max_waiting=16 << 20)
        while listener.reason is None:
            link._read()
        return listener.reason

    assert reason_of(2, keep=True) == "the connection ended"
    assert reason_of(20, keep=True) == "it sent an unexpected message"
    assert (
        reason_of(20, keep=False) == "the connection ended"
    )  # what is dropped gives its room back


OPENED = Opening("ann:s:s-0", *["0" * 64] * 4)
OPENING = frame(Kind.OPEN, OPENED.key.encode(), OPENED.write())


def heads(*sizes: int) -> bytes:
    return b"".join(frame(Kind.HEAD, OPENED.key.encode(), b"h" * size) for size in sizes)


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (OPENING + heads(0, 5), False),
        (OPENING + heads(5), False),
        (OPENING + heads(0, 0), True),
        (OPENING + heads(5, 6), True),
        (OPENING + heads((64 << 10) + 1), True),
        (OPENING + frame(Kind.CLOSE, OPENED.key.encode()) + heads(5), True),
        (heads(5) + OPENING, True),
        (frame(Kind.OPEN, b"r") + frame(Kind.HEAD, b"r", b"h"), True),
    ],
)
def test_a_run_is_permitted_once_and_its_head_told_once_while_the_peer_is_in_it(data, ends):
    listener = Listener()
    link = Link(Cut(data, 0), "peer", listener, max_message=1 << 24, max_waiting=1 << 25)
    while listener.reason is None:
        link._read()
    assert (listener.reason == "it sent an unexpected message") is ends
    assert ends or (OPENED.run, b"h" * 5) in listener.got


@pytest.mark.parametrize("seed", range(20))
def test_however_the_bytes_are_cut(seed):
    reason = "long" * 500
    data = b"".join(
        [
            frame(Kind.OPEN, b"run"),
            *(message(f"run/{i}", value, i) for i, value in enumerate(VALUES)),
            frame(Kind.ABORT, b"run", reason.encode()),
            frame(Kind.CLOSE, b"run"),
        ]
    )
    listener = Listener()
    link = Link(Cut(data, seed), "peer", listener, max_message=1 << 24, max_waiting=1 << 25)
    while listener.reason is None:
        link._read()
    assert listener.reason == "the connection ended"
    (opened, *messages, aborted, closed) = listener.got
    assert (opened, aborted, closed) == (("opened", "run"), (reason, "run"), ("closed", "run"))
    for i, (value, (key, got)) in enumerate(zip(VALUES, messages, strict=True)):
        assert key == f"run/{i}"
        np.testing.assert_array_equal(got, value)
