"""Packets of an engine: the front takes nothing that could change under it, or has no end."""

from __future__ import annotations

import os

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
