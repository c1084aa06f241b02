"""Processes that ask a database: stdin says what for, and they print what failed."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from mplang_data.apart import duckdb_file
from mplang_data.description import SourceError

PR_SET_PDEATHSIG = 1


def connect(url: str, *, read_only: bool) -> Any:
    """Connect to a database.

    Args:
        url: URL of the database, as Ibis takes it.
        read_only: whether a DuckDB file that is not there is an error, and is not made.
    """
    backend, _, place = url.partition(":")
    if backend == "duckdb":
        return duckdb_file.connect(place, read_only=read_only)
    import ibis  # type: ignore[import-untyped]

    os.environ.setdefault("PGCONNECT_TIMEOUT", "30")  # seconds
    return ibis.connect(url)


def serve(work: Callable[[dict[str, Any], int], None], failure: str) -> None:
    """Do what stdin says, and print ``error``, which tells no data, and ``detail``, for the owner.

    Args:
        work: takes what is asked, and the descriptor of a file that this process has open.
        failure: the error, where it is not one of ours.
    """
    # a later one of the same parent, or of the next, must not meet this one
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    asked = json.load(sys.stdin)
    if os.getppid() != asked["parent"]:
        return
    told: dict[str, Any] = {"error": None, "detail": None}
    try:
        work(asked, int(sys.argv[1]))
    except SourceError as error:
        told = {"error": str(error), "detail": error.__cause__ and _detail(error.__cause__)}
    except Exception as error:  # of whatever asks it
        told = {"error": failure, "detail": _detail(error)}
    json.dump(told, sys.stdout)


def _detail(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
