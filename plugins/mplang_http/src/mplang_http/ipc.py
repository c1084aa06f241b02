"""Packets between the front and the engine of a worker: a small message, and perhaps a file.

What is large goes in a file in memory, which both sides map; nothing is copied for it. A
connection that is to become a link goes the same way, and so does a message that is too large
for a packet: an empty message stands for one in the first file.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
from collections.abc import Iterable
from typing import Any

import msgspec

from mplang_http.values import Buffer

__all__ = ["INLINE", "Body", "channel", "read_file", "receive", "send", "write_file"]

INLINE = 32 << 10  # bytes up to which a body is part of the packet
PACKET = 160 << 10  # bytes; the kernel refuses larger ones
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[str, Any])
_SPILLED = _encoder.encode({})

Message = dict[str, Any]
Body = int | bytes | None
"""A file in memory, bytes, or nothing."""


def channel() -> tuple[socket.socket, socket.socket]:
    """Return two connected ends."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(sock: socket.socket, message: Message, file: int | None = None) -> None:
    """Send a packet.

    Raises:
        OSError: the other side has gone.
    """
    data = _encoder.encode(message)
    files = [] if file is None else [file]
    if len(data) <= PACKET:
        socket.send_fds(sock, [data], files)
        return
    spilled = write_file([data])
    try:
        socket.send_fds(sock, [_SPILLED], [spilled, *files])
    finally:
        os.close(spilled)


def receive(sock: socket.socket) -> tuple[Message, int | None]:
    """Wait for a packet.

    Raises:
        EOFError: the other side has gone.
    """
    data, files, _, _ = socket.recv_fds(sock, PACKET, 4)
    if not data:
        raise EOFError("the other side has gone")
    message: Buffer = data
    if data == _SPILLED:
        message = read_file(files.pop(0))
    for extra in files[1:]:
        os.close(extra)
    return _decoder.decode(message), files[0] if files else None


def write_file(parts: Iterable[Buffer]) -> int:
    """Return a new file in memory that holds the parts."""
    file = os.memfd_create("mplang", os.MFD_CLOEXEC)
    try:
        for part in parts:
            view = memoryview(part)
            while len(view):
                view = view[os.write(file, view) :]
    except BaseException:
        os.close(file)
        raise
    return file


def read_file(file: int) -> memoryview:
    """Map a file, and close it; the memory goes when nobody refers to it any more."""
    try:
        size = os.fstat(file).st_size
        if not size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file, size, prot=mmap.PROT_READ))
    finally:
        with contextlib.suppress(OSError):
            os.close(file)
