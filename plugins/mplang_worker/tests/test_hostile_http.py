"""Forged requests: each is rejected with its status and code, and does no harm."""

from __future__ import annotations

import asyncio
import json
import select
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import uvloop
from hostile_requests import job
from http_raw import DOUBLE, RawWorker, sha
from mplang_http import LocalCluster
from mplang_http.wire.requests import Stored
from mplang_testing.waiting import DEADLINE, NEVER, wait_until_async
from mplang_worker.front.http_protocol import _OpenTransport

pytestmark = pytest.mark.usefixtures("unharmed")


# -- names


@pytest.mark.parametrize("count", [4, pytest.param(10, marks=pytest.mark.slow("ten sessions"))])
def test_sessions_with_workers_that_are_not_there(worker, count):
    """They fail in time, and leave nothing behind."""
    with ThreadPoolExecutor(count) as pool, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # it does not listen, and nobody else is given its port
        port = unused.getsockname()[1]
        for found in pool.map(lambda i: open_away(worker, i, port=port), range(count)):
            assert found.error == (503, "CommError")
    for i in range(count):
        assert worker.ask("GET", f"/v1/sessions/away{i}/jobs").error == (404, "unknown-session")


def test_sessions_with_workers_that_are_silent_delay_no_others():
    """A worker that waits for them without end serves another session meanwhile."""
    with (
        LocalCluster(1, imports=("mplang_testing.dialect",), timeouts={"connect": NEVER}) as made,
        socket.create_server(("127.0.0.1", 0)) as silent,
        ThreadPoolExecutor(4) as pool,
    ):
        worker, port = RawWorker(made), silent.getsockname()[1]
        silent.settimeout(DEADLINE)
        tries = [pool.submit(open_away, worker, i, port=port) for i in range(4)]
        peers = [silent.accept()[0] for _ in tries]
        worker.works()
        assert not any(one.done() for one in tries)
        for i in range(4):
            worker.ask("DELETE", f"/v1/sessions/away{i}")
        for one, peer in zip(tries, peers, strict=True):
            assert one.result(DEADLINE).status == 503
            peer.close()


def open_away(worker, i, *, port):
    """Open a session with a worker at a port where none is; return how it is linked to it."""
    away = {"name": "z-not-there", "address": f"http://127.0.0.1:{port}"}
    mine = worker.begin(f"away{i}", parties=[worker.party(), away])
    return worker.join(f"away{i}", [mine, {"link": "0" * 32}])


# -- forged requests


def test_a_digest_that_is_another(worker, session):
    path = f"/v1/sessions/{session}/programs"
    assert worker.ask("PUT", f"{path}/{sha(b'x')}", DOUBLE).error == (400, "forged")
    assert worker.ask("PUT", f"{path}/{sha(DOUBLE).upper()}", DOUBLE).error == (422, "invalid")


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


def test_runs_of_others(worker, session):
    """A run belongs to its session, and its name is used once."""
    worker.put_program(DOUBLE, session)
    other = worker.open()
    worker.put_program(DOUBLE, other)
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
        stolen = job(other, inputs=[Stored([f"{session}-1.0"])])
        found = worker.ask("POST", f"/v1/sessions/{other}/jobs?run={other}-1", stolen)
        assert found.error == (404, "unknown-value")
    finally:
        worker.ask("DELETE", f"/v1/sessions/{other}")


def test_a_run_that_is_cancelled_before_it_comes(worker, session):
    """Another party has failed first: the run is cancelled, not replayed."""
    worker.put_program(DOUBLE, session)
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
    worker.put_program(DOUBLE, session)
    for inputs in ([], [np.float32(1)], [np.zeros(3, np.int64)], [np.int64(1)] * 2):
        found = worker.submit(session, DOUBLE, *inputs)
        assert found.error == (422, "inputs")
    found = worker.submit(session, DOUBLE, None)  # no party holds the input, so the op fails
    assert found.json["state"] == "failed"


class Ending(asyncio.Protocol):
    """Protocol of a connection whose end can be waited for."""

    def __init__(self) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


def test_a_response_to_who_has_gone_is_dropped():
    """The transport of uvloop raises, which would be a traceback in the log for each one."""

    async def write_to_nobody() -> None:
        mine, theirs = socket.socketpair()
        with theirs:
            loop = asyncio.get_running_loop()
            raw, protocol = await loop.create_unix_connection(Ending, sock=mine)
            transport = _OpenTransport(raw, loop)
            transport.abort()
            await protocol.lost
            transport.write(b"HTTP/1.1 200 OK")
            transport.flush()
            with pytest.raises(RuntimeError, match="closed"):
                raw.write(b"HTTP/1.1 200 OK")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(write_to_nobody())


def test_a_head_is_sent_with_its_body_and_nothing_is_lost():
    """Small parts leave together, at the end of the turn, and before the connection is closed."""
    large = bytes(range(256)) * 100

    async def write() -> None:
        mine, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            loop = asyncio.get_running_loop()
            raw, protocol = await loop.create_unix_connection(Ending, sock=mine)
            transport = _OpenTransport(raw, loop)
            transport.write(b"head, ")
            transport.write(b"body")
            with pytest.raises(BlockingIOError):
                theirs.recv(100)
            await wait_until_async(lambda: select.select([theirs], [], [], 0)[0])
            assert theirs.recv(100) == b"head, body"
            for part in (b"head, ", large, b"end"):
                transport.write(part)
            transport.close()
            await protocol.lost
            assert theirs.recv(1 << 20) == b"head, " + large + b"end"
            assert theirs.recv(1) == b""

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(write())
