"""Baseline of the benchmarks: frames over a TCP connection to another process, perhaps with TLS."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator

from mplang_http.tls.contexts import client_context, server_context
from mplang_http.tls.files import TlsFiles

LENGTH = struct.Struct("!Q")


@contextlib.contextmanager
def echo(answer: int | None = None, tls: TlsFiles | None = None) -> Iterator[RawTcp]:
    """Run a process that responds to each frame: with the same frame, or with a given size.

    Args:
        answer: the size.
        tls: the certificate of both ends; without, there is no TLS.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [sys.executable, __file__, str(port), str(-1 if answer is None else answer)]
        child = subprocess.Popen(command + ([] if tls is None else [tls.cert, tls.key, tls.ca]))
        sock, _ = server.accept()
        if tls is not None:
            sock = server_context(tls).wrap_socket(sock, server_side=True)
    with sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield RawTcp(sock)
    child.wait()


class RawTcp:
    """Endpoint that sends frames, and receives them into one buffer."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()

    def send(self, data: bytes | memoryview) -> None:
        """Send a frame."""
        head = LENGTH.pack(len(data))
        if len(data) < 1 << 16:
            self._sock.sendall(head + data)
        else:
            self._sock.sendall(head)
            self._sock.sendall(data)

    def receive(self) -> memoryview:
        """Receive a frame."""
        (size,) = LENGTH.unpack(self._exactly(LENGTH.size))
        return self._exactly(size)

    def _exactly(self, size: int) -> memoryview:
        if len(self._buffer) < size:
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        count = 0
        while count < size:
            here = self._sock.recv_into(view[count:])
            if not here:
                raise EOFError
            count += here
        return view


def round_trips(
    data: bytes | memoryview, turns: int, answer: int | None = None, tls: TlsFiles | None = None
) -> list[float]:
    """Return the seconds of each round trip; see :func:`echo`."""
    took = []
    with echo(answer, tls) as tcp:
        for _ in range(turns):
            begin = time.perf_counter()
            tcp.send(data)
            tcp.receive()
            took.append(time.perf_counter() - begin)
    return took


def _answer(port: int, answer: int, files: list[str]) -> None:
    with contextlib.ExitStack() as stack:
        sock = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if files:
            cert, key, ca = files
            context = client_context(TlsFiles(cert=cert, key=key, ca=ca))
            context.check_hostname = False  # whatever the certificate of the benchmark is called
            sock = stack.enter_context(context.wrap_socket(sock))
        tcp = RawTcp(sock)
        with contextlib.suppress(EOFError):
            while True:
                got = tcp.receive()
                tcp.send(got if answer < 0 else bytes(answer))


if __name__ == "__main__":
    _answer(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
