"""Questions of a worker's engines to its front, as sections of its configuration take them.

The types are those of ``mplang_worker.ext``, which this package does not import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

Ask: TypeAlias = Callable[
    [str, Mapping[str, Any], Sequence[int]], tuple[Mapping[str, Any], Sequence[int]]
]
"""Question of an engine: method, arguments and open files; returns fields and open files."""

Answer: TypeAlias = tuple[dict[str, Any], Sequence[int], Callable[[], None] | None]
"""Answer of the front: fields, open files, and what is called in a thread once it was sent."""


class Asker(Protocol):
    """Session whose engine asks."""

    @property
    def coordinator(self) -> str:
        """Name of its coordinator."""

    @property
    def session(self) -> str:
        """Name of the session, which no other has."""

    @property
    def parties(self) -> Sequence[str]:
        """Names of its parties, by rank."""

    @property
    def rank(self) -> int:
        """Rank of this party."""
