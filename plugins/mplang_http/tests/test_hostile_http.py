"""Hostile requests: each is rejected with its status and code, and does no harm."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest
from http_raw import (
    DOUBLE,
    MB,
    RawWorker,
    Response,
    changed,
    program,
    read_response,
    sha,
    wait_until,
)
from mplang_http import LocalCluster
from mplang_http.requests import Given
from mplang_http.values import Head, frame_head, join_frame, pack
from mplang_testing import dialect

import mplang_core as mp
from mplang_core.ir.compressed_text import pack as pack_code
from mplang_core.ir.wire import to_bytes

GROWTH = 192 * MB  # bytes; far less than the size of each attack
DEEP = 10_000
CONNECTIONS = 24
LIMITS = {
    "items": 200_000,
    "program": 8 * MB,
    "programs": 16 * MB,
    "value": 32 * MB,
    "bodies": 48 * MB,
    "values": 50,
    "held": 40 * MB,
    "sessions": 20,
    "jobs": 100,
    "connections": CONNECTIONS,
}


@pytest.fixture(scope="module")
def worker():
    """Return a worker with small limits, of a cluster of two."""
    with LocalCluster(
        2,
        imports=("mplang_testing.dialect", "mplang_jax", "mplang_spu"),
        dialects=("kit", "jax", "spu"),
        limits=LIMITS,
        timeouts={"head": 1.5, "body": 1.5, "lease": 20.0, "connect": 2.0},
    ) as cluster:
        made = RawWorker(cluster)
        made.works()
        made.run(jax_program(stablehlo("return %arg0 : tensor<f32>")), np.float32(1))
        yield made


@pytest.fixture
def session(worker):
    """Return the name of an open session."""
    name = worker.open()
    yield name
    worker.ask("DELETE", f"/v1/sessions/{name}")


@pytest.fixture(autouse=True)
def unharmed(worker):
    """Check after each test that the worker runs a program, and its memory has not grown."""
    before = worker.memory()
    yield
    worker.works()
    assert worker.memory(peak=True) - before < GROWTH


def routes(session: str) -> list[tuple[str, str]]:
    """Return all routes whose requests have a body."""
    return [
        ("PUT", f"/v1/programs/{sha(b'')}"),
        ("PUT", "/v1/sessions/another"),
        ("POST", f"/v1/sessions/{session}/release"),
        ("POST", f"/v1/sessions/{session}/jobs?run={session}-1"),
        ("PUT", f"/v1/sessions/{session}/values/x"),
    ]


def refused(answer: Response) -> bool:
    return 400 <= answer.status < 500 and set(answer.json["error"]) == {"code", "text"}


# -- bytes


def test_random_bytes_are_no_request(worker):
    generator = random.Random(1)
    for _ in range(100):
        found = worker.send(generator.randbytes(generator.randrange(1, 400)), end=True)
        assert found is None or refused(found)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/sessions/a/release HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/sessions/a/release HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n"
        b"Content-Length: 6\r\n\r\n[]    ",
        b"POST /v1/sessions/a/release HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n Folded: x\r\n\r\n",
    ],
)
def test_requests_that_two_readers_would_read_differently(worker, data):
    found = worker.send(data, end=True)
    assert found is None or refused(found)


def test_an_upgrade_to_something_else_is_answered_as_a_request(worker):
    found = worker.ask("GET", "/facts", connection="Upgrade, HTTP2-Settings", upgrade="h2c")
    assert found.status == 200
    assert worker.ask("GET", "/link").error == (426, "link")


def test_random_and_truncated_bodies(worker, session):
    generator = random.Random(2)
    whole = [DOUBLE, json.dumps({"rank": 0, "parties": [worker.party()]}).encode(), b'["a"]']
    whole += [job(session), value(np.arange(9))]
    for (method, path), good in zip(routes(session), whole, strict=True):
        for _ in range(12):
            cut = good[: generator.randrange(len(good))]
            for body in (cut, generator.randbytes(generator.randrange(200))):
                name = path.replace(sha(b""), sha(body))
                found = worker.ask(method, name, body)
                assert refused(found), (path, body, found)


def test_programs_with_bits_flipped(worker):
    generator = random.Random(3)
    for _ in range(150):
        data = bytearray(DOUBLE)
        for _ in range(generator.randrange(1, 4)):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        found = worker.put_program(bytes(data))
        assert found.status == 200 or refused(found), found


def test_values_with_bits_flipped(worker, session):
    generator = random.Random(4)
    for i in range(150):
        data = bytearray(value(np.arange(5.0)))
        data[generator.randrange(60)] ^= 1 << generator.randrange(8)
        found = worker.ask("PUT", f"/v1/sessions/{session}/values/v{i % 40}", bytes(data))
        assert found.status == 200 or refused(found), found


def test_an_early_end(worker, session):
    for method, path in routes(session):
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"
        found = worker.send(head.encode() + b"x", end=True)
        assert found is None or refused(found)


# -- sizes, depths, times


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
        begin = time.monotonic()
        found = worker.ask(method, path, content_length=length)
        assert found.error == (413, "too-large")
        assert time.monotonic() - begin < 1  # without waiting for the body


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
        assert sock.recv(1) == b""
        stop.set()


def send_slowly(sock: socket.socket, piece: bytes) -> threading.Event:
    """Send a piece of data periodically until the event is set."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.2):
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
            sock.settimeout(20)
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
        assert worker.put_program(data).status == 200
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
    assert (found.status, found.json) == (200, {"released": 0})


def test_a_list_of_jobs_that_is_large(worker, session):
    """A hundred errors of 4,000 characters exceed a packet."""
    outs = program(lambda x: [mp.invoke(dialect.add, x, x) for _ in range(2000)], np.int64(0))
    worker.put_program(outs)
    for _ in range(3):
        found = worker.submit(session, outs, np.int64(1), wait=30)
        assert found.json["state"] == "failed"  # more values than a session holds
        assert "keeps 50 values" in found.json["error"]["text"]
    wide = program(lambda x: [x] * 20_000, np.int64(0))
    worker.put_program(wide)
    for _ in range(10):
        run = worker.submit(session, wide, None, wait=30).json
        assert run["state"] == "done"
        assert len(run["held"]) == 20_000
    found = worker.ask("GET", f"/v1/sessions/{session}/jobs")
    assert len(found.json["jobs"]) == 13
    assert len(found.data) > 1_000_000


# -- values


def framed(head: bytes, body: bytes = b"") -> bytes:
    return frame_head(head) + body


def value(x) -> bytes:
    return join_frame(*pack(x))


HEADS = [
    ("f32[-1]", b""),
    ("f32[4]", bytes(15)),
    ("f32[9223372036854775807]", bytes(16)),
    ("f32[9223372036854775807, 0]", b""),
    ("f32[99999999999999999999999, 0]", b""),
    ("f32[4294967296, 4294967296]", b""),
    (f"f32[{', '.join('0' * 65)}]", b""),
    ("f32[nan]", bytes(4)),
    ("f32[1.0]", bytes(4)),
    ("f32[inf]", bytes(4)),
    ("object[1]", bytes(8)),
    ("O[1]", bytes(8)),
    ("M8[1]", bytes(8)),
    ("bool[4]", b"\0\1\2\1"),
    ("bool[1]", b"\xff"),
    ('table<["a", "object"]>', b""),
    ('table<["a", "int64"], ["a", "int64"]>', b""),
    ("nothing<>", b""),
    ("", b""),
    ("!none", b""),
    ("!pickle", b""),
    ("é", b""),
    ("f32[" + "9" * 5000 + "]", b""),
]


@pytest.mark.parametrize(("kind", "body"), HEADS, ids=[kind[:24] for kind, _ in HEADS])
def test_values_of_no_type(worker, session, kind, body):
    data = framed(msgspec.msgpack.encode(Head(kind, {}, [len(body)])), body)
    found = worker.ask("PUT", f"/v1/sessions/{session}/values/x", data)
    assert found.error == (422, "WireError"), found
    worker.put_program(DOUBLE)
    request = job(session, inputs=[Given(value=data)])
    found = worker.ask("POST", f"/v1/sessions/{session}/jobs?run={session}-1&wait=30", request)
    assert refused(found) or found.json["state"] == "failed", found


@pytest.mark.parametrize(
    "head",
    [
        ["f32[1]", {}, [-4, 8]],
        ["f32[1]", {}, [2**64 - 1, 5]],
        ["f32[1]", {}, [float("nan")]],
        ["f32[1]", {"dtype": "object", "shape": [float("nan")]}, ["4"]],
        ["f32[1]", float("nan"), [4]],
        [1, {}, [4]],
        ["f32[1]", {}, [4], "more"],
        ["table<>", {"rows": float("nan")}, [4]],
        ['table<["a", "int64"]>', {"rows": -1}, [0, 4]],
        ['table<["a", "int64"]>', {"rows": float("nan")}, [0, 4]],
        ['table<["a", "int64"]>', {"rows": 2**60}, [0, 4]],
        ['spu.share<f32[1], {0, 1}, "SEMI2K", "FM64">', {"shape": [-1]}, [4]],
        ["spu.share<>", {}, [4]],
    ],
    ids=str,
)
def test_heads_with_numbers_that_are_none(worker, session, head):
    found = worker.ask(
        "PUT", f"/v1/sessions/{session}/values/x", framed(msgspec.msgpack.encode(head), bytes(4))
    )
    assert found.error == (422, "WireError"), found


def test_a_prefix_that_names_more_than_came(worker, session):
    for data in (b"", b"\0" * 7, b"\xff" * 8, b"\0\0\0\5\0\0\0\xff" + bytes(20)):
        found = worker.ask("PUT", f"/v1/sessions/{session}/values/x", data)
        assert found.error == (422, "WireError")


def test_pickles(worker, session):
    class Evil:
        def __reduce__(self):
            return (print, ("executed",))

    evil = pickle.dumps(Evil())
    found = worker.ask("PUT", f"/v1/sessions/{session}/values/x", evil)
    assert found.error == (422, "WireError")
    assert worker.put_program(evil).error == (422, "WireError")
    found = worker.ask("POST", f"/v1/sessions/{session}/jobs?run={session}-1", evil)
    assert found.error == (400, "damaged")


def test_a_session_holds_so_many_values_and_bytes(worker, session):
    path = f"/v1/sessions/{session}/values/"
    assert worker.ask("PUT", path + "big", value(np.zeros(25 * MB, np.uint8))).status == 200
    found = worker.ask("PUT", path + "more", value(np.zeros(25 * MB, np.uint8)))
    assert found.error == (429, "full")
    for i in range(49):
        assert worker.ask("PUT", f"{path}{i}", value(np.int64(i))).status == 200
    assert worker.ask("PUT", path + "one", value(np.int64(0))).error == (429, "full")
    worker.ask("POST", f"/v1/sessions/{session}/release", b'["big", "0"]')
    assert worker.ask("PUT", path + "one", value(np.zeros(25 * MB, np.uint8))).status == 200
    assert worker.ask("PUT", path + "one", value(np.int64(0))).error == (409, "taken")
    assert worker.ask("PUT", f"{path}{session}-1.0", value(np.int64(0))).error == (409, "taken")


def test_sessions_have_a_number(worker):
    names = []
    try:
        while len(names) < 30:
            name = f"many{len(names)}"
            body = json.dumps({"rank": 0, "parties": [worker.party()]}).encode()
            found = worker.ask("PUT", f"/v1/sessions/{name}", body)
            if found.status != 200:
                assert found.error == (429, "busy")
                break
            names.append(name)
        assert 0 < len(names) <= 20
    finally:
        for name in names:
            worker.ask("DELETE", f"/v1/sessions/{name}")


# -- names


NAMES = [
    "../../etc/passwd",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%5c..%5cwindows",
    "a%00b",
    "%00",
    "a%0ab",
    "abc%0a",
    "-a",
    "%F0%9F%98%80",
    "%ff",
    "a" * 129,
    "a" * 30_000,
    "a%20b",
    "~",
    "..",
    ".",
]


@pytest.mark.parametrize("name", NAMES, ids=[name[:30] for name in NAMES])
def test_paths_in_names(worker, session, name):
    body = json.dumps({"rank": 0, "parties": [worker.party()]}).encode()
    for answer in (
        worker.ask("PUT", f"/v1/sessions/{name}", body),
        worker.ask("DELETE", f"/v1/sessions/{name}"),
        worker.ask("PUT", f"/v1/programs/{name}", DOUBLE),
        worker.ask("PUT", f"/v1/sessions/{session}/values/{name}", value(np.int64(1))),
        worker.ask("GET", f"/v1/sessions/{session}/values/{name}"),
        worker.ask("GET", f"/v1/sessions/{session}/jobs/{name}"),
        worker.ask("DELETE", f"/v1/sessions/{session}/jobs/{name}"),
        worker.ask("POST", f"/v1/sessions/{session}/jobs?run={name}", job(session)),
    ):
        assert answer.error in ((422, "invalid"), (404, "http"), (405, "http")), answer


def test_names_in_bodies(worker, session):
    worker.put_program(DOUBLE)
    for name in ("../../etc/passwd", "a\0", "a\n", "", "a" * 129):
        body = json.dumps({"rank": 0, "parties": [{"name": name, "address": "http://a:1"}]})
        assert worker.ask("PUT", "/v1/sessions/b", body.encode()).error == (400, "damaged")
        path = f"/v1/sessions/{session}/jobs?run={session}-1"
        assert worker.ask("POST", path, job(session, run=name)).error == (400, "damaged")
        given = [Given(name=name)]
        assert worker.ask("POST", path, job(session, inputs=given)).error[0] in (400, 404)
        assert worker.ask("POST", path, job(session, program=name)).error == (400, "damaged")


def test_a_page_of_the_web_that_leads_here(worker, session):
    """DNS rebinding: other host names than loopback are rejected."""
    for host in ("evil.example:80", "", "127.0.0.1.evil.example", "[", "10.0.0.1", "0.0.0.0"):
        assert worker.ask("GET", "/facts", host=host).error == (421, "host")
        found = worker.ask("PUT", f"/v1/programs/{sha(DOUBLE)}", DOUBLE, host=host)
        assert found.error == (421, "host")
    for host in ("localhost:9", "127.0.0.1", "127.1.2.3:80", "[::1]:80"):
        assert worker.ask("GET", "/facts", host=host).status == 200


def test_sessions_with_workers_that_are_not_there(worker, session):
    """They fail in time, leave nothing behind, and do not delay other sessions."""
    away = {"name": "z-not-there", "address": "http://127.0.0.1:1"}
    body = json.dumps({"rank": 0, "parties": [worker.party(), away]}).encode()
    with ThreadPoolExecutor(10) as pool:
        path = "/v1/sessions/away{}"
        tries = [pool.submit(worker.ask, "PUT", path.format(i), body) for i in range(10)]
        assert worker.put_program(DOUBLE).status == 200
        assert worker.submit(session, DOUBLE, np.int64(4)).json["state"] == "done"
        assert not any(one.done() for one in tries)
        for found in tries:
            assert found.result().error == (503, "CommError")
    for i in range(10):
        assert worker.ask("GET", f"/v1/sessions/away{i}/jobs").error == (404, "unknown-session")


# -- forged requests


def job(session: str, **fields) -> bytes:
    request = {"run": f"{session}-1", "program": sha(DOUBLE), "generation": 0}
    request["inputs"] = [Given(value=value(np.int64(4)))]
    return msgspec.msgpack.encode(request | fields)


def test_a_digest_that_is_another(worker):
    assert worker.ask("PUT", f"/v1/programs/{sha(b'x')}", DOUBLE).error == (400, "forged")
    assert worker.ask("PUT", f"/v1/programs/{sha(DOUBLE).upper()}", DOUBLE).error == (
        422,
        "invalid",
    )


def test_a_rank_that_is_another(worker):
    parties = [worker.party(0), worker.party(1)]
    for rank, status in ((1, 421), (7, 421), (2**70, 421), (-1, 400)):
        body = json.dumps({"rank": rank, "parties": parties}).encode()
        assert worker.ask("PUT", "/v1/sessions/r", body).error[0] == status
    body = json.dumps({"rank": 0, "parties": [parties[0]] * 2}).encode()
    assert worker.ask("PUT", "/v1/sessions/r", body).error == (422, "parties")


def test_a_session_that_is_opened_again_as_another(worker, session):
    parties = [worker.party(0), worker.party(1)]
    body = json.dumps({"rank": 0, "parties": parties}).encode()
    assert worker.ask("PUT", f"/v1/sessions/{session}", body).error == (409, "taken")


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("http://10.1.2.3:80", (403, "no-peer")),
        ("http://metadata.example:80", (403, "no-peer")),
        ("file:///etc/passwd", (400, "ConfigError")),
        ("http://127.0.0.1:99999", (400, "ConfigError")),
        ("http://127.0.0.1", (400, "ConfigError")),
        ("http://a..b:80", (403, "no-peer")),
        ("", (400, "ConfigError")),
    ],
)
def test_addresses_that_lead_elsewhere(worker, address, error):
    """A worker without certificates connects to loopback only."""
    body = {"rank": 0, "parties": [worker.party(0), {"name": "peer", "address": address}]}
    found = worker.ask("PUT", "/v1/sessions/elsewhere", json.dumps(body).encode())
    assert found.error == error


def test_a_mask_that_is_another(worker, session):
    """A program for parties that are not in the session."""
    for mask in (b"\x02", b"\x03", b"\xff" * 100):
        data = changed(DOUBLE, lambda p, mask=mask: p.__setitem__(3, mask))
        found = worker.put_program(data)
        if found.status == 200:
            found = worker.submit(session, data, np.int64(4))
        assert found.error in ((422, "forged"), (422, "VerifyError")), found
    for mask in (b"", b"\x01\x00", b"\1" * 9000):
        data = changed(DOUBLE, lambda p, mask=mask: p.__setitem__(3, mask))
        assert worker.put_program(data).error[0] == 422


def test_types_that_the_ops_do_not_give(worker):
    def types(envelope):
        envelope[4][0] = "i64[2]@{0}"

    def masks(envelope):
        envelope[4][0] = "i64[]@{0, 1}"

    def before(envelope):
        envelope[5][1][0][1] = [1, 1]

    def place(envelope):
        envelope[5][1][0][1] = [-1, 0]

    for change in (types, masks, before, place):
        found = worker.put_program(changed(DOUBLE, change))
        assert found.error[0] == 422, found
        assert found.error[1] in ("VerifyError", "WireError")


def test_a_value_that_is_used_before_its_definition(worker):
    chain = program(lambda x: mp.invoke(dialect.add, mp.invoke(dialect.add, x, x), x), np.int64(0))

    def swapped(envelope):
        envelope[5][1].reverse()

    found = worker.put_program(changed(chain, swapped))
    assert found.error[0] == 422, found


def test_runs_of_others(worker, session):
    """A run belongs to its session, and its name is used once."""
    worker.put_program(DOUBLE)
    other = worker.open()
    try:
        path = f"/v1/sessions/{session}/jobs"
        theirs = job(session, run=f"{other}-1")
        assert worker.ask("POST", f"{path}?run={other}-1", theirs).error == (403, "forged")
        assert worker.ask("POST", f"{path}?run={session}-2", theirs).error == (400, "forged")
        found = worker.ask("POST", f"{path}?run={session}-1&wait=30", job(session))
        assert found.json["state"] == "done"
        again = worker.ask("POST", f"{path}?run={session}-1", job(session))
        assert again.error == (409, "replayed")
        never = job(session, run=f"{session}-3", generation=-1)
        assert worker.ask("POST", f"{path}?run={session}-3", never).error == (400, "damaged")
        late = job(session, run=f"{session}-3", generation=7)
        assert worker.ask("POST", f"{path}?run={session}-3", late).error == (409, "generation")
        for request in (
            ("GET", f"/v1/sessions/{other}/jobs/{session}-1"),
            ("GET", f"/v1/sessions/{other}/values/{session}-1.0"),
        ):
            assert worker.ask(*request).error[0] == 404
        stolen = job(other, inputs=[Given(name=f"{session}-1.0")])
        found = worker.ask("POST", f"/v1/sessions/{other}/jobs?run={other}-1", stolen)
        assert found.error == (404, "unknown-value")
    finally:
        worker.ask("DELETE", f"/v1/sessions/{other}")


def test_a_run_that_is_cancelled_before_it_comes(worker, session):
    """Another party has failed first: the run is cancelled, not replayed."""
    worker.put_program(DOUBLE)
    path = f"/v1/sessions/{session}/jobs"
    gone = worker.ask("DELETE", f"{path}/{session}-1?reason=another+party+failed")
    assert gone.json["state"] == "cancelled"
    for _ in range(2):
        found = worker.ask("POST", f"{path}?run={session}-1&wait=30", job(session))
        assert found.status == 200
        assert (found.json["state"], found.json["held"]) == ("cancelled", [])
        assert found.json["error"]["kind"] == "AbortedError"


def test_sessions_and_programs_that_are_not_there(worker, session):
    assert worker.ask("GET", "/v1/sessions/none/jobs").error == (404, "unknown-session")
    absent = job(session, program=sha(b"absent"))
    found = worker.ask("POST", f"/v1/sessions/{session}/jobs?run={session}-1", absent)
    assert found.error == (404, "unknown-program")


def test_inputs_that_do_not_fit(worker, session):
    worker.put_program(DOUBLE)
    for inputs in ([], [np.float32(1)], [np.zeros(3, np.int64)], [np.int64(1)] * 2):
        found = worker.submit(session, DOUBLE, *inputs)
        assert found.error == (422, "inputs")
    found = worker.submit(session, DOUBLE, None)  # no party holds the input, so the op fails
    assert found.json["state"] == "failed"


# -- programs


def test_an_op_that_nobody_knows(worker):
    def unknown(envelope):
        envelope[5][1][0][4][0][1][1][0][0] = "quantum.leap"

    found = worker.put_program(changed(DOUBLE, unknown))
    assert found.error == (403, "AdmissionError")  # quantum is not among the dialects here

    def unknown_here(envelope):
        envelope[5][1][0][4][0][1][1][0][0] = "kit.leap"

    found = worker.put_program(changed(DOUBLE, unknown_here))
    assert found.error == (422, "VerifyError")
    assert "unknown op 'kit.leap'" in found.text
    assert "install" in found.text


def test_an_op_that_is_not_allowed_here(worker):
    def forbidden(envelope):
        envelope[5][1][0][4][0][1][1][0][0] = "ibis.run"

    found = worker.put_program(changed(DOUBLE, forbidden))
    assert found.error == (403, "AdmissionError")
    assert "ibis.run" in found.text
    assert "runs ops of kit, jax, spu only" in found.text


def test_a_place_in_the_source_that_is_a_book(worker, session):
    book = "x" * (2 * MB)

    def place(envelope):
        envelope[5][1][0][4][0][1][1][0][5] = [book, 1]

    data = changed(DOUBLE, place)
    assert worker.put_program(data).status == 200
    found = worker.submit(session, data, np.int64(1))
    assert found.json["state"] == "done"
    assert len(found.data) < 10_000
    found = worker.submit(session, data, None)
    assert found.json["state"] == "failed"
    assert len(found.data) < 10_000


def test_a_tensor_that_no_machine_holds(worker):
    def huge(envelope):
        envelope[4][:] = [kind.replace("i64[]", "i64[1099511627776]") for kind in envelope[4]]

    found = worker.put_program(changed(DOUBLE, huge))
    assert found.error == (403, "AdmissionError")
    assert "8796093022208" in found.text


STABLEHLO = """module @main {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    BODY
  }
}
"""
CALLBACK = (
    "%0 = stablehlo.custom_call @xla_python_cpu_callback(%arg0) "
    ": (tensor<f32>) -> tensor<f32>\n    return %0 : tensor<f32>"
)


def stablehlo(body: str) -> bytes:
    return pack_code(STABLEHLO.replace("BODY", body))


def jax_program(code: bytes) -> bytes:
    """Return a program whose JAX code is replaced by other code."""
    harmless, kind = stablehlo("return %arg0 : tensor<f32>"), mp.TensorType("f32")
    attrs = {"code": harmless, "x64": False, "jax": "0.8.0", "stablehlo": "1.9.0"}
    pfunc = mp.PFunction("jax.run", (kind,), (kind,), attrs)
    data = program(lambda x: mp.peval(pfunc, [x])[0], np.float32(0))

    def change(envelope):
        envelope[6][envelope[6].index(harmless)] = code

    return changed(data, change)


def test_a_callback_to_python(worker):
    found = worker.run(jax_program(stablehlo(CALLBACK)), np.float32(1)).json
    assert found["state"] == "failed"
    assert found["error"]["kind"] == "AdmissionError"
    assert "XLA cannot run custom_call @xla_python_cpu_callback" in found["error"]["text"]


def test_code_that_is_none(worker):
    good = worker.run(jax_program(stablehlo("return %arg0 : tensor<f32>")), np.float32(1))
    assert good.json["state"] == "done"
    for text in ("", "module {", STABLEHLO.replace("BODY", "(" * DEEP), "\0" * 100):
        assert worker.put_program(jax_program(pack_code(text))).error == (422, "VerifyError")
    assert worker.put_program(jax_program(b"\x78\xdanothing")).error == (422, "VerifyError")


# -- SPU


def secure(protocol: str, code: bytes | None = None) -> bytes:
    """Return a program of two parties on SPU, perhaps with replaced code."""
    nodes = [{"name": "a"}, {"name": "b"}]
    devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in (0, 1)}
    spu = {"kind": "SPU", "members": [0, 1], "config": {"protocol": protocol}}
    cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": {**devices, "SP0": spu}})

    def fn():
        x = mp.put("P0", np.float32([1, 2, 3, 4]))
        return mp.reveal(mp.device("SP0")(lambda x: x)(x))

    data = to_bytes(mp.compile(fn, cluster_spec=cluster).trace(None).program)

    def change(envelope):
        codes = [i for i, found in enumerate(envelope[6]) if found[:1] == b"\x78"]
        assert len(codes) == 1
        envelope[6][codes[0]] = code

    return data if code is None else changed(data, change)


def together(worker, data: bytes) -> list[dict]:
    """Return the status of a run at both workers."""
    both = [RawWorker(worker.cluster, rank) for rank in (0, 1)]
    name = f"spu{sha(data)[:8]}"
    with ThreadPoolExecutor(2) as pool:
        opened = [
            pool.submit(w.open, name=name, rank=w.rank, parties=[x.party() for x in both])
            for w in both
        ]
        assert [future.result() for future in opened] == [name, name]
        assert [w.put_program(data).status for w in both] == [200, 200]
        ran = [pool.submit(w.submit, name, data, run=f"{name}-1", wait=60) for w in both]
        found = [future.result().json for future in ran]
    for w in both:
        w.ask("DELETE", f"/v1/sessions/{name}")
    return found


def test_a_protocol_that_is_for_debugging(worker):
    found = together(worker, secure("SEMI2K"))
    assert [status["state"] for status in found] == ["failed", "failed"]
    assert any("SEMI2K trusts its first party" in status["error"]["text"] for status in found)


SPU_CODE = """module @main {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    BODY
  }
}
"""
RNG = """%c = stablehlo.constant dense<0> : tensor<2xui64>
    %o, %r = stablehlo.rng_bit_generator %c, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    %0 = stablehlo.convert %r : (tensor<4xui32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>"""  # noqa: E501

PRINT = """%0 = stablehlo.custom_call @spu.dbg_print(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>"""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (RNG, "rng_bit_generator"),
        (CALLBACK.replace("tensor<f32>", "tensor<4xf32>"), "xla_python_cpu_callback"),
        (PRINT, "spu.dbg_print"),
        (PRINT.replace(" @", "  @"), "spu.dbg_print"),
    ],
)
def test_code_that_spu_does_not_run(worker, body, text):
    """Rejected before libspu parses it, with the reason."""
    found = together(worker, secure("CHEETAH", pack_code(SPU_CODE.replace("BODY", body))))
    assert [status["state"] for status in found] == ["failed", "failed"]
    assert any(text in status["error"]["text"] for status in found), found
