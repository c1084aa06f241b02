"""Responses as the client of a coordinator reads them, from a worker that may answer anything."""

import contextlib
import socket
import threading

import numpy as np
import pytest
from mplang_http.coordinator.exchange import (
    MAX_BODY,
    MAX_HEAD,
    NoResponseError,
    Response,
    send_request,
)
from mplang_testing.waiting import DEADLINE

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
BODY = b"0123456789"
SHORT = 0.05  # seconds after which a client asks whether to wait on


@pytest.fixture
def pair():
    mine, theirs = socket.socketpair()
    with mine, theirs:
        mine.settimeout(DEADLINE)
        yield mine, theirs


def answer(pair, *parts: bytes) -> socket.socket:
    """Have a worker send parts and close the connection; return the client's end."""
    mine, theirs = pair

    def send() -> None:
        with contextlib.suppress(OSError):  # the client has had enough
            for part in parts:
                theirs.sendall(part)
            theirs.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    return mine


@pytest.mark.parametrize("cut", [*range(1, len(HEAD + BODY), 7), len(HEAD)])
def test_a_response_in_two_pieces(pair, cut):
    mine, theirs = pair
    theirs.sendall((HEAD + BODY)[:cut])
    threading.Timer(0.02, theirs.sendall, [(HEAD + BODY)[cut:]]).start()
    response = Response(mine)
    assert (response.status, response.size, response.keeps) == (200, 10, True)
    assert response.read() == BODY


def test_a_large_body_is_read_into_place(pair):
    body = np.random.default_rng(0).bytes(5 << 20)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
    response = Response(answer(pair, head + body[:100_000], body[100_000:]))
    place = bytearray(response.size)
    assert sum(response.read_into(memoryview(place))) == len(body)
    assert place == body


def test_a_body_that_stops_coming_is_waited_for_or_not(pair):
    mine, theirs = pair
    mine.settimeout(SHORT)
    theirs.sendall(HEAD + BODY[:4])
    response, place, asked = Response(mine), bytearray(10), []

    def on_timeout():
        asked.append(len(asked))
        if len(asked) == 3:
            theirs.sendall(BODY[4:])

    assert sum(response.read_into(memoryview(place), on_timeout)) == 10
    assert (place, asked) == (BODY, [0, 1, 2])

    theirs.sendall(HEAD + BODY[:4])
    with pytest.raises(TimeoutError):
        Response(mine).read()


def test_the_worker_closes_the_connection_after_the_response(pair):
    head = HEAD.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")
    response = Response(answer(pair, head + BODY))
    assert not response.keeps
    assert response.read() == BODY


def test_no_response(pair):
    with pytest.raises(NoResponseError, match="without a response"):
        Response(answer(pair))


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "no HTTP"),
        (HEAD + BODY + HEAD + BODY, "no HTTP"),
        (HEAD.replace(b"10", b"-1") + BODY, "no HTTP"),
        (HEAD.replace(b"10", b"10\r\nContent-Length: 11") + BODY, "no HTTP"),
        (HEAD.replace(b"\r\n\r\n", b"\r\nX: " + b"x" * 4 * MAX_HEAD), "no end"),
        (HEAD.replace(b"Content-Length: 10", b"X: 1") + BODY, "without a Content-Length"),
        (HEAD.replace(b"10", b"%d" % (MAX_BODY + 1)) + BODY, "with 67108865 bytes"),
        (HEAD + BODY[:5], "ended early"),
    ],
)
def test_what_is_no_response(pair, sent, text):
    with pytest.raises(ConnectionError, match=text):
        Response(answer(pair, sent)).read()


def test_a_small_request_is_one_packet():
    """So that the worker wakes once for it."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with mine, theirs:
        send_request(mine, "PUT / HTTP/1.1\r\nContent-Length: 4", [b"ab", memoryview(b"cd")])
        assert theirs.recv(1000) == b"PUT / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd"
