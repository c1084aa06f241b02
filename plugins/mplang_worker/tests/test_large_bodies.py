"""Bodies that come into files past the parser: what precedes, follows and interrupts them."""

from __future__ import annotations

import numpy as np
import pytest
from hostile_requests import value
from http_raw import MB, RawWorker, read_response
from mplang_http import LocalCluster
from mplang_http.tls.contexts import client_context
from mplang_testing.waiting import pause, wait_until

import mplang_core as mp

DATA = np.random.default_rng(0).integers(0, 255, 3 * MB, np.uint8)
BODY = value(DATA)


@pytest.fixture(scope="module", params=["http", "https"])
def asked(request):
    """Return a worker that gives up on a body after 3 s without a byte."""
    is_secure = request.param == "https"
    with LocalCluster(1, tls=is_secure, timeouts={"body": 3.0}) as cluster:
        context = client_context(cluster.tls, "http/1.1") if cluster.tls is not None else None
        yield RawWorker(cluster, 0, context)


@pytest.fixture
def open_session(asked):
    name = asked.open()
    yield name
    asked.ask("DELETE", f"/v1/sessions/{name}")


def head(session: str, name: str, length: int = len(BODY)) -> bytes:
    line = f"PUT /v1/sessions/{session}/values/{name} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    return f"{line}Content-Length: {length}\r\n\r\n".encode()


def jobs(session: str) -> bytes:
    return f"GET /v1/sessions/{session}/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def is_stored(worker: RawWorker, session: str, name: str) -> bool:
    found = worker.ask("GET", f"/v1/sessions/{session}/values/{name}")
    return found.data.endswith(DATA.tobytes())


def test_requests_that_follow_on_the_same_connection(asked, open_session):
    """They are sent at once, so that the end of a body and a head come together."""
    sent = [head(open_session, "a") + BODY, jobs(open_session), head(open_session, "b") + BODY]
    with asked.connect() as sock:
        sock.sendall(b"".join([*sent, jobs(open_session)]))
        received = b""
        while received.count(b"HTTP/1.1 200 ") < 4:
            received += sock.recv(4096) or pytest.fail(f"the connection has ended: {received!r}")
    assert is_stored(asked, open_session, "a")
    assert is_stored(asked, open_session, "b")


def test_a_body_in_two_parts_after_its_head(asked, open_session):
    with asked.connect() as sock:
        for part in (head(open_session, "a"), BODY[:100_000], BODY[100_000:]):
            sock.sendall(part)
            pause(0.2, "the parts come apart")
        assert read_response(sock).status == 200
    assert is_stored(asked, open_session, "a")


def test_a_client_that_waits_to_be_told_to_continue(asked, open_session):
    with asked.connect() as sock:
        sock.sendall(
            head(open_session, "a").replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
        )
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(BODY)
        assert read_response(sock).status == 200


def test_a_body_that_stops_is_refused_and_its_rest_dropped(asked, open_session):
    with asked.connect() as sock:
        sock.sendall(head(open_session, "a") + BODY[: 2 * MB])
        assert read_response(sock).error == (408, "slow")
        sock.sendall(BODY[2 * MB :] + jobs(open_session))
        assert read_response(sock).status == 200
    assert asked.ask("GET", f"/v1/sessions/{open_session}/values/a").status == 404


def test_a_body_that_is_cut_off_leaves_nothing(asked, open_session):
    files = asked.settled_files()
    for _ in range(5):
        with asked.connect() as sock:
            sock.sendall(head(open_session, "a") + BODY[: 2 * MB])
    wait_until(lambda: asked.files() <= files)
    assert asked.ask("GET", f"/v1/sessions/{open_session}/values/a").status == 404


def test_an_array_that_changes_after_it_was_put(asked):
    with mp.connect("http", asked.cluster.spec, tls=asked.cluster.tls) as host, mp.with_ctx(host):
        array = DATA.copy()
        put, public = mp.put("P0", array), mp.constant(array)
        array[:] = 0
        for kept in (mp.fetch(host, put), mp.fetch(host, mp.put("P0", public))):
            np.testing.assert_array_equal(kept, DATA)
