"""Compiled code that outlives its process: what compilers ask before they compile.

A process has at most one cache of compiled code, that of whoever it works for: an analyst's own
process that of the analyst, and a worker's engine, through the front, that of its coordinator.
Nothing else of mplang loads native code that it has not just compiled.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import zlib
from pathlib import Path
from typing import Protocol

MAX_CODE = 1 << 20  # bytes that are kept of a code, compressed; a larger one is compiled each time
MAX_PLAIN = 64 << 20  # bytes that they may stand for
QUICK = 1  # level of zlib

_OF_A_CPU = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
_OF_AN_ARM = ("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features")
log = logging.getLogger("mplang.cache")


class CodeCache(Protocol):
    """Cache of compiled code; safe for threads, and silent: on failure, callers compile."""

    def get(self, key: str) -> bytes | None:
        """Return what was put; ``None`` if it is not there.

        Args:
            key: as :func:`code_key` gives it.
        """

    def put(self, key: str, code: bytes) -> None:
        """Store code.

        Args:
            key: as :func:`code_key` gives it.
            code: at most :data:`MAX_CODE` bytes.
        """

    def drop(self, key: str, why: str) -> None:
        """Forget a code that is of no use.

        Args:
            key: as :func:`code_key` gives it.
            why: for the log.
        """


_used: list[CodeCache] = []


def use_code_cache(cache: CodeCache | None) -> None:
    """Make this process keep compiled code from now on.

    Args:
        cache: where; ``None`` to keep none.
    """
    _used[:] = [] if cache is None else [cache]


def has_code_cache() -> bool:
    """Return whether this process keeps compiled code."""
    return bool(_used)


def code_key(kind: str, *parts: str | bytes) -> str:
    """Return the name of a compiled code: a SHA-256, in hexadecimal.

    Args:
        kind: the language that it is in.
        *parts: all that it depends on, such as the source, the version of the compiler, its options
            and, for native code, the :func:`machine`.

    Example:
        >>> code_key("native", "a", "bc") == code_key("native", "ab", "c")
        False
    """
    digest = hashlib.sha256()
    for part in (kind, *parts):
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def find_code(key: str) -> bytes | None:
    """Return the code that was kept under a key.

    Args:
        key: as :func:`code_key` gives it.
    """
    for cache in _used:
        packed = cache.get(key)
        if packed is None:
            continue
        unpack = zlib.decompressobj()
        try:
            code = unpack.decompress(packed, MAX_PLAIN)
        except zlib.error:
            code = b""
        if code and unpack.eof:
            return code
        cache.drop(key, "it is not compressed code")
    return None


def keep_code(key: str, code: bytes) -> None:
    """Store code, unless it is large.

    Args:
        key: as :func:`code_key` gives it.
        code: the code, which is not empty.
    """
    for cache in _used:
        packed = zlib.compress(code, QUICK)
        if len(packed) <= MAX_CODE and len(code) <= MAX_PLAIN:
            cache.put(key, packed)


def drop_code(key: str, why: str) -> None:
    """Forget a code that does not load.

    Args:
        key: as :func:`code_key` gives it.
        why: for the log.
    """
    for cache in _used:
        cache.drop(key, why)


def machine() -> str:
    """Return what native code of this machine depends on; empty if it cannot be read.

    It is to be asked before a process is confined.
    """
    try:
        first, _, _ = Path("/proc/cpuinfo").read_text().partition("\n\n")
    except OSError:
        return ""
    named = (line.partition(":") for line in first.splitlines())
    facts = {name.strip(): value.strip() for name, _, value in named}
    known = [facts.get(name, "") for name in (*_OF_A_CPU, *_OF_AN_ARM)]
    cores = len(os.sched_getaffinity(0))  # among which XLA divides a function
    return "\n".join([platform.machine(), str(cores), *known]) if any(known) else ""
