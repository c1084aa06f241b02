"""Ops that wait for a test, for workers that import this module: nothing is a matter of time."""

from __future__ import annotations

import logging
import os
from typing import Any

from mplang_testing.waiting import wait_until

import mplang_core as mp
from mplang_core.errors import RunError

log = logging.getLogger("mplang.tests.gated")


@mp.simple_op("gated.wait", reads=())
def wait(x: mp.TensorType, *, gate: str) -> mp.TensorType:
    """Gives the operand back once the file ``gate`` is there."""
    return x


@mp.kernel("gated.wait")
def _wait(ctx: Any, x: Any, *, gate: str) -> Any:
    wait_until(lambda: os.path.exists(gate), gate)
    return x


@mp.simple_op("gated.fail", reads=())
def fail(x: mp.TensorType, *, gate: str) -> mp.TensorType:
    """Fails once the file ``gate`` is there."""
    return x


@mp.kernel("gated.fail")
def _fail(ctx: Any, x: Any, *, gate: str) -> Any:
    log.warning("gated.fail waits")
    wait_until(lambda: os.path.exists(gate), gate)
    raise RunError("the gate is open")


@mp.simple_op("gated.note", reads=())
def note(x: mp.TensorType, *, text: str) -> mp.TensorType:
    """Gives the operand back, and writes a text to the log of its worker."""
    return x


@mp.kernel("gated.note")
def _note(ctx: Any, x: Any, *, text: str) -> Any:
    log.warning("gated.note %s", text)
    return x
