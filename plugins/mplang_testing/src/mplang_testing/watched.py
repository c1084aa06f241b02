"""Record of what a kernel reads of its party: data sets, and what Python opens."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mplang_analysis import DATA_SET

from mplang_core import TableType
from mplang_core.ext import worker_kernels

_HERE = threading.local()  # the record of the kernel that runs in this thread
_OPENS = {"open": "file", "os.listdir": "folder", "os.scandir": "folder"}
_OTHERS = {"sqlite3.connect": "database", "socket.connect": "socket", "subprocess.Popen": "process"}
_SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/usr", "/lib", "/bin", "/opt")


class Reads:
    """Reads of a kernel beside its operands.

    Attributes:
        names: data sets and columns, as a source of a label calls them.
        others: files, folders, sockets, databases and processes.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.others: set[str] = set()


@contextmanager
def watched(opcode: str) -> Iterator[Reads]:
    """Record what the kernel of an op at parties reads, in all interpreters of this process.

    Seen are data sets, and what Python opens outside of its packages and of the system's folders;
    not what native code opens.
    """
    kernel, provider = worker_kernels.get(opcode), worker_kernels.provider(opcode)
    reads = Reads()

    def recorded(ctx: Any, *args: Any, **attrs: Any) -> Any:
        assert kernel is not None
        party, data = ctx.interpreter, ctx.interpreter.data
        party.data, _HERE.reads = _DataSets(data, reads), reads
        try:
            return kernel(ctx, *args, **attrs)
        finally:
            party.data, _HERE.reads = data, None

    if kernel is None or provider is None:
        yield reads
        return
    _hook_once()
    worker_kernels.add(opcode, recorded, provider=provider, override=True)
    try:
        yield reads
    finally:
        worker_kernels.add(opcode, kernel, provider=provider, override=True)


class _DataSets:
    """The data sets of a party, which note what is read."""

    def __init__(self, data: Any, reads: Reads) -> None:
        self._data = data
        self._reads = reads

    def read(self, name: str, kind: Any, ranges: Any, *, perhaps: bool) -> Any:
        """Read a data set, or fail as if there were none."""
        columns = [f".{column}" for column, _ in kind.columns] if _is_table(kind) else [""]
        self._reads.names.update(f"{DATA_SET}{name}{column}" for column in columns)
        return self._data.read(name, kind, ranges, perhaps=perhaps)

    def __getattr__(self, name: str) -> Any:
        self._reads.others.add(f"the data sets, by {name}")
        return getattr(self._data, name)


def _is_table(kind: Any) -> bool:
    return isinstance(kind, TableType)


_hooked = threading.Lock()


def _hook_once() -> None:
    """Add the audit hook, which cannot be removed, and does nothing while no kernel is watched."""
    if _hooked.acquire(blocking=False):
        sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    reads = getattr(_HERE, "reads", None)
    if reads is None:
        return
    if event in _OPENS:
        path = args[0]
        if isinstance(path, str | bytes) and not _is_known(os.path.abspath(os.fsdecode(path))):
            reads.others.add(f"the {_OPENS[event]} {os.fsdecode(path)}")
    elif event in _OTHERS:
        reads.others.add(f"a {_OTHERS[event]}")


def _is_known(path: str) -> bool:
    """Return whether a path is Python's, a package's or the system's."""
    folders = [sys.prefix, sys.base_prefix, *_SYSTEM, *(each for each in sys.path if each)]
    return any(path == folder or path.startswith(f"{folder}{os.sep}") for folder in folders)
