"""MPC process of a worker named ``evil``, which sends wrong messages; the workers import this.

The test says before each run what is wrong in it, by a file that the process has mapped before it
was confined: JSON, padded with blanks to :data:`SIZE` bytes.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
from pathlib import Path

from mplang_worker.mpc import process as mpc_process
from mplang_worker.mpc.communicator import MpcCommunicator
from wrong_messages import Added, AtRandom, WrongMessages

from mplang_core.errors import AdmissionError, CommError, RunError

FILE = "MPLANG_TEST_EVIL_MPC"  # environment variable: the path of the file
SIZE = 256
STUCK, PR_SET_NAME = "stuck", 15


class Stuck:
    """No message: the process hangs in native code, which may hold Python's lock.

    The thread that hangs is called :data:`STUCK`.

    Args:
        locked: whether it does.
    """

    def __init__(self, locked: int) -> None:
        self._libc = ctypes.PyDLL(None) if locked else ctypes.CDLL(None)

    def __call__(self, to_rank: int, key: str, data: bytes) -> list[tuple[str, bytes]]:
        self._libc.prctl(PR_SET_NAME, STUCK.encode())
        self._libc.pause()
        return []


SECRET = "shares of others: 31415926"
ERRORS = (AdmissionError, CommError, RunError)


class Tells:
    """No message: the process fails, and tells what it likes to the engine.

    Args:
        error: which of :data:`ERRORS`.
        begins: whether it fails before an op runs.
    """

    def __init__(self, error: int, begins: int) -> None:
        self.begins, self._error = begins, ERRORS[error]

    def __call__(self, to_rank: int, key: str, data: bytes) -> list[tuple[str, bytes]]:
        raise self._error(SECRET)


KINDS = {"tells": Tells, "at random": AtRandom, "added": Added, "stuck": Stuck}


def say(path: Path, kind: str = "", **options: int) -> None:
    """Say what is wrong in the next run: one of ``KINDS``; nothing by default."""
    with path.open("r+b") as file:  # in its place, as it is mapped
        file.write(json.dumps([kind, options]).encode().ljust(SIZE))


class EvilCommunicator(WrongMessages, MpcCommunicator):
    """Communicator of the MPC process, evil at the worker of that name."""

    def begin(self, run, parties, seconds) -> None:
        kind, options = json.loads(_said[:])
        evil = kind and self.names[self.rank] == "evil"
        self.wrong = KINDS[kind](**options) if evil else None
        super().begin(run, parties, seconds)
        if isinstance(self.wrong, Tells) and self.wrong.begins:
            self.wrong(self.rank, "", b"")


if FILE in os.environ:
    with open(os.environ[FILE], "rb") as file:
        _said = mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_READ)
    mpc_process.MpcCommunicator = EvilCommunicator
