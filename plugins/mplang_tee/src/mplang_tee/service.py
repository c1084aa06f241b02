"""Native service of ``tee``: verifies quotes, in a process that has no data of its party."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.ext import Answer, Buffer, KernelError
from mplang_tee import settings
from mplang_tee.provider import REPORT_BYTES
from mplang_tee.types import FILES_BYTES
from mplang_tee.verification import verify

FIELDS = {"enclave", "provider"}


class TeeService:
    """Native service of one party, which talks to no other.

    Args:
        insecure: whether its worker takes what proves nothing.
    """

    def __init__(self, insecure: bool) -> None:
        self._insecure = insecure

    def call(
        self, run: str, method: str, args: Mapping[str, Any], buffers: Sequence[Buffer]
    ) -> Answer:
        """Verify the quote of an enclave.

        Raises:
            KernelError: it is another enclave than the owner takes it for.
        """
        if method != "verify" or args.keys() != FIELDS or len(buffers) != 3:
            raise KernelError(f"tee.{method}: it verifies a quote over a statement", code="R013")
        names = args["enclave"], args["provider"]
        files, report, quote = map(bytes, buffers)
        sizes = len(files), len(report)
        if not all(isinstance(each, str) for each in names) or sizes != (FILES_BYTES, REPORT_BYTES):
            raise KernelError(
                f"tee.{method}: names are texts, digests have their sizes", code="R013"
            )
        evidence = verify(
            settings.current, *names, files, report, quote,
            seconds=int(time.time()), insecure=self._insecure,
        )  # fmt: skip
        registers = "".join(f", {name} {text}" for name, text in evidence.registers.items())
        advisories = f", advisories {' '.join(evidence.advisories)}" if evidence.advisories else ""
        return {"says": f"{evidence.status}{advisories}, files {files.hex()}{registers}"}, ()

    def end_run(self) -> None:
        """Keep nothing of a run."""
