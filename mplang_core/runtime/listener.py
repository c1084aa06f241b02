"""Protocol of observers of ops."""

from __future__ import annotations

from typing import Protocol

from mplang_core.ir import Operation


class Listener(Protocol):
    """Protocol of an observer of ops, such as a progress bar or a profiler.

    In standard mode the ops are those of the program and of the functions that it calls.
    """

    def op_started(self, op: Operation, index: int, total: int) -> None:
        """Handle the start of an op.

        Args:
            op: the op.
            index: its position in its graph, from 0.
            total: the number of ops of that graph.
        """

    def op_finished(self, op: Operation, index: int, total: int) -> None:
        """Handle the end of an op; not called for an op that fails."""
