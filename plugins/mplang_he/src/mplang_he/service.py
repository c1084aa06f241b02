"""Native service of ``he``: the library, in a process that has keys and plain operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.ext import Answer, KernelError

UNNAMED = (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError, MemoryError)
"""Errors of what is computed with, which are named for the op."""


class HeService:
    """Native service of one party, which talks to no other."""

    def call(
        self, run: str, method: str, args: Mapping[str, Any], buffers: Sequence[memoryview]
    ) -> Answer:
        """Run a method of :mod:`mplang_he.compute`, which is imported then.

        Raises:
            KernelError: there is no such method, or an operand is none.
        """
        from mplang_he import compute

        try:
            return compute.run(method, args, buffers)
        except UNNAMED as error:
            raise KernelError(f"he.{method}: {error}", code="R017") from error

    def end_run(self) -> None:
        """Keep nothing of a run: keys are those of the session."""
