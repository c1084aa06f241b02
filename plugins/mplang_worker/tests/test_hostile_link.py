"""Hostile peers: their link is closed or their messages are dropped, and the worker still works."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest
from http_raw import MB, NUMBERS, RawWorker, opening_of, program, read_response
from log_reading import LogReader
from mplang_http import LocalCluster
from mplang_http.wire.requests import Stored
from mplang_http.wire.values import Head, pack
from mplang_testing.waiting import DEADLINE, NEVER, pause, wait_until
from mplang_worker.link.frames import CHUNK, PREFIX, Kind, frame
from mplang_worker.wire.opening import Opening

import mplang_core as mp

GROWTH = 192 * MB
PEER = "a-peer"  # sorts before node0, so it is the one that connects
HOME = {"name": PEER, "address": "http://127.0.0.1:1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("log")


@pytest.fixture
def log(worker, folder):
    """Return a reader of what the worker logs in a test."""
    return LogReader(folder / "node0.log")


@pytest.fixture(scope="module")
def worker(folder):
    """Return a worker that accepts links."""
    with LocalCluster(
        1,
        log=str(folder),
        imports=("mplang_testing.dialect",),
        limits={"value": 32 * MB, "waiting": 48 * MB},
        timeouts={"connect": NEVER, "head": 2.0, "message": NEVER, "lease": NEVER},
    ) as cluster:
        made = RawWorker(cluster)
        made.works()
        yield made


@pytest.fixture(autouse=True)
def unharmed(worker):
    """Check after each test that the worker runs a program, and its memory has not grown."""
    before = worker.memory()
    yield
    worker.works()
    assert worker.memory(peak=True) - before < GROWTH


def hello(link: str, **fields: str) -> bytes:
    fields = {
        "Host": "127.0.0.1",
        "Connection": "Upgrade",
        "Upgrade": "mplang-link/5",
        "X-Mplang-From": PEER,
        "X-Mplang-From-Link": "0" * 32,
        "X-Mplang-Link": link,
    } | {name.replace("_", "-"): text for name, text in fields.items()}
    lines = [f"{name}: {text}" for name, text in fields.items()]
    return "\r\n".join(["GET /link HTTP/1.1", *lines, "", ""]).encode("latin-1")


def upgraded(worker: RawWorker, link: str) -> socket.socket:
    """Return a connection to one end of the links of a session."""
    sock = worker.connect()
    sock.sendall(hello(link))
    found = b""
    while not found.endswith(b"\r\n\r\n"):
        found += sock.recv(1)
    assert b" 101 " in found
    return sock


class Peer:
    """Client side of the link of a session, in which it is party 0, and the worker is party 1."""

    def __init__(self, worker: RawWorker, data: bytes | None = None) -> None:
        name = f"linked{next(NUMBERS)}"
        mine = worker.begin(name, rank=1, parties=[HOME, worker.party()])
        self.link = mine["link"]
        with ThreadPoolExecutor(1) as pool:
            joining = pool.submit(worker.join, name, [{"link": "0" * 32}, mine])
            self.sock = self.connect(worker)
            assert joining.result().status == 200
        self.linked = LinkedSession(worker, name, MOVE if data is None else data)

    def connect(self, worker: RawWorker) -> socket.socket:
        return upgraded(worker, self.link)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.sock.close()
        self.linked.close()

    def send(self, *parts: bytes) -> None:
        self.sock.sendall(b"".join(parts))

    def message(self, key: str, x, *, head: bytes | None = None) -> None:
        mine, buffers = pack(x)
        body = b"".join(buffers)
        self.send(frame(Kind.MESSAGE, key.encode(), head or mine, len(body)), body)

    def read(self) -> tuple[Kind, str]:
        """Read a frame without a body."""
        data = b""
        while len(data) < PREFIX.size:
            data += self.sock.recv(PREFIX.size - len(data))
        code, _, key, head, _ = PREFIX.unpack(data)
        rest = b""
        while len(rest) < key + head:
            rest += self.sock.recv(key + head - len(rest))
        return Kind(code), rest[:key].decode()

    def ended(self) -> bool:
        """Wait until the worker closes the link."""
        self.sock.settimeout(DEADLINE)
        try:
            while self.sock.recv(MB):
                pass
        except ConnectionError:
            pass
        return True


MOVE = program(lambda x: mp.pshfl_s(x, mp.Mask.of(1), [0]), np.int64(0), parties=2)


class LinkedSession:
    """Session of the peer, which is party 0, and the worker, which is party 1."""

    def __init__(self, worker: RawWorker, name: str, data: bytes) -> None:
        self.worker, self.name, self.data = worker, name, data
        assert worker.put_program(data, name).status == 200

    def start(self, number: int = 1) -> str:
        """Start a run, and return its name on the link."""
        run = f"{self.name}-{number}"
        parties = [0, 1]
        found = self.worker.submit(self.name, self.data, None, run=run, wait=0, parties=parties)
        assert found.status == 202, found
        return self.opening(run).key

    def opening(self, run: str, **fields: object) -> Opening:
        """Return what both parties are shown of a run, or something else by fields."""
        names = [HOME["name"], self.worker.party()["name"]]
        return opening_of(f"local:{self.name}:{run}", self.data, [Stored([])], names, **fields)

    def end(self, number: int = 1):
        path = f"/v1/sessions/{self.name}/jobs/{self.name}-{number}?wait=60"
        return self.worker.ask("GET", path).json

    def moved(self, number: int = 1) -> bytes:
        """Return the value that the worker has got, as bytes."""
        path = f"/v1/sessions/{self.name}/values/{self.name}-{number}.0"
        return self.worker.ask("GET", path).data[-8:]

    def close(self) -> None:
        self.worker.ask("DELETE", f"/v1/sessions/{self.name}")


# -- before the upgrade


@pytest.fixture
def link(worker):
    """Return the name of the end of a session's links."""
    name = f"waiting{next(NUMBERS)}"
    mine = worker.begin(name, rank=1, parties=[HOME, worker.party()])
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(worker.join, name, [{"link": "0" * 32}, mine])
        yield mine["link"]
        # what comes after the upgrade is answered once the request to join is there
        assert worker.send(hello(mine["link"], X_Mplang_From="z")).error == (403, "link")
        assert worker.ask("DELETE", f"/v1/sessions/{name}").status == 200
        assert joining.result(DEADLINE).status == 503  # no peer has come


def test_a_peer_that_does_not_come():
    with LocalCluster(1, timeouts={"connect": 0.5}) as cluster:
        worker = RawWorker(cluster)
        mine = worker.begin("alone", rank=1, parties=[HOME, worker.party()])
        found = worker.join("alone", [{"link": "0" * 32}, mine])
        assert found.error == (503, "CommError")
        assert found.json["error"]["explain"] == "L004"
        assert "waited 0.5 s for a-peer to connect" in found.text
        wait_until(lambda: worker.ask("GET", "/v1/sessions/alone").status == 404)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"Upgrade": "websocket"}, (426, "link")),
        ({"Upgrade": ""}, (426, "link")),
        ({"X-Mplang-Link": "1" * 32}, (426, "upgrade")),
        ({"X-Mplang-From-Link": "1" * 32}, (403, "link")),
        ({"X-Mplang-From": ""}, (403, "link")),
        ({"X-Mplang-From": "../../etc"}, (403, "link")),
        ({"X-Mplang-From": "a" * 200}, (403, "link")),
        ({"X-Mplang-From": "z"}, (403, "link")),
        ({"X-Mplang-From": "node0"}, (403, "link")),
    ],
)
def test_links_that_are_refused(worker, link, fields, error):
    found = worker.send(hello(link, **fields))
    assert found.error == error


@pytest.mark.parametrize("version", ["mplang-link/4", "mplang-link/6"])
def test_a_peer_of_another_version_is_told_both(worker, link, log, version):
    """Before version 4, libspu's messages went between engines; nothing of them is read."""
    found = worker.send(hello(link, Upgrade=version))
    assert found.error == (426, "link")
    told = f"Upgrade to mplang-link/5, not {version}"
    assert told in found.text
    log.wait_for(f"a connection did not become a link: a link was refused: 426 {told}")


def test_what_is_no_version_is_not_repeated(worker, link):
    for upgrade in ("mplang-link/x", "mplang-link/" + "9" * 50, "mplang-link/\xb2"):
        found = worker.send(hello(link, Upgrade=upgrade))
        assert found.error == (426, "link")
        assert "Upgrade to mplang-link/5, not another protocol" in found.text


def test_links_of_a_session_that_is_not_there(worker):
    for link in ("", "0" * 32, "x" * 3000):
        assert worker.send(hello(link)).error == (426, "upgrade")


def test_rubbish_in_place_of_an_upgrade(worker):
    generator = random.Random(5)
    whole = hello("0" * 32)
    for _ in range(40):
        rubbish = generator.choice(
            [
                b"GET /link " + generator.randbytes(100) + b"\r\n\r\n",
                whole[: generator.randrange(10, len(whole))],
                b"GET /link HTTP/1.1\r\n" + b"\xff: \xfe\r\n" * 20 + b"\r\n",
                b"GET /link " + b"x" * 10_000,
            ]
        )
        found = worker.send(rubbish, end=True)
        assert found is None or found.error[0] in (400, 426)


def test_upgrades_that_come_by_drops(worker):
    """Slow handshakes do not keep others from linking for long."""
    slow = [worker.connect() for _ in range(20)]
    stop = threading.Event()

    def drip() -> None:
        for sock in slow:
            sock.sendall(b"GET /link ")
        while not stop.is_set():
            pause(0.3, "the next drop")
            for sock in slow:
                with contextlib.suppress(OSError):
                    sock.sendall(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        for sock in slow:
            sock.settimeout(DEADLINE)
            assert read_response(sock) is None  # it is closed
        with Peer(worker):
            pass
    finally:
        stop.set()
        dripping.join()
        for sock in slow:
            sock.close()


def test_a_second_link_takes_the_place_of_the_first(worker):
    with Peer(worker) as peer:
        before, peer.sock = peer.sock, peer.connect(worker)
        before.settimeout(DEADLINE)
        with contextlib.suppress(ConnectionError):
            assert before.recv(1) == b""
        before.close()
        run = peer.linked.start()
        peer.send(frame(Kind.OPEN, run.encode()))
        peer.message(f"{run}/0", np.int64(5))
        assert peer.linked.end()["state"] == "done"


# -- after the upgrade


def announced(size: int, stream: int = 0, key: bytes = b"r/x", chunks: bytes = b"") -> bytes:
    head = msgspec.msgpack.encode(Head("!bytes", {}, [size]))
    return frame(Kind.MESSAGE, key, head, size, stream) + chunks


OPEN = frame(Kind.OPEN, b"r")
HEAD = msgspec.msgpack.encode(Head("!bytes", {}, [4]))
RUBBISH = {
    "random": random.Random(6).randbytes(1000),
    "no kind": PREFIX.pack(77, 0, 0, 0, 0),
    "a long key": PREFIX.pack(1, 0, 5000, 0, 0),
    "a long head": PREFIX.pack(1, 0, 1, 1 << 31, 0),
    "a huge body": OPEN + announced(1 << 62),
    "more than is allowed": OPEN + announced(33 * MB),
    "a run that it is not in": frame(Kind.MESSAGE, b"s/x", HEAD, 4) + b"1234",
    "a key that is not text": frame(Kind.OPEN, b"\xff\xfe"),
    "a head of another size": OPEN + frame(Kind.MESSAGE, b"r/x", HEAD, 5) + b"12345",
    "a head nested deep": OPEN + frame(Kind.MESSAGE, b"r/x", b"\x91" * 10_000, 4) + b"1234",
    "a piece of nothing": frame(Kind.CHUNK, size=4, stream=9) + b"1234",
    "an empty piece": OPEN + announced(2 * MB, 1) + frame(Kind.CHUNK, size=0, stream=1),
    "a large piece": OPEN + announced(2 * MB, 1) + PREFIX.pack(2, 1, 0, 0, CHUNK + 1),
    "one stream twice": OPEN + announced(2 * MB, 1) * 2,
    "much in one go": OPEN + announced(30 * MB, 1) + announced(30 * MB, 2),
    "too many runs": b"".join(frame(Kind.OPEN, b"r%d" % i) for i in range(10_002)),
}


@pytest.mark.parametrize("data", RUBBISH.values(), ids=list(RUBBISH))
def test_frames_that_are_none(worker, data):
    with Peer(worker) as peer:
        peer.send(data)
        assert peer.ended()


@pytest.fixture
def mpc_link(worker):
    """Return a peer's link to the MPC process of a session, beside that of the engine."""
    name = f"linked{next(NUMBERS)}"
    parties = [HOME, worker.party()]
    made = worker.begin_with(name, rank=1, parties=parties, native=["spu"])
    own, ends = (made["credential"], made["native"]["spu"]), [{"link": "0" * 32}]
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(worker.join, name, [*ends, own[0]], native={"spu": [*ends, own[1]]})
        engine, mpc = (upgraded(worker, each["link"]) for each in own)
        assert joining.result().status == 200
    with engine, mpc:
        yield mpc
    worker.ask("DELETE", f"/v1/sessions/{name}")


@pytest.mark.parametrize("kind", [Kind.OPEN, Kind.ABORT])
def test_runs_are_not_opened_or_aborted_on_links_of_mpc_processes(mpc_link, log, kind):
    """Engines decide that; a peer who has taken over an MPC process has its links only."""
    mpc_link.sendall(frame(kind, b"r"))
    mpc_link.settimeout(DEADLINE)
    with contextlib.suppress(ConnectionError):
        assert mpc_link.recv(1) == b""
    log.wait_for(
        f"the link to {PEER} is ended: runs are opened and aborted on the links of engines"
    )


@pytest.mark.long("60 sessions, each with a link")
def test_frames_with_bits_flipped(worker):
    generator = random.Random(7)
    whole = OPEN + frame(Kind.MESSAGE, b"r/x", HEAD, 4) + b"1234" + frame(Kind.CLOSE, b"r")
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(generator.randrange(1, 4)):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        with Peer(worker) as peer:
            peer.send(data)
            peer.sock.shutdown(socket.SHUT_WR)
            assert peer.ended()


def test_messages_that_nobody_asked_for(worker):
    """They are buffered up to a limit, then the link is closed."""
    with Peer(worker) as peer:
        linked = peer.linked
        run = linked.start()
        peer.send(frame(Kind.OPEN, run.encode()))
        try:
            for i in range(200):
                peer.message(f"{run}/x{i}", np.zeros(MB // 8))
        except ConnectionError:
            pass
        assert peer.ended()
        found = linked.end()
        assert found["state"] == "failed"
        assert PEER in found["error"]["text"]


def test_small_messages_that_nobody_asked_for(worker):
    with Peer(worker) as peer:
        linked = peer.linked
        run = linked.start()
        head = msgspec.msgpack.encode(Head("!true", {}, []))
        try:
            peer.send(frame(Kind.OPEN, run.encode()))
            for turn in range(200):
                keys = (f"{run}/{turn}.{i}".encode() for i in range(1000))
                peer.send(*(frame(Kind.MESSAGE, key, head) for key in keys))
        except ConnectionError:
            pass
        assert peer.ended()


def test_questions_whose_answers_are_not_read(worker):
    with Peer(worker) as peer:
        asked = frame(Kind.CLOSE, b"r" * 4000) * 250
        try:
            for _ in range(400):
                peer.send(asked)
        except ConnectionError:
            pass
        assert peer.ended()


def test_what_was_taken_makes_room_again(worker):
    """Received values and ended runs do not count towards the limit."""
    large = program(lambda x: mp.pshfl_s(x, mp.Mask.of(1), [0]), np.zeros(2 * MB), parties=2)
    with Peer(worker, large) as peer:
        linked = peer.linked
        for number in range(1, 9):
            run = linked.start(number)
            peer.send(frame(Kind.OPEN, run.encode()))
            data = np.full(2 * MB, float(number))
            head, buffers = pack(data)
            peer.send(frame(Kind.MESSAGE, f"{run}/0".encode(), head, data.nbytes, number))
            body = memoryview(buffers[0])
            for begin in range(0, len(body), CHUNK):
                peer.send(frame(Kind.CHUNK, size=CHUNK, stream=number), body[begin : begin + CHUNK])
            found = linked.end(number)
            assert found["state"] == "done", found
            assert linked.moved(number) == struct.pack("d", number)
            peer.send(frame(Kind.CLOSE, run.encode()))
            released = json.dumps([f"{linked.name}-{number}.0"]).encode()
            worker.ask("POST", f"/v1/sessions/{linked.name}/release", released)


# -- in a run


def test_a_message_that_is_replayed(worker):
    """The first message counts, and not in another run."""
    with Peer(worker) as peer:
        linked = peer.linked
        one = linked.start(1)
        peer.send(frame(Kind.OPEN, one.encode()))
        peer.message(f"{one}/0", np.int64(5))
        peer.message(f"{one}/0", np.int64(6))
        assert linked.end(1)["state"] == "done"
        assert linked.moved(1) == struct.pack("q", 5)
        two = linked.start(2)
        peer.send(frame(Kind.OPEN, two.encode()))
        peer.message(f"{one}/0", np.int64(6))
        peer.message(f"{two}/0", np.int64(7))
        assert linked.end(2)["state"] == "done"
        assert linked.moved(2) == struct.pack("q", 7)


def test_a_message_of_one_who_is_no_party(worker):
    """It is dropped, and so is an abort."""
    with Peer(worker) as peer, Peer(worker) as other:
        linked = peer.linked
        run = linked.start()
        other.send(frame(Kind.OPEN, run.encode()))
        other.message(f"{run}/0", np.int64(6))
        other.send(frame(Kind.ABORT, run.encode(), b"just so"))
        other.send(frame(Kind.CLOSE, run.encode()))
        assert other.read() == (Kind.CLOSED, run)  # all of it was read
        peer.send(frame(Kind.OPEN, run.encode()))
        peer.message(f"{run}/0", np.int64(5))
        assert linked.end()["state"] == "done"
        assert linked.moved() == struct.pack("q", 5)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (Head("i64[2]", {}, [8]), bytes(8)),
        (Head("i64[-1]", {}, [8]), bytes(8)),
        (Head("bool[8]", {}, [8]), b"\2" * 8),
        (Head("object[1]", {}, [8]), bytes(8)),
        (Head("!pickle", {}, [8]), bytes(8)),
        (Head("!none", {}, [0]), b""),
        (Head('table<["a", "int64"]>', {"rows": -1}, [0, 8]), bytes(8)),
    ],
    ids=lambda x: getattr(x, "kind", ""),
)
def test_a_message_that_is_no_value(worker, head, body):
    """The run fails, with an error that names the sender of what cannot be read; the link stays."""
    with Peer(worker) as peer:
        linked = peer.linked
        run = linked.start()
        peer.send(frame(Kind.OPEN, run.encode()))
        packed = msgspec.msgpack.encode(head)
        peer.send(frame(Kind.MESSAGE, f"{run}/0".encode(), packed, len(body)), body)
        found = linked.end()
        assert found["state"] == "failed", found
        unread = "party 1 cannot read what party 0 sent; the reason is in the log of party 1"
        # that a party has no value for another may depend on its data
        expected = "the reason is in that party's log" if head.kind == "!none" else unread
        assert found["error"]["text"].startswith(expected)
        linked.start(2)


def test_a_value_of_another_type_than_the_program_says(worker):
    with Peer(worker) as peer:
        linked = peer.linked
        run = linked.start()
        peer.send(frame(Kind.OPEN, run.encode()))
        peer.message(f"{run}/0", np.zeros(1000))
        found = linked.end()
        assert found["state"] == "failed", found
        assert "party 0 sent something else" in found["error"]["text"]


def test_a_reason_without_end(worker):
    with Peer(worker) as peer:
        linked = peer.linked
        run = linked.start()
        peer.send(frame(Kind.OPEN, run.encode()))
        peer.send(frame(Kind.ABORT, run.encode(), b"\xff" * MB))
        found = linked.end()
        assert found["state"] == "failed"
        assert len(found["error"]["text"]) <= 4200


@pytest.mark.parametrize("certificates", [["ab" * 32, ""], ["", "ab" * 32]])
def test_a_peer_that_was_shown_another_certificate(worker, certificates):
    """Somebody is between the two, or one has been given the certificate of another."""
    with Peer(worker) as peer:
        linked = peer.linked
        linked.start()
        opening = linked.opening(f"{linked.name}-1", certificates=certificates)
        peer.send(frame(Kind.OPEN, opening.key.encode(), opening.write()))
        found = linked.end()
        assert (found["state"], found["error"]["kind"]) == ("failed", "AdmissionError")
        assert "was shown other parties or certificates" in found["error"]["text"]
