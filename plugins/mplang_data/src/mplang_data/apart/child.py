"""Processes that read what strangers made: a file says what for, and they write what they found."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mplang_confinement import give_up_calls, give_up_files, give_up_privileges, set_limits

from mplang_data.apart import CONNECTED, DONE, MAX_TOLD, PROGRESS
from mplang_data.description import SourceError

PR_SET_PDEATHSIG = 1
OWN = 1 << 30  # bytes of memory that such a process takes for itself, and for rows on their way
FILES = 1000  # open at a time


class Reach(NamedTuple):
    """Resources of a process beside its open files; none by default.

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


@dataclass(frozen=True, slots=True)
class Task:
    """Task of a module in a separate process, as its ``TASK``.

    Attributes:
        work: takes what is asked, and descriptors of files that the process has open.
        failure: the error, where it is not one of ours.
        reach: tells by what is asked and the files what the process reaches.
    """

    work: Work
    failure: str
    reach: Callable[[dict[str, Any], Sequence[int]], Reach] = lambda asked, files: Reach()


def run(parent: int, files: Sequence[int], rules: int | None = None) -> None:
    """Confine this process, do what its first file says, and write what it found to its second.

    It writes ``value``, or ``error``, which tells no data, with ``detail`` and ``where`` for the
    owner.

    Args:
        parent: the process that has forked it, and ends it.
        files: descriptors of what is asked, of what is told, of stderr, of the line to who waits,
            and of further open files.
        rules: of :func:`mplang_confinement.make_ruleset`, if there are any yet.
    """
    given, told, errors, line, *rest = files
    end_with(parent)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    asked = json.loads(os.pread(given, os.fstat(given).st_size, 0))
    os.environ.clear()
    os.environ.update(asked.pop("environment"))
    asked |= {"line": line, "progress": told}
    answer = _answer(asked, rest, rules)
    os.pwrite(told, json.dumps(answer).encode(), PROGRESS)
    os.write(line, DONE)


def _answer(asked: dict[str, Any], files: Sequence[int], rules: int | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"error": None, "detail": None, "where": "", "value": None}
    task: Task = importlib.import_module(asked["module"]).TASK
    try:
        reached = task.reach(asked, files)
        for module in reached.imports:
            importlib.import_module(module)
        _go_on_as_one_thread()
        _confine(reached, rules, asked["size"])
        answer["value"] = task.work(asked, files)
    except SourceError as error:
        answer |= {"error": str(error), "detail": _detail_of(error), "where": error.detail}
    except MemoryError as error:
        public = f"it takes more than {asked['size']} bytes of memory (size, in the catalogue)"
        answer |= {"error": public, "detail": _detail(error)}
    except Exception as error:  # of whatever reads it
        answer |= {"error": task.failure, "detail": _detail(error)}
    return answer


def tell_connected(line: int) -> None:
    """Say that the source is there, before anything is read of it.

    Args:
        line: descriptor of the line to who waits.
    """
    os.write(line, CONNECTED)


def tell_progress(progress: int, percent: float) -> None:
    """Write for the parent how far this process is.

    Args:
        progress: descriptor that it is told by.
        percent: from 0 to 100; another number if that is not known.
    """
    os.pwrite(progress, f"{percent:.1f}".encode().ljust(PROGRESS)[:PROGRESS], 0)


def end_with(parent: int) -> None:
    """End this process when another one ends, which has forked it."""
    # a later one of the same parent, or of the next, must not meet this one
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _go_on_as_one_thread() -> None:
    """Go on in a fork if libraries have started threads, which Landlock leaves out."""
    if len(os.listdir("/proc/self/task")) == 1:
        return
    parent, child = os.getpid(), os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(code if code >= 0 else 128 - code)  # as shells tell signals
    end_with(parent)


def _confine(reach: Reach, rules: int | None, size: int) -> None:
    give_up_privileges()
    give_up_files(reach.readable, reach.writable, reach.ports, rules=rules)
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
