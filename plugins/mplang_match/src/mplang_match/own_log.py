"""Log of a matching process: what libpsi writes of each step is left out."""

from __future__ import annotations

import faulthandler
import logging
import os
import sys


def leave_out_output() -> None:
    """Keep only records of Python's loggers, and crashes, in this process's log.

    libpsi and its library for traces write a hundred lines for a matching, to standard output and
    error, and cannot be told not to.
    """
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sys.stderr)
    faulthandler.enable(sys.stderr)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)
