"""An op that runs Python in a worker's engine: what code that got out of a kernel could do."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import threading
import time

import numpy as np

import mplang_core as mp

_libc = ctypes.CDLL(None, use_errno=True)


def syscall(*args):
    """Call the kernel, and raise what it refuses."""
    result = _libc.syscall(*args)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


@mp.simple_op("intruder.run", reads=())
def run(x: mp.TensorType, *, code: str) -> mp.TensorType:
    """Runs code; gives 0 where it ends, and the number of the error that the kernel raised."""
    return mp.TensorType("i64")


@mp.kernel("intruder.run")
def _run(ctx, x, *, code):
    names = {
        "ctypes": ctypes, "np": np, "os": os, "signal": signal, "socket": socket,
        "subprocess": subprocess, "syscall": syscall, "threading": threading, "time": time,
    }  # fmt: skip
    try:
        exec(code, names)
    except OSError as error:
        return np.int64(error.errno or -1)
    return np.int64(0)
