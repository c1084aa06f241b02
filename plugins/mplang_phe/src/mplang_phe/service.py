"""Native service of ``phe``: the library, in a process that has keys and no other data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.ext import Answer, KernelError
from mplang_phe import compute


class PheService:
    """Native service of one party, which talks to no other."""

    def call(
        self, run: str, method: str, args: Mapping[str, Any], buffers: Sequence[memoryview]
    ) -> Answer:
        """Run a method of :mod:`mplang_phe.compute`.

        Raises:
            KernelError: there is no such method, or an operand is none.
        """
        try:
            return {}, compute.run(method, args, buffers)
        except (ValueError, TypeError, LookupError, RuntimeError) as error:
            raise KernelError(f"phe.{method}: {error}", code="R017") from error

    def end_run(self) -> None:
        """Keep nothing of a run: tables of keys are those of the session."""
