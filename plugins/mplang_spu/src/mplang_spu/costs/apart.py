"""Counting in a process apart: libspu is native code, and a program may be a stranger's.

One process counts for this one, and what it has counted is kept by digest, for it takes seconds.
"""

from __future__ import annotations

import atexit
import functools
import socket
import subprocess
import sys
import threading
from multiprocessing.connection import Connection

from pydantic import ValidationError

from mplang_core.ext import RunError
from mplang_spu.costs.counted import Counted

SECONDS = 120.0  # that counting may take
MAX_ANSWER = 16 << 20
KEPT = 256

_one_at_a_time = threading.Lock()


@functools.lru_cache(maxsize=KEPT)
def counted(request: str) -> Counted:
    """Return what a program takes.

    Args:
        request: a :class:`mplang_spu.costs.counted.CountRequest`, as JSON.

    Raises:
        RunError: it cannot be counted: SPU does not take it, or counting takes too long.
    """
    with _one_at_a_time:
        answer = _process().ask(request)
    if answer.startswith("!"):
        raise RunError(f"SPU's costs are not known: {answer[1:]}", code="R017")
    try:
        return Counted.model_validate_json(answer)
    except ValidationError as error:
        raise RunError(
            "SPU's costs are not known: the process that counts is broken", code="R017"
        ) from error


class CountingProcess:
    """Process that counts. It ends with this one.

    Attributes:
        pid: its number.
    """

    def __init__(self) -> None:
        mine, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mplang_spu.costs.child", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self.pid = self._process.pid
        self._pipe = Connection(mine.detach())
        atexit.register(self.end)

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self._process.poll() is not None

    def ask(self, request: str) -> str:
        """Return the answer to a request.

        Raises:
            RunError: the process has ended, or does not answer in time.
        """
        try:
            self._pipe.send_bytes(request.encode())
            if self._pipe.poll(SECONDS):
                return self._pipe.recv_bytes(MAX_ANSWER).decode(errors="replace")
            why = f"counting takes more than {SECONDS:g} s"
        except (OSError, EOFError):
            why = "the process that counts has ended"
        self.end()
        _process.cache_clear()
        raise RunError(f"SPU's costs are not known: {why}", code="R017")

    def end(self) -> None:
        """End the process."""
        atexit.unregister(self.end)
        self._pipe.close()
        self._process.kill()
        self._process.wait()


@functools.lru_cache(maxsize=1)
def _process() -> CountingProcess:
    return CountingProcess()
