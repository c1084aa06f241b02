"""A plugin whose kernels call libc in a process of its own: it reads numbers that peers send.

Workers import this module, and find its native services by the entry points of :data:`ENTRIES`.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np

import mplang_core as mp
from mplang_core.ext import NativeParty, NativeSpec, RunError, native_calls

ENTRIES = """[mplang.native]
toy = toy_native:TOY
toy_alone = toy_native:ALONE
toy_broken = toy_native:BROKEN
"""
NUMBER = mp.TensorType("i64")
STUCK = b"toy-stuck"  # name of a thread that hangs
PR_SET_NAME = 15


def install(folder: Path) -> None:
    """Make a folder on the import path have a package with the services."""
    info = folder / "mplang_toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mplang-toy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)


class Toy:
    """Native service of one party."""

    def __init__(self, party: NativeParty) -> None:
        self._comm = party.communicator
        self._libc = ctypes.CDLL(None)
        self._libc.strtoll.restype = ctypes.c_longlong

    def call(self, run: str, method: str, args: Any, buffers: Any) -> Any:
        if method == "sum":
            return {"total": self._sum(args["key"], args["parties"], bytes(buffers[0]))}, ()
        if method == "attempt":
            known: dict[str, Any] = {"os": os, "ctypes": ctypes, "hang": self._hang}
            exec(args["code"], known)
            return {"total": known["found"]}, ()
        raise RunError(f"no method {method}")

    def _sum(self, key: str, parties: list[int], mine: bytes) -> int:
        others = [rank for rank in parties if rank != self._comm.rank]
        for rank in others:
            self._comm.send(rank, key, mine)
        texts = [mine, *(bytes(self._comm.recv(rank, key)) for rank in others)]
        return sum(self._libc.strtoll(ctypes.c_char_p(text), None, 10) for text in texts)

    def _hang(self) -> None:
        self._libc.prctl(PR_SET_NAME, STUCK)
        self._libc.pause()

    def end_run(self) -> None:
        pass


TOY = NativeSpec(Toy, plain=True)
ALONE = NativeSpec(Toy, links=False)
BROKEN = 5


def _ask(ctx: Any, method: str, args: dict[str, Any], *buffers: bytes) -> np.int64:
    calls, worker = native_calls(ctx), ctx.interpreter
    if calls is None:  # all parties are in this process
        service = Toy(NativeParty(worker.communicator, worker.insecure, worker.timeout))
        answer, _ = service.call(ctx.run, method, args, buffers)
    else:
        answer, _ = calls.call(ctx.run, method, args, buffers)
    if type(answer.get("total")) is not int:
        raise RunError("toy answered no number")
    return np.int64(answer["total"])


@mp.simple_op("toy_native.sum", reads=("peers",))
def total(x: mp.TensorType) -> mp.TensorType:
    """Adds the numbers of the parties that run it."""
    return NUMBER


@mp.simple_op("toy_native.alone", reads=())
def alone(x: mp.TensorType) -> mp.TensorType:
    """Adds the numbers of the parties that run it, by a service that has no links."""
    return NUMBER


@mp.simple_op("toy_native.attempt", reads=())
def attempt(x: mp.TensorType, *, code: str) -> mp.TensorType:
    """Runs code in the process of the service, which sets ``found``."""
    return NUMBER


@mp.simple_op("toy_native.broken", reads=())
def broken(x: mp.TensorType) -> mp.TensorType:
    """Needs a service that is none."""
    return NUMBER


@mp.simple_op("toy_native.missing", reads=())
def missing(x: mp.TensorType) -> mp.TensorType:
    """Needs a service that no worker has."""
    return NUMBER


def _sum(ctx: Any, x: Any) -> np.int64:
    args = {"key": ctx.key, "parties": list(ctx.parties)}
    return _ask(ctx, "sum", args, str(int(x)).encode())


mp.kernel("toy_native.sum", native="toy")(_sum)
mp.kernel("toy_native.alone", native="toy_alone")(_sum)
mp.kernel("toy_native.broken", native="toy_broken")(_sum)
mp.kernel("toy_native.missing", native="toy_missing")(_sum)


@mp.kernel("toy_native.attempt", native="toy")
def _attempt(ctx: Any, x: Any, *, code: str) -> np.int64:
    return _ask(ctx, "attempt", {"code": code})
