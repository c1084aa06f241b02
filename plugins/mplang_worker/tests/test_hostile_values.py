"""Values and names that are none are rejected with their code, and do no harm."""

from __future__ import annotations

import json
import pickle

import msgspec
import numpy as np
import pytest
from hostile_requests import framed, job, refused, value
from http_raw import DOUBLE, MB
from mplang_http.wire.requests import Public, Stored
from mplang_http.wire.values import Head

pytestmark = pytest.mark.usefixtures("unharmed")


# -- values

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
    worker.put_program(DOUBLE, session)
    request = job(session, inputs=[Public(data)])
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
            if found.status == 200:
                names.append(name)
            elif found.error == (429, "busy"):
                break
            else:  # those that are not linked yet keep it waiting
                assert found.error == (503, "queued")
                break
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
        worker.ask("PUT", f"/v1/sessions/{session}/programs/{name}", DOUBLE),
        worker.ask("PUT", f"/v1/sessions/{session}/values/{name}", value(np.int64(1))),
        worker.ask("GET", f"/v1/sessions/{session}/values/{name}"),
        worker.ask("GET", f"/v1/sessions/{session}/jobs/{name}"),
        worker.ask("DELETE", f"/v1/sessions/{session}/jobs/{name}"),
        worker.ask("POST", f"/v1/sessions/{session}/jobs?run={name}", job(session)),
    ):
        assert answer.error in ((422, "invalid"), (404, "http"), (405, "http")), answer


def test_names_in_bodies(worker, session):
    worker.put_program(DOUBLE, session)
    for name in ("../../etc/passwd", "a\0", "a\n", "", "a" * 129):
        body = json.dumps({"rank": 0, "parties": [{"name": name, "address": "http://a:1"}]})
        assert worker.ask("PUT", "/v1/sessions/b", body.encode()).error == (400, "damaged")
        path = f"/v1/sessions/{session}/jobs?run={session}-1"
        assert worker.ask("POST", path, job(session, run=name)).error == (400, "damaged")
        given = [Stored([name])]
        assert worker.ask("POST", path, job(session, inputs=given)).error[0] in (400, 404)
        assert worker.ask("POST", path, job(session, program=name)).error == (400, "damaged")
