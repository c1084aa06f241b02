"""Packets of an engine: the front takes nothing that could change under it, or has no end."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest
from mplang_worker.wire import ipc

MB = 1 << 20


@pytest.fixture
def pair():
    mine, theirs = ipc.channel()
    with mine, theirs:
        yield mine, theirs


def test_messages_and_files_arrive(pair):
    mine, theirs = pair
    for size in (1, ipc.PACKET + 1):
        file = ipc.write_file([b"x" * size, b"y"])
        ipc.send(theirs, {"data": b"z" * size}, file)
        os.close(file)
        message, found = ipc.receive(mine)
        assert message == {"data": b"z" * size}
        assert bytes(ipc.read_file(found, 2 * MB)) == b"x" * size + b"y"


LIMITED = """
import ctypes, errno, os, resource, socket, sys, time
from mplang_worker.wire import ipc

resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
none = (ctypes.c_uint32 * 6)()
head = (ctypes.c_uint32 * 2)(0x20080522, 0)
assert ctypes.CDLL(None).capset(head, none) == 0  # as a process of a session has none
sock = socket.socket(fileno=int(sys.argv[1]))
file = ipc.write_file([b"x"])
sock.settimeout(0)
try:
    ipc.send(sock, {}, file)
except OSError as error:
    assert error.errno == errno.ETOOMANYREFS
    pause = time.sleep
    time.sleep = lambda seconds: (print("waits", flush=True), pause(seconds))
    sock.settimeout(None)
    ipc.send(sock, {"data": 1}, file)
"""


def test_who_has_used_up_the_files_on_their_way_is_waited_for(pair):
    """The kernel counts those of all processes of a user."""
    mine, theirs = pair
    limit, batch = 300, 200
    others = [ipc.channel() for _ in range(4)]
    file = os.memfd_create("other")
    for near, _ in others:
        ipc.socket.send_fds(near, [b"x"], [file] * batch)
    os.close(file)
    command = [sys.executable, "-P", "-c", LIMITED.replace("LIMIT, LIMIT", f"{limit}, {limit}")]
    child = subprocess.Popen(
        [*command, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    with child, child.stdout:
        assert child.stdout.readline() == b"waits\n"
        for end in (each for both in others for each in both):
            end.close()
        message, sent = ipc.receive(mine)
    assert message == {"data": 1}
    os.close(sent)


def test_files_that_could_change_are_refused():
    plain = os.memfd_create("plain")
    os.write(plain, b"1234")
    reader, writer = os.pipe()
    os.close(writer)
    for file in (plain, reader):
        with pytest.raises(ValueError, match="could change"):
            ipc.read_file(file, MB)


def test_files_with_holes_or_too_large_are_refused():
    import fcntl

    hole = os.memfd_create("hole", os.MFD_ALLOW_SEALING)
    os.ftruncate(hole, 1 << 40)
    fcntl.fcntl(hole, fcntl.F_ADD_SEALS, ipc.SEALS)
    with pytest.raises(ValueError, match="has holes"):
        ipc.read_file(hole, 1 << 41)
    with pytest.raises(ValueError, match="too large"):
        ipc.read_file(ipc.write_file([bytes(2 * MB)]), MB)


@pytest.mark.parametrize(
    "data",
    [b"\x90" * (8 * MB), b"\x90" * MB, b"\xdd\xff\xff\xff\xff" + b"\x90" * 500_000, b"\x81" * MB],
    ids=["bytes", "items", "a list", "nested"],
)
def test_messages_without_end_are_refused(pair, data):
    mine, theirs = pair
    file = ipc.write_file([data])
    ipc.socket.send_fds(theirs, [msgspec.msgpack.encode({})], [file])
    os.close(file)
    with pytest.raises(ValueError, match="."):
        ipc.receive(mine)


def test_no_descriptor_is_left(pair):
    mine, theirs = pair
    read, write = os.pipe()
    os.set_blocking(read, False)
    for data in (b"\xc1", msgspec.msgpack.encode([1]), b"\x91" * 10_000):
        ipc.socket.send_fds(theirs, [data], [write] * 4)
        with pytest.raises(ValueError, match="."):
            ipc.receive(mine)
    os.close(write)
    assert os.read(read, 1) == b""  # its end: nobody else has the other side
    os.close(read)
