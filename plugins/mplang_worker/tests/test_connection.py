"""The end of a connection while other threads use it: nothing of it reaches another one."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from mplang_testing.waiting import DEADLINE, wait_until

SECRET = b"what a party sends " * 5


@pytest.fixture
def pair(joined):
    """Return a connection, and the peer's socket, of which TLS is not read."""
    made, far = joined()
    with socket.socket(fileno=far.detach()) as plain:
        yield made, plain
    made.close()


def is_open(number: int) -> bool:
    with contextlib.suppress(OSError):
        os.fstat(number)
        return True
    return False


def test_a_number_is_not_used_again_while_a_thread_writes(pair):
    """A thread may have checked that the socket is open, and not have written yet."""
    connection, _ = pair
    number = connection._sock.fileno()
    begun, closed = threading.Event(), threading.Event()

    def write(parts):  # in a thread that is suspended right before it does
        begun.set()
        assert closed.wait(DEADLINE)
        os.write(number, parts[0])

    connection._write = write
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(connection.write, [SECRET])
        assert begun.wait(DEADLINE)
        connection.close()
        with socket.socket() as other:
            closed.set()
            assert other.fileno() != number
        with pytest.raises(OSError, match="Broken pipe"):
            writing.result(DEADLINE)
    assert not is_open(number)


def test_files_are_closed_at_once_if_nobody_uses_them(pair):
    connection, far = pair
    numbers = [connection._sock.fileno(), connection._interrupts]
    gc.disable()  # which would close them some day
    try:
        connection.close()
        assert not any(map(is_open, numbers))
    finally:
        gc.enable()
    far.settimeout(DEADLINE)
    while far.recv(1000):
        pass


def test_files_are_closed_when_the_thread_that_reads_has_left(pair):
    connection, _ = pair
    numbers = [connection._sock.fileno(), connection._interrupts]
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(connection.read_into, memoryview(bytearray(10)))
        wait_until(lambda: connection._files._users, "a thread that reads")
        connection.close()
        assert not reading.result(DEADLINE)
    assert not any(map(is_open, numbers))


def test_what_is_closed_is_used_no_more(pair):
    connection, _ = pair
    connection.close()
    with pytest.raises(OSError, match="the connection is closed"):
        connection.write([SECRET])
    with pytest.raises(OSError, match="the connection is closed"):
        connection.read_into(memoryview(bytearray(10)))
    connection.interrupt()
    connection.close()


def test_a_connection_that_nobody_closed_leaves_no_files(joined):
    made, far = joined()
    with far:
        numbers = [made._sock.fileno(), made._interrupts]
        del made
        assert not any(map(is_open, numbers))


@pytest.mark.parametrize("joined", ["TLS"], indirect=True)
def test_the_end_of_tls_lets_no_plain_text_out(pair, monkeypatch):
    """A thread that writes while another closes writes with TLS, or not at all."""
    connection, far = pair
    shutdown = socket.socket.shutdown

    def late(sock, how):
        with contextlib.suppress(OSError):
            connection._tls.send(SECRET)
        shutdown(sock, how)

    monkeypatch.setattr(socket.socket, "shutdown", late, raising=False)
    connection.close()
    far.settimeout(DEADLINE)
    got = b""
    while data := far.recv(1000):
        got += data
    assert SECRET not in got
