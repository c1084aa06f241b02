"""Requests too large, too deep, too slow or too many are rejected and do no harm."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading

import msgspec
import numpy as np
import pytest
from hostile_requests import CONNECTIONS, DEEP, framed, jax_program, routes, value
from http_raw import DOUBLE, MB, changed, program, read_response, sha
from mplang_http.wire.values import Head
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, in_time, pause, wait_until

import mplang_core as mp
from mplang_core.ir.compressed_text import pack as pack_code

pytestmark = pytest.mark.usefixtures("unharmed")


def test_what_is_compressed_is_not_taken(worker, session):
    bomb = gzip.compress(bytes(64 * MB))
    for method, path in routes(session):
        found = worker.ask(method, path, bomb, content_encoding="gzip")
        assert found.error == (415, "encoding")


def test_a_body_without_length(worker, session):
    for method, path in routes(session):
        found = worker.ask(method, path, transfer_encoding="chunked")
        assert found.error == (411, "length")


@pytest.mark.parametrize("length", [str(1 << 40), str(10**19), "0" * 5000 + "1"])
def test_a_body_that_is_too_large_is_refused_before_it_comes(worker, session, length):
    for method, path in routes(session):
        with in_time():
            found = worker.ask(method, path, content_length=length)
        assert found.error == (413, "too-large")  # if it waited for the body, it would say "slow"


def test_a_body_that_does_not_come(worker, session):
    for method, path in routes(session)[::4]:
        found = worker.ask(method, path, content_length="100")
        assert found.error == (408, "slow")


def test_a_body_that_comes_by_drops(worker, session):
    with worker.connect() as sock:
        head = f"PUT /v1/sessions/{session}/values/x HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        sock.sendall(f"{head}Content-Length: 100\r\n\r\n".encode())
        stop = send_slowly(sock, b"x")
        found = read_response(sock)
        stop.set()
    assert found is not None
    assert found.error == (408, "slow")


@pytest.mark.parametrize("begin", [b"", b"GET /health HTTP/1.1\r\nX: ", b"GET /l"])
def test_a_head_that_comes_by_drops(worker, begin):
    with worker.connect() as sock:
        sock.sendall(begin)
        stop = send_slowly(sock, b"x" if begin else b"\r\n")
        assert read_response(sock) is None  # it is closed
        stop.set()


def test_a_body_that_nobody_wants_ends_the_connection(worker):
    with worker.connect() as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n")
        found = read_response(sock)
        assert found is not None
        assert found.status == 200
        stop = send_slowly(sock, b"x")
        with contextlib.suppress(ConnectionError):  # a piece may have come as it was closed
            assert sock.recv(1) == b""
        stop.set()


def send_slowly(sock: socket.socket, piece: bytes) -> threading.Event:
    """Send a piece of data periodically until the event is set."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            pause(0.2, "the next piece")
            try:
                sock.sendall(piece)
            except OSError:
                return

    threading.Thread(target=work, daemon=True).start()
    return stop


def test_a_head_that_is_too_large(worker):
    found = worker.ask("GET", "/health", x="y" * 70_000)
    assert found.error == (431, "head")
    found = worker.send(b"GET /health HTTP/1.1\r\nX: " + b"y" * 200_000)
    assert found is None or found.error == (431, "head")


def test_more_connections_than_are_allowed(worker):
    kept = [worker.connect() for _ in range(2 * CONNECTIONS)]
    try:
        ended = 0
        for sock in kept:
            sock.settimeout(DEADLINE)
            ended += sock.recv(1) == b""  # at once, or at the timeout for a head
        assert ended == len(kept)
    finally:
        for sock in kept:
            sock.close()


def test_a_response_that_is_not_read(worker, session):
    """The connection is closed, and the memory of the value is released."""
    path = f"/v1/sessions/{session}/values/x"
    assert worker.ask("PUT", path, value(np.zeros(30 * MB, np.uint8))).status == 200
    before = worker.settled_files()
    with worker.connect() as sock:
        wait_until(lambda: worker.files() > before)
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        wait_until(lambda: worker.files() == before)  # the worker closes it
        data = bytearray(MB)
        got = 0
        try:
            while count := sock.recv_into(data):
                got += count
        except ConnectionError:
            pass
        assert got < 30 * MB


def test_pipelined_requests_are_answered_in_order(worker):
    one = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    two = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    last = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with worker.connect() as sock:
        sock.sendall((one + two) * 200 + last)
        data = b""
        while piece := sock.recv(MB):
            data += piece
    assert [part[:3] for part in data.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404"] * 200 + [b"200"]


def test_all_bodies_together_have_a_limit(worker, session):
    """Two bodies of 30 MB exceed the limit of 48 MB."""
    head = f"PUT /v1/sessions/{session}/values/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += f"Expect: 100-continue\r\nContent-Length: {30 * MB}\r\n\r\n"
    with worker.connect() as one, worker.connect() as two:
        one.sendall((head % "a").encode())
        assert b" 100 " in one.recv(MB)
        two.sendall((head % "b").encode())
        found = read_response(two)
        assert found is not None
        assert found.error == (429, "busy")


def test_nesting_without_end(worker, session):
    deep = b"[" * DEEP + b"]" * DEEP
    packed = b"\x91" * DEEP + b"\xc0"
    for (method, path), body in zip(
        routes(session), (packed, deep, deep, packed, packed), strict=True
    ):
        found = worker.ask(method, path.replace(sha(b""), sha(body)), body)
        assert found.error[0] in (400, 422), found


def test_nesting_without_end_within(worker, session):
    nest: list = []
    for _ in range(300):
        nest = [nest]
    found = worker.put_program(changed(DOUBLE, lambda p: p[5][1][0][3].update(x=nest)))
    assert found.error == (422, "WireError")

    def types(envelope):
        envelope[4][0] = "table<" + "[" * DEEP

    assert worker.put_program(changed(DOUBLE, types)).error == (422, "WireError")
    deep = b"\x93\xa2f3\x81\xa1a" + b"\x91" * DEEP + b"\xc0\x90"
    found = worker.ask("PUT", f"/v1/sessions/{session}/values/x", framed(deep))
    assert found.error == (422, "WireError")


def test_a_program_of_millions_of_nothings(worker):
    """Each item has one byte in the program, and some sixty in memory."""
    for nothing in (b"\x90", b"\x80", b"\xc0", b"\xa0"):
        many = 7 * MB
        raw = msgspec.Raw(b"\xdd" + many.to_bytes(4, "big") + nothing * many)
        data = changed(DOUBLE, lambda p, raw=raw: p[5][1][0][3].update(x=raw))
        found = worker.put_program(data)
        assert found.error == (422, "WireError")
        assert "200000 items" in found.text


def test_a_type_of_millions_of_marks(worker, session):
    def types(envelope):
        envelope[4][0] = "table<" + "[" * (6 * MB)

    assert worker.put_program(changed(DOUBLE, types)).error == (422, "WireError")
    path = f"/v1/sessions/{session}/values/x"
    for i in range(20):  # rejected programs are not cached
        head = Head("table<" + ", ".join(f'["{i}.{j}", "f"]' for j in range(40_000)), {}, [])
        found = worker.ask("PUT", path, framed(msgspec.msgpack.encode(head)))
        assert found.error == (422, "WireError")


def test_programs_without_end(worker, session):
    """The cache keeps the most recent ones only."""
    first = None
    for i in range(50):
        data = program(lambda i=i: mp.constant(np.full(6 * MB, i, np.uint8)))
        first = first or data
        assert worker.put_program(data, session).status == 200
    assert worker.submit(session, data).json["state"] == "done"
    assert worker.submit(session, first).error == (404, "unknown-program")


def test_code_that_unpacks_to_much_more(worker):
    bomb = pack_code("\0" * (200 * MB))
    found = worker.put_program(jax_program(bomb))
    assert found.error == (422, "VerifyError")
    assert "larger than" in found.text


def test_names_without_end_to_release(worker, session):
    """The list exceeds a packet to the engine."""
    names = json.dumps(["x" * 100] * 9000).encode()
    found = worker.ask("POST", f"/v1/sessions/{session}/release", names)
    assert (found.status, found.json) == (200, {"released": 0, "linked": True})


def test_a_list_of_jobs_that_is_large(worker, session):
    """A hundred errors of 4,000 characters exceed a packet."""
    outs = program(lambda x: [mp.invoke(dialect.add, x, x) for _ in range(2000)], np.int64(0))
    worker.put_program(outs, session)
    for _ in range(3):
        found = worker.submit(session, outs, np.int64(1), wait=60)
        assert found.json["state"] == "failed"  # more values than a session holds
        assert "keeps 50 values" in found.json["error"]["text"]
    wide = program(lambda x: [x] * 20_000, np.int64(0))
    worker.put_program(wide, session)
    for _ in range(10):
        run = worker.submit(session, wide, None, wait=60).json
        assert run["state"] == "done"
        assert len(run["held"]) == 20_000
    found = worker.ask("GET", f"/v1/sessions/{session}/jobs")
    assert len(found.json["jobs"]) == 13
    assert len(found.data) > 1_000_000
