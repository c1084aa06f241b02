"""Ops that fail in as many ways as their operand tells, for workers that import this module."""

from __future__ import annotations

import os

import numpy as np
from mplang_testing.waiting import pause

import mplang_core as mp
from mplang_core.errors import KernelError, PrecisionError, RunError, VerifyError, WireError

FORGED = "\n2026-01-01 00:00:00,000 ERROR bob mplang.http.front: forged\r\x1b[31m\u202e\x85"


class PanicError(BaseException):
    """Error as libraries in Rust raise it, which is not an Exception."""


def _private(x, kind):
    return kind(f"the operand is {float(x)}, of 7 rows{FORGED}")


def _with_op(x):
    error = RunError(f"{x}")
    error.text = f"{x}"
    return error


WAYS = [
    lambda x: _private(x, KernelError),
    lambda x: _private(x, RunError),
    lambda x: _private(x, PrecisionError),
    lambda x: _private(x, WireError),
    lambda x: _private(x, VerifyError),
    lambda x: _private(x, ValueError),
    lambda x: _private(x, MemoryError),
    lambda x: _private(x, type("Class", (Exception,), {})),
    lambda x: _private(x, PanicError),
    lambda x: SystemExit(int(x)),
    lambda x: RecursionError(),
    _with_op,
]
RESULTS = [lambda x: np.zeros(3), lambda x: None, lambda x: (x, x), lambda x: object()]
COUNT = len(WAYS) + len(RESULTS)


@mp.simple_op("failing.fail")
def fail(x: mp.TensorType) -> mp.TensorType:
    """Fails in the way of its operand's number, modulo ``COUNT``; 0 and above."""
    return x


@mp.kernel("failing.fail")
def _fail(ctx, x):
    if x < 0:
        return x
    way = int(x) % COUNT
    if way < len(WAYS):
        raise WAYS[way](x)
    return RESULTS[way - len(WAYS)](x)


@mp.simple_op("failing.crash")
def crash(x: mp.TensorType) -> mp.TensorType:
    """Ends the engine where its operand is 0 or above."""
    return x


@mp.kernel("failing.crash")
def _crash(ctx, x):
    if x >= 0:
        os.kill(os.getpid(), 9)
    return x


@mp.simple_op("failing.late")
def late(x: mp.TensorType) -> mp.TensorType:
    """Fails after as many seconds as its operand tells."""
    return x


@mp.kernel("failing.late")
def _late(ctx, x):
    pause(float(x), "an op that takes its time before it fails")
    raise _private(x, RunError)
