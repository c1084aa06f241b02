"""Databases, which processes of their own ask: only these have the password."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from mplang_data.description import SourceError

TIMEOUT = 600.0  # seconds in which a database answers

__all__ = ["run_apart"]


def run_apart(module: str, asked: dict[str, Any], file: int) -> None:
    """Have a process of its own read or write a table, and wait for it.

    Args:
        module: what it runs, of this package.
        asked: what it is told, as plain data.
        file: descriptor of a file that it has open, too.

    Raises:
        SourceError: it does not, with what the database says as its cause.
    """
    command = [sys.executable, "-P", "-m", f"{__name__}.{module}", str(file)]
    try:
        done = subprocess.run(
            command, input=json.dumps(asked | {"parent": os.getpid()}).encode(),
            capture_output=True, pass_fds=[file],
            timeout=TIMEOUT, check=False, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SourceError(f"the database does not answer within {TIMEOUT:g} s") from None
    try:
        told = json.loads(done.stdout)
        public, detail = told["error"], told["detail"]
    except (ValueError, LookupError, TypeError):
        public, detail = "the process that asks it has ended", f"exit code {done.returncode}"
    if public is not None:
        raise SourceError(public) from (RuntimeError(detail) if detail else None)
