"""IPC between the front and the engine of a worker: packets of a message and perhaps a file.

Large bodies are memory files, which both processes map without a copy. The socket of a link is
passed in the same way. A message that exceeds a packet is the first file of an empty message.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import socket
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from mplang_http.ext import Buffer

from mplang_core import MPLangError
from mplang_worker.wire.msgpack_limits import count_items

MAX_SPILLED = 4 << 20  # bytes of a message
PAUSE = 0.01  # seconds until files are tried again that the kernel has no room for
MAX_ITEMS = 3_000_000  # items of it: a hundred jobs may have many results
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
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


def check_message(fields: Message) -> None:
    """Check that a process can be sent something: that is plain data, and not too large.

    Raises:
        OverflowError, TypeError, ValueError: it cannot.
    """
    size = len(_encoder.encode(fields))
    if size > MAX_SPILLED // 2:
        raise ValueError(f"a message has at most {MAX_SPILLED // 2} bytes, got {size}")


def send(sock: socket.socket, message: Message, file: int | None = None) -> None:
    """Send a packet; wait for room as the socket does.

    Args:
        sock: socket to the other process.
        message: the message.
        file: file descriptor to pass; the caller closes its own.

    Raises:
        OSError: the other process has exited; there is no room, if the socket does not wait.
        TimeoutError: there was none in the socket's time.
    """
    data = _encoder.encode(message)
    files = [] if file is None else [file]
    if len(data) <= PACKET:
        _send_files(sock, data, files)
        return
    spilled = write_file([data])
    try:
        _send_files(sock, _SPILLED, [spilled, *files])
    finally:
        os.close(spilled)


def _send_files(sock: socket.socket, data: bytes, files: Sequence[int]) -> None:
    """Send a packet with files.

    Linux holds the files that all processes of a user have on their way against the limit of open
    files of who sends one more: on a busy machine its neighbours may have used it up.
    """
    timeout = sock.gettimeout()
    begun = time.monotonic()
    while True:
        try:
            socket.send_fds(sock, [data], files)
            return
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS or timeout == 0:
                raise
        if timeout is not None and time.monotonic() - begun > timeout:
            raise TimeoutError("too many files are on their way")
        time.sleep(PAUSE)


def receive(sock: socket.socket) -> tuple[Message, int | None]:
    """Wait for a packet.

    Returns:
        The message, and the file descriptor that came with it.

    Raises:
        EOFError: the other process has exited.
        ValueError: the packet is malformed.
    """
    data, files, _, _ = socket.recv_fds(sock, PACKET, 4)
    try:
        if not data:
            raise EOFError("the other side has gone")
        message: Buffer = data
        if data == _SPILLED and files:
            message = _read_spilled(files[0])
            os.close(files.pop(0))
        decoded = _decoder.decode(message)
        file = files.pop(0) if files else None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"no packet: {error}") from None
    finally:
        for extra in files:
            os.close(extra)
    return decoded, file


def _read_spilled(file: int) -> bytes:
    """Read a file that may be anything: a map of it could be truncated by the other side."""
    size = os.fstat(file).st_size
    if size > MAX_SPILLED:
        raise ValueError(f"a message of {size} bytes")
    data = os.pread(file, size, 0)
    try:
        count_items(data, MAX_ITEMS)
    except MPLangError as error:
        raise ValueError(str(error)) from None
    return data


def write_file(parts: Sequence[Buffer | bytearray]) -> int:
    """Return the descriptor of a new memory file with the concatenated parts.

    It is sealed, unless there are no parts, and it is to be written to.
    """
    file = os.memfd_create("mplang", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        for part in parts:
            view = memoryview(part)
            while len(view):
                view = view[os.write(file, view) :]
        if parts:
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS)
    except BaseException:
        os.close(file)
        raise
    return file


def read_file(file: int, limit: int | None = None) -> memoryview:
    """Map a file and close its descriptor; the memory is freed with the last reference.

    Args:
        file: descriptor of a memory file.
        limit: maximum size in bytes, if the other side is not trusted. Then it has to be sealed, as
            who reads a map of a file that was truncated is ended by SIGBUS, and without holes, as
            whoever reads those pays for them.

    Raises:
        ValueError: it is too large, not sealed, or has holes.
    """
    try:
        if limit is not None:
            check_file(file, limit)
        size = os.fstat(file).st_size
        if not size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file, size, prot=mmap.PROT_READ))
    finally:
        with contextlib.suppress(OSError):
            os.close(file)


def check_file(file: int, limit: int) -> None:
    """Check a memory file of a side that is not trusted.

    Args:
        file: its descriptor.
        limit: maximum size in bytes.

    Raises:
        ValueError: it is too large, not sealed, or has holes.
    """
    found = os.fstat(file)
    if not _is_sealed(file):
        raise ValueError("a file that could change")
    if found.st_size > limit or found.st_blocks * 512 < found.st_size:
        raise ValueError(f"a file of {found.st_size} bytes, which is too large or has holes")


def _is_sealed(file: int) -> bool:
    try:
        return fcntl.fcntl(file, fcntl.F_GET_SEALS) & SEALS == SEALS
    except OSError:  # no memory file
        return False
