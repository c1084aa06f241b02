"""libspu's compiler, whose failure leaves its process in doubt.

Admission and lowering let nothing through at which it is known to fail, see
:mod:`mplang_spu.lowering.libspu_ops`. What fails all the same may have broken the heap. So a
process calls it no more after a failure, and the engine of a worker ends: it may not fork, so that
it cannot compile apart, and what it holds cannot be trusted any more.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Any

from mplang_cache import code_key, find_code, has_code_cache, keep_code

from mplang_core.ext import DamagedProcessError
from mplang_spu.libspu import libspu, version

_ADVICE = (
    "That may have harmed the memory of this process: save what you need, and start it again; "
    "please report the function"
)
_REASON = re.compile(r"error: (.*)|\[[^\]]*\] (.*)")  # of MLIR, and of libspu after its own line
STDERR = 2

_failures: list[str] = []
_printed: list[IO[bytes]] = []  # what stands for stderr, if something does
_one_at_a_time = threading.RLock()  # stderr is that of the process


def compile_text(text: str, visible: Sequence[Any]) -> bytes:
    """Compile lowered StableHLO to PPHLO.

    Args:
        text: what :func:`mplang_spu.lowering.lower` returns.
        visible: libspu's visibility of each operand.

    Returns:
        The code.

    Raises:
        DamagedProcessError: libspu fails, or failed before in this process.
    """
    if _failures:
        raise DamagedProcessError(f"libspu's compiler failed before: {_failures[0]}. {_ADVICE}")
    if not has_code_cache():
        return _compile(text, visible)
    key = code_key("pphlo", text, *map(str, visible), version)
    code = find_code(key)
    if code is None:
        code = _compile(text, visible)
        keep_code(key, code)
    return code


def _compile(text: str, visible: Sequence[object]) -> bytes:
    source = libspu.CompilationSource(libspu.SourceIRType.STABLEHLO, text, list(visible))
    try:
        code: bytes = libspu.compile(source, _options())
    except RuntimeError as error:
        _failures.append(_reason(f"{_read()}\n{error}"))
        raise DamagedProcessError(f"libspu's compiler failed: {_failures[0]}. {_ADVICE}") from error
    return code


def _options() -> Any:
    """Return options by which a sort is a sort, whatever part of it is used.

    libspu would select the part instead, by messages that tell how many elements are equal; and it
    fails at the parties where the part is the largest element, as in ``jnp.sort(x)[-1]``.
    """
    options = libspu.CompilerOptions()
    options.disable_partial_sort_optimization = True
    return options


def _reason(text: str) -> str:
    """Return the first line that tells why."""
    found = _REASON.search(text)
    return (found[1] or found[2]).strip()[:300] if found else "it does not say why"


def _read() -> str:
    if not _printed:
        return ""
    _printed[-1].seek(0)
    return _printed[-1].read().decode(errors="replace")


@contextlib.contextmanager
def stderr_in_errors() -> Iterator[None]:
    """Capture what native code prints to stderr, for a :class:`DamagedProcessError`.

    It is printed if there is no such error. For the process of a user alone: in that of a worker
    it belongs into the log, also if the process ends amid.
    """
    with _one_at_a_time, tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        kept = os.dup(STDERR)
        os.dup2(file.fileno(), STDERR)
        _printed.append(file)
        failures = len(_failures)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, STDERR)
            os.close(kept)
            if len(_failures) == failures:
                os.write(STDERR, _read().encode())
            _printed.pop()
