"""Rows of sources in a memory file, which a confined process has written."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.ext import AdmissionError, KernelError
from mplang_data.apart import Watch, run_apart, unwatched
from mplang_data.description import SourceError

READER = "mplang_data.source_reader"
LATE = 5  # seconds that the process has to end by itself

_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def read_apart(
    request: Mapping[str, Any],
    files: Sequence[int],
    *,
    size: int,
    seconds: float,
    connects: bool,
    watch: Watch = unwatched,
) -> int:
    """Return what a confined process reads of sources, or what SQL over them gives it.

    Args:
        request: what :mod:`mplang_data.source_reader` is asked, but for ``seconds``.
        files: descriptors of the files that it has open.
        size: bytes that it may have in memory.
        seconds: time after which it is ended.
        connects: whether it connects to a server.
        watch: is given what ends it.

    Returns:
        Descriptor of a file of Arrow, or of NumPy, that nobody can change; the caller closes it.

    Raises:
        AdmissionError: the SQL may not run.
        KernelError: the query fails.
        SourceError: a source is not there, or does not hold what its owner says.
    """
    file = os.memfd_create("mplang-data", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        answer = run_apart(
            READER, {**request, "seconds": seconds}, [*files, file], size=size,
            seconds=seconds + LATE, watch=watch, connects=connects,
            kinds={each["kind"] for each in request["tables"].values()},
        )  # fmt: skip
        _check(answer)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
        # what is open for writing cannot be mapped once it is sealed
        return os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(file)


def _check(answer: Any) -> None:
    if not isinstance(answer, dict):  # a source may have taken the process over
        raise SourceError("it cannot be read: its reader process sent no answer")
    if "refused" in answer:
        raise AdmissionError(str(answer["refused"])[:2000], code="A002")
    if "failed" in answer:
        raise KernelError(str(answer["failed"])[:2000], code="R011")
