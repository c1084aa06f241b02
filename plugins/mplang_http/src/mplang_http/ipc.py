"""IPC between the front and the engine of a worker: packets of a message and perhaps a file.

Large bodies are memory files, which both processes map without a copy. The socket of a link is
passed in the same way. A message that exceeds a packet is the first file of an empty message.
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

INLINE = 32 << 10  # bytes up to which a body is part of the packet
PACKET = 160 << 10  # bytes; the kernel refuses larger ones
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[str, Any])
_SPILLED = _encoder.encode({})

Message = dict[str, Any]
Body = int | bytes | None
"""A file in memory, bytes, or nothing."""


def channel() -> tuple[socket.socket, socket.socket]:
    """Return a connected pair of sockets."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(sock: socket.socket, message: Message, file: int | None = None) -> None:
    """Send a packet.

    Args:
        sock: socket to the other process.
        message: the message.
        file: file descriptor to pass; the caller closes its own.

    Raises:
        OSError: the other process has exited.
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

    Returns:
        The message, and the file descriptor that came with it.

    Raises:
        EOFError: the other process has exited.
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
    """Return the descriptor of a new memory file with the concatenated parts."""
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
    """Map a file and close its descriptor; the memory is freed with the last reference."""
    try:
        size = os.fstat(file).st_size
        if not size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file, size, prot=mmap.PROT_READ))
    finally:
        with contextlib.suppress(OSError):
            os.close(file)
