"""Jobs of SPU, for which the process waits before it exits.

A process that exits while libspu computes crashes: in libspu's destructors, or where a thread of
libspu asks Python's interpreter for its lock. An interrupted run leaves such threads. Over channels
they end with their next message, but nothing ends a job over memory links before its time: its
threads are stopped where they wait.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

GRACE = 2.0  # seconds for what an abort ends, and then for what waits for a member that failed
INTERVAL = 0.01  # seconds between two looks
INTERRUPTED = 130  # exit code of a process that Ctrl-C ended
STOP = getattr(signal, "SIGRTMAX", signal.SIGUSR2)  # used by nobody else while the process exits
LEFT = "mplang_left_at_exit"  # a simulator does not wait for a thread that has this attribute


@dataclass(slots=True)
class _Job:
    members: int | None
    begun: int = 0
    ended: int = 0
    failed: bool = False

    @property
    def proceeds(self) -> bool:
        """Whether it comes to its end, and not before: all members are in it."""
        return self.begun == self.members and not self.failed

    @property
    def is_over(self) -> bool:
        """Whether no thread is in it any more, or will be."""
        return self.ended == (self.begun if self.members is None or self.failed else self.members)


_jobs: dict[str, _Job] = {}
_changed = threading.Condition()


@contextmanager
def awaited_at_exit(key: str, members: int | None = None) -> Iterator[None]:
    """Delay the exit of the process until this thread's part of a job ends.

    Args:
        key: the name of the job, used once.
        members: of a job that nothing ends before its time, the number of its members, all of
            which are threads of this process; otherwise ``None``.
    """
    thread = threading.current_thread()
    setattr(thread, LEFT, True)
    with _changed:
        job = _jobs.setdefault(key, _Job(members))
        job.begun += 1
    try:
        yield
    except BaseException:
        job.failed = True
        raise
    finally:
        delattr(thread, LEFT)
        with _changed:
            job.ended += 1
            if job.is_over:
                _jobs.pop(key, None)
            _changed.notify_all()


def _stop_waiting() -> None:
    """Suspend threads that wait in libspu for good; Linux lists which those are.

    CPython ends a thread that comes back to an interpreter that has ended by unwinding its stack,
    and C++ aborts the process instead. From 3.14 on such a thread hangs (python/cpython#87135);
    here each hangs in the handler of a signal.
    """
    left = {each for each in threading.enumerate() if hasattr(each, LEFT)}
    if not left:
        return
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    libc.signal(STOP, ctypes.cast(libc.pause, ctypes.c_void_p))
    until = time.monotonic() + GRACE
    while left and time.monotonic() < until:
        for thread in tuple(left):
            if not hasattr(thread, LEFT):  # it has come back
                left.discard(thread)
            elif thread.ident is not None and _sleeps(thread.native_id):
                signal.pthread_kill(thread.ident, STOP)
                left.discard(thread)
        time.sleep(INTERVAL)


def _sleeps(thread: int | None) -> bool:
    """Return whether a thread waits; one that computes may hold locks which the exit needs."""
    try:
        with open(f"/proc/self/task/{thread}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "S"
    except OSError:
        return False


def _wait() -> None:
    """Wait for jobs that proceed, then a little for others; a second Ctrl-C ends the process."""
    try:
        with _changed:
            _changed.wait_for(lambda: not any(job.proceeds for job in _jobs.values()))
            _changed.wait_for(lambda: not _jobs, GRACE)
        _stop_waiting()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)  # libspu's destructors would crash


atexit.register(_wait)
