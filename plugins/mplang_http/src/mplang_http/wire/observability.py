"""What a worker tells its coordinator of a run while it runs, and of how long it took.

Times and numbers of bytes may depend on private data, and there is no rule about them. So a worker
in production tells results and failures, and nothing that a coordinator could measure by.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.ext import AbortedError, Location, caller

TOLD = ("run", "program", "state", "held", "error")
"""Fields of a job's status that any coordinator gets."""


def told_status(status: Mapping[str, Any], *, observable: bool) -> dict[str, Any]:
    """Return the status of a job as its coordinator gets it.

    Args:
        status: as the worker has it.
        observable: whether its coordinator may watch runs.

    Example:
        >>> status = {"run": "s-1", "state": "running", "begun": 7.5, "at": {"op": "jax.run"}}
        >>> told_status(status, observable=False)
        {'run': 's-1', 'state': 'running', 'observable': False}
    """
    if observable:
        return {**status, "observable": True}
    told = {name: status[name] for name in TOLD if name in status}
    error = told.get("error")
    if error is not None and error["kind"] == AbortedError.__name__:
        told["error"] = error | {"op": None, "location": None}  # where it was when it was stopped
    return {**told, "observable": False}


def not_observable(*names: str) -> str:
    """Return in words that workers cannot be watched.

    Example:
        >>> not_observable("bank")
        'worker bank is not observable: its owner tells no ops, times and bytes of runs'
        >>> not_observable("bank", "shop")
        'workers bank, shop are not observable: their owners tell no ops, times and bytes of runs'
    """
    if len(names) == 1:
        return (
            f"worker {names[0]} is not observable: its owner tells no ops, times and bytes of runs"
        )
    told = ", ".join(names)
    return f"workers {told} are not observable: their owners tell no ops, times and bytes of runs"


def warn_of_unobserved(names: Sequence[str]) -> None:
    """Warn at the user's line that a recording has nothing of some workers."""
    if names:
        line = caller() or Location("<mplang>", 1)
        text = f"{not_observable(*names)}, so the recording has none"
        warnings.warn_explicit(text, RuntimeWarning, line.file, line.line)
