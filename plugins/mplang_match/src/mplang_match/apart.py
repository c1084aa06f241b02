"""Matchers in a process apart, where a backend has no native services: in a simulator.

libpsi works on files in its working directory, and may end its process. So one is started for each
party that matches, and its messages go through the party's communicator. It takes a second to
start, so the next matching takes one that has matched before.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection

from mplang_confinement import MemoryFolders

from mplang_core.ext import Communicator, Failure, RunError
from mplang_match.pipe import Pipe, PipeEndedError
from mplang_match.service import MatchRequest

_idle: deque[MatcherProcess] = deque(maxlen=4)  # of this process, which wait for a matching


def match(comm: Communicator, request: MatchRequest, tokens: memoryview) -> Sequence[bytes]:
    """Run a matcher in the process of a party.

    Args:
        comm: communicator of the party.
        request: what it is to do.
        tokens: the tokens, as lines of text.

    Returns:
        The lines in common, or nothing where this party does not learn them.

    Raises:
        MPLangError: the matcher, or the other party, has failed.
    """
    try:
        process = _idle.pop()
    except IndexError:
        process = MatcherProcess()
    common = process.match(comm, request, tokens)
    _idle.append(process)  # one that has failed is not used again
    return common


class MatcherProcess:
    """Process that runs matchers, one after the other; it ends with this object."""

    def __init__(self) -> None:
        folders = MemoryFolders()
        folder = tempfile.mkdtemp(dir=folders.path or None)
        mine, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mplang_match.apart_child", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "TMPDIR": folder},
            )
        self._pipe = Pipe(Connection(mine.detach()))
        self._failed: BaseException | None = None
        self._end = weakref.finalize(self, _end, process, self._pipe, folder, folders)

    def match(
        self, comm: Communicator, request: MatchRequest, tokens: memoryview
    ) -> Sequence[bytes]:
        """Run a matcher; see :func:`match`."""
        self._failed = None
        try:
            self._pipe.send({"rank": comm.rank, **request.model_dump()}, tokens)
            while True:
                message, data = self._pipe.receive()
                match message["what"]:
                    case "send":
                        comm.send(request.peer, message["key"], data)
                    case "receive":
                        wait = (comm, request.peer, message["key"])
                        threading.Thread(target=self._wait, args=wait, daemon=True).start()
                    case "done":
                        return [data] if request.learns else []
                    case _:
                        failure = Failure(message["kind"], message["text"]).error()
                        raise self._failed or failure
        except PipeEndedError as error:
            self._end()
            raise RunError("the process of the matcher has ended", code="R017") from error
        except BaseException:
            self._end()
            raise

    def _wait(self, comm: Communicator, peer: int, key: str) -> None:
        """Wait for a message of the other party, and hand it on."""
        answer = {"what": "received", "key": key}
        try:
            data = comm.recv(peer, key)
        except BaseException as error:
            self._failed = error
            answer, data = {"what": "failed", "key": key}, b""
        with contextlib.suppress(PipeEndedError):
            self._pipe.send(answer, data)


def _end(process: subprocess.Popen[bytes], pipe: Pipe, folder: str, folders: MemoryFolders) -> None:
    process.kill()
    process.wait()
    pipe.close()
    shutil.rmtree(folder, ignore_errors=True)
    folders.close()
