"""Processes that read what strangers made: stdin says what for, and they print what they found."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mplang_confinement import give_up_calls, give_up_files, give_up_privileges, set_limits

from mplang_data.apart import MAX_TOLD
from mplang_data.description import SourceError

PR_SET_PDEATHSIG = 1
OWN = 1 << 30  # bytes of memory that such a process takes for itself, and for rows on their way
FILES = 1000  # open at a time


class Reach(NamedTuple):
    """What a process reaches beside the files that it has open, by default nothing.

    Attributes:
        readable: files that it reads.
        writable: folders in which it makes and changes files.
        ports: of TCP, to which it connects.
        calls: of the network, which it keeps until it has connected.
        written: bytes of a file that it writes; any if ``None``.
        imports: modules that it imports before it is confined, since it cannot keep their bytecode
            afterwards.
    """

    readable: Sequence[str] = ()
    writable: Sequence[str] = ()
    ports: Sequence[int] = ()
    calls: Sequence[str] = ()
    written: int | None = MAX_TOLD
    imports: Sequence[str] = ()


Work = Callable[[dict[str, Any], Sequence[int]], Any]


def serve(
    work: Work, failure: str, reach: Callable[[dict[str, Any]], Reach] = lambda asked: Reach()
) -> None:
    """Confine this process, do what stdin says, and print what it found.

    It prints ``value``, or ``error``, which tells no data, and ``detail``, for the owner.

    Args:
        work: takes what is asked, and descriptors of files that this process has open.
        failure: the error, where it is not one of ours.
        reach: tells by what is asked what this process reaches.
    """
    asked = json.load(sys.stdin)
    _end_with(asked["parent"])
    told: dict[str, Any] = {"error": None, "detail": None, "value": None}
    try:
        reached = reach(asked)
        for module in reached.imports:
            importlib.import_module(module)
        _go_on_as_one_thread()
        _confine(reached, asked["size"])
        told["value"] = work(asked, [int(each) for each in sys.argv[1:]])
    except SourceError as error:
        told |= {"error": str(error), "detail": _detail_of(error)}
    except MemoryError as error:
        public = f"it takes more than {asked['size']} bytes of memory (size, in the catalogue)"
        told |= {"error": public, "detail": _detail(error)}
    except Exception as error:  # of whatever reads it
        told |= {"error": failure, "detail": _detail(error)}
    json.dump(told, sys.stdout)


def tell_connected(connected: int) -> None:
    """Send the parent word that the source is there, before anything is read of it.

    Args:
        connected: descriptor of the socket to the parent.
    """
    os.write(connected, b"1")  # a socket, whose parent looks whether a byte has come


def _end_with(parent: int) -> None:
    # a later one of the same parent, or of the next, must not meet this one
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _go_on_as_one_thread() -> None:
    """Go on in a fork, since Landlock leaves out the threads that libraries have started."""
    parent, child = os.getpid(), os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(code if code >= 0 else 128 - code)  # as shells tell signals
    _end_with(parent)


def _confine(reach: Reach, size: int) -> None:
    give_up_privileges()
    give_up_files(reach.readable, reach.writable, reach.ports)
    set_limits(memory=size + OWN, files=FILES, written=reach.written)
    give_up_calls(reach.calls)


def _detail_of(error: SourceError) -> str | None:
    """Return what is for the owner: what is wrong where, and the reason of who read it."""
    cause = error.__cause__ and _detail(error.__cause__)
    if cause and error.detail and error.detail not in cause:
        return f"{error.detail} ({cause})"
    return cause or error.detail or None


def _detail(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
