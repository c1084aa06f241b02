"""Quotes in an enclave: a process of its own has the way to the hardware, and makes them.

The processes of sessions may open no device and start no program. They ask this one by a socket
that they were forked with, each with a socket of its own for the answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from mplang_core.ext import KernelError
from mplang_tee.provider import REPORT_BYTES, AttestationProvider, find_provider
from mplang_tee.types import MAX_QUOTE

SECONDS = 60.0
"""Time that a quote may take."""

OK, FAILED = b"\x00", b"\x01"

_asked: tuple[str, socket.socket] | None = None


def start(provider: str, maker: Mapping[str, Any]) -> None:
    """Start the process that makes quotes; it ends with the last one that may ask it.

    Args:
        provider: name of the provider.
        maker: what it needs.
    """
    global _asked
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, "-P", "-m", "mplang_tee.quoting"],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    ours.sendall(json.dumps({"provider": provider, "maker": dict(maker)}).encode())
    ours.settimeout(SECONDS)  # of processes that are forked, too
    if _asked is not None:
        _asked[1].close()
    _asked = provider, ours


def ask_for_quote(provider: str, report: bytes) -> bytes:
    """Return a quote over report data.

    Args:
        provider: name of the provider that the program names.
        report: 64 bytes.

    Raises:
        KernelError: this worker is not an enclave, one of another provider, or cannot quote.
    """
    if _asked is None:
        raise KernelError(
            "this worker is not an enclave: its configuration has no "
            "plugins.mplang-tee.settings.enclave",
            code="R013",
        )
    name, asked = _asked
    if name != provider:
        raise KernelError(f"this worker is an enclave by {name}, not by {provider}", code="R013")
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with mine:
        mine.settimeout(SECONDS)
        try:
            with theirs:
                socket.send_fds(asked, [report], [theirs.fileno()])
            answer = mine.recv(MAX_QUOTE + 1)
        except OSError as error:
            raise KernelError(f"no quote in {SECONDS:g} s: {error}", code="R013") from None
    if answer[:1] != OK:
        why = answer[1:].decode(errors="replace") or "the process that makes quotes has ended"
        raise KernelError(f"no quote: {why}", code="R013")
    return answer[1:]


def serve(asked: socket.socket) -> None:
    """Make quotes until nobody is left who could ask.

    Args:
        asked: socket of those who ask; its first message says how.
    """
    about = json.loads(asked.recv(MAX_QUOTE))
    provider = find_provider(about["provider"])
    assert provider.makes is not None
    maker = provider.makes(**about["maker"])
    asked.setblocking(True)
    while True:
        report, files, _, _ = socket.recv_fds(asked, REPORT_BYTES + 1, 1)
        if not report and _is_over(asked):
            return
        for each in files:
            _send(each, _answer(provider, maker, report))


def _is_over(asked: socket.socket) -> bool:
    """Return whether nobody is left: who asks may send nothing, too."""
    poll = select.poll()
    poll.register(asked, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _send(number: int, data: bytes) -> None:
    """Send an answer to the descriptor that came for it, whatever it is, and close that."""
    try:
        answer = socket.socket(fileno=number)
    except OSError:  # it is not a socket
        os.close(number)
        return
    with answer, contextlib.suppress(OSError):  # it is full, or who asked has gone
        answer.send(data, socket.MSG_DONTWAIT)


def _answer(provider: AttestationProvider, maker: Any, report: bytes) -> bytes:
    if len(report) != REPORT_BYTES:
        return FAILED + f"a quote is over {REPORT_BYTES} bytes".encode()
    try:
        return OK + provider.quote(maker, report)
    except Exception as error:  # of a provider of another package
        return FAILED + str(error)[:4096].encode()


if __name__ == "__main__":
    serve(socket.socket(fileno=0))
