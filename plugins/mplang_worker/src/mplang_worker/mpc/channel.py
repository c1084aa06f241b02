"""Channel between the engine and the MPC process of a session: messages with bytes of any size.

Neither trusts the other: who is taken over by a peer cannot harm it by what it sends.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any

from mplang_core.ext import Buffer
from mplang_worker.wire import ipc

Message = dict[str, Any]


def send(sock: socket.socket, message: Message, buffers: Sequence[Buffer] = ()) -> None:
    """Send a message.

    Args:
        sock: socket to the other process.
        message: plain data, without the fields ``sizes`` and ``body``.
        buffers: bytes that go with it.

    Raises:
        OSError: the other process has exited.
    """
    sizes = [memoryview(buffer).nbytes for buffer in buffers]
    if sum(sizes) <= ipc.INLINE:
        body = b"".join(buffers)
        ipc.send(sock, {**message, "sizes": sizes, "body": body})
        return
    file = ipc.write_file(buffers)
    try:
        ipc.send(sock, {**message, "sizes": sizes}, file)
    finally:
        os.close(file)


def receive(sock: socket.socket, limit: int) -> tuple[Message, list[memoryview]]:
    """Wait for a message.

    Args:
        sock: socket to the other process.
        limit: bytes that may go with it.

    Returns:
        The message, and the bytes that go with it.

    Raises:
        EOFError: the other process has exited.
        ValueError: the message is malformed, or too large.
    """
    message, file = ipc.receive(sock)
    body = memoryview(b"")
    if file is not None:
        body = ipc.read_file(file, limit)
    elif isinstance(message.get("body"), bytes):
        body = memoryview(message["body"])
    sizes = message.get("sizes", [])
    if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError("a message with invalid sizes")
    if sum(sizes) != body.nbytes:
        raise ValueError(f"a message with {body.nbytes} bytes that says {sum(sizes)}")
    parts, at = [], 0
    for size in sizes:
        parts.append(body[at : at + size])
        at += size
    return message, parts
