"""The end of a process that waits for none of its threads."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn


def end_process(code: int) -> NoReturn:
    """Exit with what was printed, and without Python's own steps at exit.

    A thread that returns from native code, of DuckDB for example, to an interpreter that has ended
    aborts the process. Workers wait for no such thread, and cannot interrupt it.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
