"""Logs how long each matcher runs, for ``bench_match.py``; imported by workers."""

from __future__ import annotations

import logging
import time
from typing import Any

from mplang_match import service

log = logging.getLogger("mplang.bench")
_run = service.run_matcher


def _timed(*args: Any) -> Any:
    begin = time.perf_counter()
    try:
        return _run(*args)
    finally:
        log.warning("matched in %.6f s", time.perf_counter() - begin)


service.run_matcher = _timed
