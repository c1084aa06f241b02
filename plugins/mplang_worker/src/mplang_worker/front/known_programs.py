"""Cache of what programs do, as their checkers told the front: bounded in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from mplang_analysis import ProgramRequest

MAX_BYTES = 16 << 20


class KnownPrograms:
    """Programs of all coordinators whose facts are kept, and those used last. Safe for threads.

    A fact takes more bytes once it is decoded; decisions on a program are kept as long as it is.

    Args:
        most: bytes of their facts, as they came; the last one is kept whatever its size.
    """

    def __init__(self, most: int = MAX_BYTES) -> None:
        self._most = most
        self._known: OrderedDict[Hashable, tuple[ProgramRequest, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> ProgramRequest | None:
        """Return what a program does, if it is known."""
        with self._lock:
            if key not in self._known:
                return None
            self._known.move_to_end(key)
            return self._known[key][0]

    def add(self, key: Hashable, asked: ProgramRequest, size: int) -> ProgramRequest:
        """Keep what a program does; return what is known of it, the first that was added.

        Args:
            key: whose program it is, and the digest of its facts.
            asked: what it does.
            size: bytes of its facts.
        """
        with self._lock:
            if key in self._known:
                return self._known[key][0]
            self._known[key] = asked, size
            self._bytes += size
            while self._bytes > self._most and len(self._known) > 1:
                _, (_, gone) = self._known.popitem(last=False)
                self._bytes -= gone
            return asked
