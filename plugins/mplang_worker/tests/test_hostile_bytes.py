"""Bytes that are not requests, or another one to another reader, are rejected and do no harm."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hostile_requests import job, refused, routes, value
from http_raw import DOUBLE, sha

pytestmark = pytest.mark.usefixtures("unharmed")


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
    assert worker.ask("GET", "/link").error == (426, "upgrade")


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


@pytest.mark.long("uploads 150 damaged programs")
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


# -- names


def test_a_page_of_the_web_that_leads_here(worker, session):
    """DNS rebinding: other host names than loopback are rejected."""
    for host in ("evil.example:80", "", "127.0.0.1.evil.example", "[", "10.0.0.1", "0.0.0.0"):
        assert worker.ask("GET", "/facts", host=host).error == (421, "host")
        found = worker.ask(
            "PUT", f"/v1/sessions/{session}/programs/{sha(DOUBLE)}", DOUBLE, host=host
        )
        assert found.error == (421, "host")
        assert worker.ask("GET", "/openapi.json", host=host).error == (421, "host")
    for header in ({"origin": "http://127.0.0.1"}, {"sec_fetch_site": "same-site"}):
        for method, path in (
            ("GET", "/health"),
            ("GET", "/openapi.json"),
            ("POST", f"/v1/sessions/{session}/release"),
        ):
            found = worker.ask(method, path, b"[]", **header)
            assert found.error == (403, "browser")
    for host in ("localhost:9", "127.0.0.1", "127.1.2.3:80", "[::1]:80"):
        assert worker.ask("GET", "/facts", host=host).status == 200
