"""Progress and durations of runs, as a worker reports them to its coordinator.

Times and numbers of bytes may depend on private data, and there is no rule about them. So a worker
in production tells results and failures, and nothing that a coordinator could measure by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mplang_core.ext import AbortedError

TOLD = ("run", "program", "state", "held", "error", "receipt")
"""Fields of a job's status that any coordinator gets."""


def told_status(status: Mapping[str, Any], *, observable: bool) -> dict[str, Any]:
    """Return the status of a job as its coordinator gets it.

    Args:
        status: as the worker has it.
        observable: whether its coordinator may watch runs.

    Example:
        >>> status = {"run": "s-1", "state": "running", "begun": 7.5, "at": {"op": "jax.run"}}
        >>> told_status(status, observable=False)
        {'receipt': '', 'run': 's-1', 'state': 'running', 'observable': False}
    """
    status = {"receipt": "", **status}
    if observable:
        return {**status, "observable": True}
    told = {name: each for name, each in status.items() if name in TOLD}
    error = told.get("error")
    if error is not None and error["kind"] == AbortedError.__name__:
        told["error"] = error | {"op": None, "location": None}  # where it was when it was stopped
    return {**told, "observable": False}
