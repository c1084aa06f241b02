"""The thread that waits reads the link: what it owes to deadlines, aborts and other threads."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mplang_http.wire.values import ALIGN, pack
from mplang_testing.waiting import DEADLINE, NEVER, in_time, pause, wait_until
from mplang_worker.link.comm import HttpCommunicator
from mplang_worker.link.frames import CHUNK, Kind, frame
from mplang_worker.link.link import Link
from mplang_worker.link.links import Links
from mplang_worker.link.lost_link import LostLink

from mplang_core.errors import AbortedError, CommError, RecvTimeoutError

TIMEOUT = 0.5
RUN = "run"


@pytest.fixture
def party(joined):
    """Return a function that makes a party and its raw peers, which are all in the run."""
    with contextlib.ExitStack() as stack:

        def make(peers: int = 1, timeout: float = NEVER):
            names = [f"node{i}" for i in range(1 + peers)]
            links = Links(names[0], max_message=1 << 24)
            stack.callback(links.close)
            socks = []
            for name in names[1:]:
                connection, sock = joined()
                links.add(connection, name)
                socks.append(stack.enter_context(sock))
            comm = HttpCommunicator(0, names, links, NEVER)
            comm.open(RUN)
            for sock in socks:
                sock.sendall(frame(Kind.OPEN, RUN.encode()))
            comm.openings(RUN, range(1, 1 + peers))
            comm.timeout = timeout
            return comm, *socks

        yield make


def message(key: object, value: object) -> bytes:
    head, buffers = pack(value)
    return b"".join([frame(Kind.MESSAGE, f"{RUN}/{key}".encode(), head, len(buffers[0])), *buffers])


def all_of(sock: socket.socket) -> bytes:
    """Return what comes until the other end closes."""
    sock.settimeout(DEADLINE)
    return b"".join(iter(lambda: sock.recv(1000), b""))


def waits(comm: HttpCommunicator, pool: ThreadPoolExecutor, rank: int, key: object):
    """Begin to wait for a message, and return the future when the thread waits."""
    found = pool.submit(comm.recv, rank, f"{RUN}/{key}")
    reading = comm._links.get(comm.names[rank])._reading
    waiters = comm._runs[RUN].waiters
    message = rank, f"{RUN}/{key}"
    wait_until(
        lambda: any(
            waiter.interrupt is not None or waiter in reading._followers
            for waiter in waiters.get(message, ())
        ),
        "the thread leads or follows",
    )
    return found


def error_of(future, kind):
    """Wait for a future's error, and return its text."""
    with pytest.raises(kind) as caught:
        future.result(DEADLINE)
    return str(caught.value)


def warm(comm, sock):
    """Have the waiting thread lead: the standing reader gives way to the first that waits."""
    sock.sendall(message("warm", np.int64(0)))
    comm.recv(1, f"{RUN}/warm")


@pytest.fixture
def pool():
    with ThreadPoolExecutor(40) as found:
        yield found


def test_who_waits_reads_it_itself(party, pool):
    """And the standing reader does not, unless nobody waits."""
    comm, sock = party()
    reading = comm._links.get("node1")._reading
    led = reading._turns
    for i in range(200):
        waiting = pool.submit(comm.recv, 1, f"{RUN}/{i}")
        sock.sendall(message(i, np.int64(i)))
        assert waiting.result(DEADLINE) == i
    assert reading._turns > led
    sock.sendall(message("late", np.int64(1)))
    wait_until(lambda: comm.has_message(1, f"{RUN}/late"))


@pytest.mark.parametrize("leads", [True, False], ids=["leading", "following"])
def test_an_abort_from_another_thread_ends_the_wait(party, pool, leads):
    comm, _ = party()
    first = waits(comm, pool, 1, 0)
    waiting = first if leads else waits(comm, pool, 1, 1)
    comm.abort(RUN, "enough")
    assert "enough" in error_of(waiting, AbortedError)
    error_of(first, AbortedError)


def test_an_abort_that_comes_from_another_peer_ends_the_wait(party, pool):
    comm, _, other = party(2)
    waiting = waits(comm, pool, 1, 0)
    other.sendall(frame(Kind.ABORT, RUN.encode(), b"party 2 failed"))
    assert "party 2 failed" in error_of(waiting, AbortedError)


def test_an_abort_amid_half_a_frame_of_the_peer_ends_the_wait(party, pool):
    comm, slow, other = party(2)
    waiting = waits(comm, pool, 1, 0)
    slow.sendall(message(0, np.int64(1))[:-3])
    came = comm._links.get("node1")._input
    wait_until(lambda: came._begin < came._end, "half of the frame has come")
    other.sendall(frame(Kind.ABORT, RUN.encode(), b"party 2 failed"))
    assert "party 2 failed" in error_of(waiting, AbortedError)


@pytest.mark.parametrize(
    "size",
    [
        1,
        pytest.param(1000, marks=pytest.mark.long("three waits of 0.5 s more")),
        100_000,
        pytest.param(1 << 20, marks=pytest.mark.long("three waits of 0.5 s more")),
    ],
)
@pytest.mark.parametrize("cut", [3, 30, -1], ids=["prefix", "head", "body"])
def test_half_a_frame_waits_for_the_rest_and_its_reader_only_to_the_deadline(party, size, cut):
    comm, sock = party(timeout=TIMEOUT)
    value = np.arange(size, dtype=np.uint8)
    whole = message(0, value)
    sock.sendall(whole[:cut])
    begin = time.monotonic()
    with in_time(), pytest.raises(RecvTimeoutError):
        comm.recv(1, f"{RUN}/0")
    assert time.monotonic() - begin > TIMEOUT * 0.9
    comm.timeout = NEVER
    sock.sendall(whole[cut:] + message(1, value))
    np.testing.assert_array_equal(comm.recv(1, f"{RUN}/1"), value)
    np.testing.assert_array_equal(comm.recv(1, f"{RUN}/0"), value)


def test_a_peer_that_sends_a_byte_at_a_time_does_not_move_the_deadline(party):
    comm, sock = party(timeout=TIMEOUT)
    whole, done = message(0, np.zeros(10_000, np.uint8)), threading.Event()

    def drip() -> None:
        for i in range(len(whole)):
            sock.sendall(whole[i : i + 1])
            pause(0.02, "all of it would take longer than the test may")
            if done.is_set():
                return

    dripping = threading.Thread(target=drip)
    dripping.start()
    with in_time(), pytest.raises(RecvTimeoutError):
        comm.recv(1, f"{RUN}/0")
    done.set()
    dripping.join()


def test_a_peer_that_sends_without_end_does_not_move_the_deadline(party):
    comm, sock = party(timeout=TIMEOUT)
    stop = threading.Event()

    def flood() -> None:
        with contextlib.suppress(OSError):
            while not stop.is_set():
                sock.sendall(message("same", np.int64(1)) * 1000)

    flooding = threading.Thread(target=flood)
    flooding.start()
    with in_time(), pytest.raises(RecvTimeoutError):
        comm.recv(1, f"{RUN}/0")
    stop.set()
    flooding.join()


def test_a_large_message_goes_on_in_another_thread(party):
    comm, sock = party(timeout=TIMEOUT)
    value = np.arange(3 * CHUNK // 8)
    head, (body,) = pack(value)
    sock.sendall(frame(Kind.MESSAGE, f"{RUN}/0".encode(), head, len(body), 7))
    chunks = [
        frame(Kind.CHUNK, size=CHUNK, stream=7) + body[i : i + CHUNK]
        for i in range(0, len(body), CHUNK)
    ]
    sock.sendall(chunks[0] + chunks[1][: CHUNK // 2])
    with pytest.raises(RecvTimeoutError):
        comm.recv(1, f"{RUN}/0")
    comm.timeout = NEVER
    sock.sendall(chunks[1][CHUNK // 2 :] + chunks[2])
    found = comm.recv(1, f"{RUN}/0")
    np.testing.assert_array_equal(found, value)
    assert found.ctypes.data % ALIGN == 0  # so that XLA takes it without a copy


def test_the_leader_hands_over_when_it_has_its_own(party, pool):
    comm, sock = party()
    waiting = [waits(comm, pool, 1, i) for i in range(4)]
    for i in (0, 2, 1, 3):  # of the leader, of a follower, …
        sock.sendall(message(i, np.int64(i)))
        assert waiting[i].result(DEADLINE) == i


def test_the_leader_delivers_what_others_wait_for(party, pool):
    comm, sock = party()
    waiting = [waits(comm, pool, 1, i) for i in range(4)]
    for i in (3, 1, 2, 0):
        sock.sendall(message(i, np.int64(i)))
        assert waiting[i].result(DEADLINE) == i


def test_a_follower_leads_when_the_leader_gives_up(party, pool):
    comm, sock = party(timeout=TIMEOUT)
    first = waits(comm, pool, 1, 0)
    comm.timeout = NEVER
    second = waits(comm, pool, 1, 1)
    assert isinstance(first.exception(DEADLINE), RecvTimeoutError)
    sock.sendall(message(1, np.int64(1)))
    assert second.result(DEADLINE) == 1


def test_many_wait_on_one_link(party, pool):
    comm, sock = party()
    count, turns = 32, 20

    def exchange(thread: int) -> None:
        for turn in range(turns):
            assert comm.recv(1, f"{RUN}/{thread}.{turn}") == 1000 * thread + turn

    done = [pool.submit(exchange, thread) for thread in range(count)]
    for turn in range(turns):
        for thread in reversed(range(count)):
            sock.sendall(message(f"{thread}.{turn}", np.int64(1000 * thread + turn)))
    for each in done:
        each.result(DEADLINE)


def test_frames_that_came_in_one_go_are_not_left_in_a_buffer(party, pool):
    """Not in the one of TLS either: no poll of the socket tells of them."""
    comm, sock = party()
    for turn in range(20):
        waiting = [waits(comm, pool, 1, f"{turn}.0"), waits(comm, pool, 1, f"{turn}.39")]
        sock.sendall(
            b"".join(message(f"{turn}.{i}", np.full(1000, i, np.uint16)) for i in range(40))
        )
        for each, last in zip(waiting, (0, 39), strict=True):
            assert each.result(DEADLINE)[0] == last
        assert [comm.recv(1, f"{RUN}/{turn}.{i}")[0] for i in range(1, 39)] == list(range(1, 39))


def test_the_loss_of_the_link_ends_all_waits_on_it(party, pool):
    comm, sock = party()
    waiting = [waits(comm, pool, 1, i) for i in range(3)]
    sock.shutdown(socket.SHUT_RDWR)
    for each in waiting:
        assert "has lost its link to party 1 (node1)" in error_of(each, CommError)


def test_a_link_that_is_closed_here_ends_all_waits_on_it(party, pool):
    comm, _ = party()
    waiting = [waits(comm, pool, 1, i) for i in range(2)]
    comm._links.drop("node1", "no more of it")
    for each in waiting:
        assert "no more of it" in error_of(each, CommError)


def test_the_loss_of_another_link_ends_the_wait(party, pool):
    comm, _, other = party(2)
    waiting = waits(comm, pool, 1, 0)
    other.shutdown(socket.SHUT_RDWR)
    assert "party 2 (node2)" in error_of(waiting, CommError)


def test_a_hostile_frame_ends_its_own_link_and_the_reader_is_told(party, pool):
    comm, hostile, _ = party(2)
    waiting = waits(comm, pool, 1, 0)
    hostile.sendall(frame(Kind.MESSAGE, b"other/0", pack(True)[0]))  # of a run that it is not in
    text = error_of(waiting, CommError)
    assert "party 1 (node1): it sent an unexpected message" in text
    assert comm._links.get("node1") is None
    assert comm._links.get("node2") is not None


def test_the_end_of_a_run_ends_the_wait(party, pool):
    comm, _ = party()
    waiting = waits(comm, pool, 1, 0)
    comm.close(RUN)
    assert "is in no run" in error_of(waiting, CommError)


def test_control_frames_are_answered_while_nobody_waits(party):
    comm, sock = party()
    warm(comm, sock)
    sock.settimeout(DEADLINE)
    sock.sendall(frame(Kind.CLOSE, RUN.encode()))
    expected = frame(Kind.OPEN, RUN.encode()) + frame(Kind.CLOSED, RUN.encode())
    got = b""
    while len(got) < len(expected):
        got += sock.recv(1000)
    assert got == expected


def test_the_reason_of_an_abort_comes_before_the_end_of_the_run(joined):
    """Also where the thread that writes what is queued has not come to it yet."""
    connection, sock = joined()
    with sock:
        links = Links("node0", max_message=1)
        link = Link(connection, "node1", links, max_message=1, max_waiting=1)
        link.queue_control(Kind.ABORT, RUN, "it divides by zero")
        link.send_control(Kind.CLOSE, RUN)
        link.close(LostLink.SHUTDOWN)
        abort = frame(Kind.ABORT, RUN.encode(), b"it divides by zero")
        assert all_of(sock) == abort + frame(Kind.CLOSE, RUN.encode())


def test_a_link_whose_peer_does_not_answer_is_dropped(joined):
    with contextlib.ExitStack() as stack:
        links, there = (stack.enter_context(contextlib.closing(Links(name, max_message=1)))
                        for name in ("node0", "there"))  # fmt: skip
        end, other = joined()
        links.add(end, "there")
        there.add(type(end)(other, DEADLINE), "node0")
        end, half_open = joined()
        stack.enter_context(half_open)
        links.add(end, "silent")
        end, ended = joined()
        links.add(end, "ended")
        ended.close()
        links.probe(["there", "ended", "unknown"], NEVER)
        assert {link.peer for link in links.all()} == {"there", "silent"}
        links.probe(["there", "silent"], TIMEOUT)
        assert links.get("silent") is None
        links.probe(["there"], NEVER)
        assert links.get("there") is not None


def test_who_has_closed_a_run_as_well_waits_for_no_answer(party, pool, monkeypatch):
    monkeypatch.setattr("mplang_worker.link.links.CLOSE_TIMEOUT", NEVER)
    comm, sock = party()
    sock.settimeout(DEADLINE)
    closing = pool.submit(comm.close, RUN)
    expected = frame(Kind.OPEN, RUN.encode()) + frame(Kind.CLOSE, RUN.encode())
    got = b""
    while len(got) < len(expected):
        got += sock.recv(1000)
    assert got == expected
    sock.sendall(frame(Kind.CLOSE, RUN.encode()))
    closing.result(DEADLINE)  # long before it gives up
    sock.sendall(frame(Kind.CLOSE, b"another"))  # which is answered, in its turn
    assert sock.recv(1000) == frame(Kind.CLOSED, b"another")


def test_both_ends_write_at_once():
    """Neither waits for the other to read: the standing readers do."""
    comms = HttpCommunicator.connected(2, NEVER)
    for comm in comms:
        comm.open(RUN)
    value = np.zeros(1 << 25, np.uint8)
    with ThreadPoolExecutor(2) as pool:

        def exchange(comm):
            for i in range(3):
                comm.send(1 - comm.rank, f"{RUN}/{i}", value)
                comm.recv(1 - comm.rank, f"{RUN}/{i}")

        for each in [pool.submit(exchange, comm) for comm in comms]:
            each.result(DEADLINE)
    for comm in comms:
        comm._links.close()
