"""Source lines of the user, found in stacks and tracebacks."""

from __future__ import annotations

import functools
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from mplang_core.errors import MPLangError, TraceError
from mplang_core.ir.graph import Location

_LIBRARIES = "jax jaxlib matplotlib numpy optree pandas polars pyarrow scipy seaborn sklearn"
_SKIPPED = {*sys.stdlib_module_names, *_LIBRARIES.split()}


def skip_package(module: str) -> None:
    """Exclude a package from source lines, as a part of the framework.

    A compiler calls it for an engine that is Python code; else errors have lines of the engine.

    Args:
        module: the name of the package or of a module in it.
    """
    _SKIPPED.add(module.partition(".")[0])
    is_skipped.cache_clear()


@functools.lru_cache(maxsize=4096)
def is_skipped(module: str) -> bool:
    """Return whether a module belongs to the framework, a plugin or one of their libraries."""
    package = module.partition(".")[0]
    return package in _SKIPPED or package.startswith("mplang_")


def caller() -> Location | None:
    """Return the innermost line of the user on the stack, ``None`` if there is none."""
    return next(_lines_of_user(traceback.walk_stack(sys._getframe(1))), None)


def raised(error: BaseException) -> str:
    """Return the innermost line of the user in a traceback as the prefix of a message.

    Args:
        error: a raised error; without such a line, :func:`at` is returned.
    """
    lines = list(_lines_of_user(traceback.walk_tb(error.__traceback__)))
    return f"{lines[-1]}: " if lines else at()


def _lines_of_user(frames: Iterable[tuple[FrameType, int]]) -> Iterator[Location]:
    for frame, line in frames:
        if not is_skipped(frame.f_globals.get("__name__", "")):
            code = frame.f_code
            yield Location(os.fspath(code.co_filename), line, code.co_qualname, None)


class trace_errors:  # noqa: N801
    """Context manager that raises errors of others as a :class:`TraceError` with the user's line.

    Args:
        what: comes before the reason: the feop that failed, or what is expected.

    Raises:
        TraceError: for such an error; it names the class of one that no declaration raises.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        """Raise the error as one of mplang's, unless it is."""
        if isinstance(error, Exception) and not isinstance(error, MPLangError):
            is_refusal = isinstance(error, TypeError | ValueError | IndexError)
            reason = error if is_refusal else f"{type(error).__name__}: {error}"
            raise TraceError(f"{raised(error)}{self._what}: {reason}") from error


def at() -> str:
    """Return the user's line as the prefix of a message: ``"demo.py:12: "``; empty if unknown."""
    location = caller()
    return f"{location}: " if location is not None else ""


def warn(text: str, category: type[Warning], line: Location | None = None) -> None:
    """Warn at a line of the user, which is shown as in errors; a class with a code names its page.

    Args:
        text: the message.
        category: the class of the warning.
        line: where; the innermost line of the user on the stack by default.
    """
    line = line or caller() or Location("<mplang>", 1)
    if ", " in str(line) and warnings.formatwarning is not _formatted:  # not a file
        _formatted.others = warnings.formatwarning  # type: ignore[attr-defined]
        warnings.formatwarning = _formatted  # type: ignore[assignment]
    hint = f"\nmplang explain {category.code}" if hasattr(category, "code") else ""
    warnings.warn_explicit(text + hint, category, line.file, line.line)


def _formatted(warned: object, category: object, file: str, lineno: int, *rest: object) -> str:
    """Return a warning as Python shows it, with the cell of a notebook in place of its file."""
    text: str = _formatted.others(warned, category, file, lineno, *rest)  # type: ignore[attr-defined]
    return text.replace(f"{file}:{lineno}", str(Location(file, lineno)), 1)
