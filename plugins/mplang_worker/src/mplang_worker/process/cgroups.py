"""Memory cgroups of engines: limits of the kernel, which also count files that are never mapped.

A worker whose cgroup is its own (``Delegate=`` of systemd) makes a cgroup for each coordinator,
with one for each engine below. Other workers have the other limits only. In version 2, the worker's
own processes are in the leaf ``front``; version 1 needs none, and has no ``pids`` in this tree.

References:
    cgroups(7); Linux, admin-guide/cgroup-v2.rst, "Delegation" and "Memory Interface Files";
    admin-guide/cgroup-v1/memory.rst.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mplang_worker.base.config import MEMORY, EngineConfig, Limits, Quotas

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
PREFIX = "mplang-"  # and the front's process ID: a worker's cgroup in version 1
SWAP = 1 << 20  # bytes of an engine that version 1 may swap
TRIES, PAUSE = 100, 0.02  # removals of a cgroup whose process is ending, and seconds between them
log = logging.getLogger("mplang.http.front")


class _Files(NamedTuple):
    """Files of a version's memory controller."""

    limit: str
    killed: str  # has "oom_kill" and a number
    reached: str  # how often the limit of this very cgroup was reached


_V1 = _Files("memory.limit_in_bytes", "memory.oom_control", "memory.failcnt")
_V2 = _Files("memory.max", "memory.events", "memory.events.local")


def memory_excess(limits: Limits) -> str:
    """Return why an engine was ended that exceeds ``limits.memory``."""
    return f"it used more than {limits.memory >> 20} MB of memory (limits.memory)"


def quota_excess(quotas: Quotas) -> str:
    """Return why an engine was ended whose coordinator exceeds ``quotas.memory``."""
    return f"its coordinator's engines used more than {quotas.memory >> 20} MB (quotas.memory)"


def why_not(warm: int = 0) -> str:
    """Return why this process can make no cgroups; empty if it can.

    Args:
        warm: process ID of the warm process, which is moved with this one.
    """
    try:
        own, files = _own()
        if not os.access(own, os.W_OK | os.X_OK):
            return f"{own} is not delegated to this user"
        if files is _V2 and "memory" not in (own / "cgroup.controllers").read_text().split():
            return f"{own} has no memory controller"
        if files is _V2 and set(_processes(own)) - {os.getpid(), warm}:
            return f"{own} has other processes, too"
    except (OSError, ValueError) as error:
        return f"no cgroup is found: {error}"
    return ""


@contextlib.contextmanager
def engine_cgroups(config: EngineConfig, warm: int) -> Iterator[Cgroups | None]:
    """Make the cgroups of a worker, where it can, and remove them at the end.

    Args:
        config: configuration of the worker.
        warm: process ID of the warm process, which ends before this does.
    """
    made, reason = None, why_not(warm)
    try:
        made = None if reason else Cgroups(config)
    except OSError as error:
        reason = str(error)
    if made is None:
        log.info("engines have no cgroups: %s", reason)
    try:
        yield made
    finally:
        if made is not None:
            made.close()


class Cgroups:
    """Cgroups of a worker's engines. Safe for threads.

    Args:
        config: configuration of the worker.

    Raises:
        OSError: the kernel refuses.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._limits, self._quotas = config.limits, config.quotas
        self._memory = min(config.limits.memory, MEMORY)  # what is larger is read back as "max"
        self._base, self._files = _own()
        self._lock = threading.Lock()
        self._key = secrets.token_bytes(16)
        if self._files is _V2:
            _take_over(self._base)
        else:
            _remove_stale(self._base)
            self._base /= f"{PREFIX}{os.getpid()}"
            self._base.mkdir()

    def set_quotas(self, quotas: Quotas) -> None:
        """Set other quotas, for processes that are placed from now on."""
        self._quotas = quotas

    def place(self, coordinator: str, link: str, pid: int, baseline: int) -> EngineCgroup:
        """Put a process that is to run an engine into a cgroup.

        Args:
            coordinator: name of the coordinator.
            link: name of the engine's end of the links.
            pid: the process.
            baseline: bytes of memory that it shares with its parent; copies of them are its own.

        Raises:
            OSError: the kernel refuses.
        """
        path = self._base / self._name("coordinator", coordinator) / self._name("engine", link)
        try:
            with self._lock:
                self._make(path, self._memory + baseline)
            with contextlib.suppress(ProcessLookupError):  # it has ended, which is noticed anyway
                _write(path / "cgroup.procs", pid)
        except OSError:
            self.remove(path)
            raise
        return EngineCgroup(self, path)

    def _name(self, kind: str, name: str) -> str:
        # by a secret key, as engines can list cgroups, and know neither coordinators nor links
        digest = hashlib.blake2b(name.encode(), key=self._key, digest_size=8)
        return f"{kind}-{digest.hexdigest()}"

    def _make(self, path: Path, size: int) -> None:
        path.parent.mkdir(exist_ok=True)
        if self._files is _V2:
            _enable(path.parent)
        path.mkdir()
        _write(path / self._files.limit, size)
        for name, value in {
            # one more than permitted, so that the front sees it, and ends the engine
            "pids.max": self._limits.threads + 1,
            "memory.oom.group": 1,
            "memory.swap.max": 0,
            # of version 1; not reached before the limit of memory, which is the one that is told
            "memory.memsw.limit_in_bytes": size + SWAP,
        }.items():
            with contextlib.suppress(FileNotFoundError):  # of the other version, or not built in
                _write(path / name, value)
        self._set_quota(path.parent)

    def _set_quota(self, group: Path) -> None:
        """Limit a coordinator's engines to its quota, and the baseline of each."""
        sizes = []
        for engine in group.glob("engine-*"):
            with contextlib.suppress(OSError, ValueError):  # it is being made, or removed
                sizes.append(int((engine / self._files.limit).read_text()))
        baselines = sum(sizes) - len(sizes) * self._memory
        _write(group / self._files.limit, self._quotas.memory + baselines)

    def excess(self, path: Path) -> str:
        """Return which limit the kernel ended an engine for; empty if it did not."""
        if not _count(path / self._files.killed, "oom_kill"):
            return ""
        if _count(path / self._files.reached, "oom"):
            return memory_excess(self._limits)
        if _count(path.parent / self._files.reached, "oom"):
            return quota_excess(self._quotas)
        return "the memory of the worker or the machine was used up"

    def remove(self, path: Path) -> None:
        """Remove the cgroup of an engine that has ended, and its coordinator's after the last."""
        if not _remove(path):
            log.warning("the cgroup %s cannot be removed", path)
        with self._lock:
            try:
                path.parent.rmdir()
            except OSError:  # there are others
                with contextlib.suppress(OSError):  # that use more at the moment
                    self._set_quota(path.parent)

    def close(self) -> None:
        """Remove all cgroups, after the engines and the warm process have ended."""
        for path in list(self._base.glob("coordinator-*/engine-*")):
            self.remove(path)
        if self._files is _V2:
            _give_back(self._base)
        else:
            _remove(self._base)


class EngineCgroup(NamedTuple):
    """Cgroup of one engine."""

    cgroups: Cgroups
    path: Path

    def excess(self) -> str:
        """Return which limit the kernel ended the engine for; empty if it did not."""
        return self.cgroups.excess(self.path)

    def remove(self) -> None:
        """Remove it, once the engine has ended."""
        self.cgroups.remove(self.path)


def _own() -> tuple[Path, _Files]:
    """Return this process's cgroup in the tree that has the memory controller."""
    lines = [line.split(":", 2) for line in MEMBERSHIP.read_text().splitlines()]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            return ROOT / "memory" / path.lstrip("/"), _V1
    (path,) = (path for number, _, path in lines if number == "0")
    return ROOT / path.lstrip("/"), _V2


def _take_over(own: Path) -> None:
    """Move the worker's processes to a leaf, as a cgroup with limited children has none."""
    (own / "front").mkdir(exist_ok=True)
    try:
        _move(own, own / "front")
        _enable(own)
    except OSError:
        _give_back(own)
        raise


def _give_back(own: Path) -> None:
    with contextlib.suppress(OSError):  # somebody else removes it then
        _enable(own, "-")
        _move(own / "front", own)
        _remove(own / "front")


def _move(source: Path, target: Path) -> None:
    for pid in _processes(source):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            _write(target / "cgroup.procs", pid)


def _processes(path: Path) -> list[int]:
    return [int(pid) for pid in (path / "cgroup.procs").read_text().split()]


def _enable(path: Path, sign: str = "+") -> None:
    """Enable controllers for the children of a cgroup, or disable them."""
    there = (path / "cgroup.controllers").read_text().split()
    wanted = " ".join(sign + name for name in ("memory", "pids") if name in there)
    _write(path / "cgroup.subtree_control", wanted)


def _remove_stale(own: Path) -> None:
    """Remove what workers left that were killed."""
    for base in own.glob(f"{PREFIX}*"):
        if not Path("/proc", base.name.removeprefix(PREFIX)).exists():
            for path in (*base.glob("*/*/"), *base.glob("*/"), base):
                with contextlib.suppress(OSError):
                    path.rmdir()


def _remove(path: Path) -> bool:
    for _ in range(TRIES):
        with contextlib.suppress(OSError):
            path.rmdir()
        if not path.exists():
            return True
        time.sleep(PAUSE)
    return False


def _write(path: Path, value: int | str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)  # never creates it
    try:
        os.write(file, str(value).encode())
    finally:
        os.close(file)


def _count(path: Path, name: str) -> int:
    """Return the number after a name in a file; of a file with one number, that."""
    with contextlib.suppress(OSError, ValueError):
        words = path.read_text().split()
        return int(words[words.index(name) + 1] if len(words) > 1 else words[0])
    return 0
