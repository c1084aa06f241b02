"""Ops that measure messages within a kernel; the workers of ``bench_http.py`` import them."""

from __future__ import annotations

import time

import numpy as np

import mplang_core as mp

WARM = 50


@mp.simple_op("wire.pingpong")
def pingpong(x: mp.TensorType, *, turns: int) -> mp.TensorType:
    """Return the seconds of each round trip of a tensor."""
    return mp.TensorType("f64", (turns,))


@mp.simple_op("wire.cpu")
def cpu(x: mp.TensorType, *, turns: int) -> mp.TensorType:
    """Return the CPU seconds of this party's process, all threads, per message of a tensor."""
    return mp.TensorType("f64", ())


@mp.simple_op("wire.stream")
def stream(x: mp.TensorType, *, turns: int) -> mp.TensorType:
    """Return the seconds per one-way message of a tensor."""
    return mp.TensorType("f64", (turns,))


@mp.simple_op("wire.copy")
def copy(x: mp.TensorType) -> mp.TensorType:
    """Copy a tensor."""
    return x


@mp.kernel("wire.copy")
def _copy(ctx, x):
    return x.copy()


@mp.kernel("wire.cpu")
def _cpu(ctx, x, *, turns):
    _round_trips(ctx, x, WARM)
    before = time.process_time()
    _round_trips(ctx, x, turns, WARM)
    ctx.interpreter.communicator.forget(ctx.key)
    return np.float64((time.process_time() - before) / (2 * turns))


@mp.kernel("wire.pingpong")
def _pingpong(ctx, x, *, turns):
    took = _round_trips(ctx, x, WARM + turns)
    ctx.interpreter.communicator.forget(ctx.key)
    return np.array(took[WARM:])


def _round_trips(ctx, x, turns, first=0):
    comm, key, took = ctx.interpreter.communicator, ctx.key, []
    for i in range(first, first + turns):
        begin = time.perf_counter()
        if comm.rank == 0:
            comm.send(1, f"{key}|{i}", x)
            comm.recv(1, f"{key}|{i}")
        else:
            comm.recv(0, f"{key}|{i}")
            comm.send(0, f"{key}|{i}", x)
        took.append(time.perf_counter() - begin)
    return took


@mp.kernel("wire.stream")
def _stream(ctx, x, *, turns):
    comm, key, took = ctx.interpreter.communicator, ctx.key, []
    for i in range(1 + turns):
        begin = time.perf_counter()
        if comm.rank == 0:
            comm.send(1, f"{key}|{i}", x)
            comm.recv(1, f"{key}|{i}")
        else:
            comm.recv(0, f"{key}|{i}")
            comm.send(0, f"{key}|{i}", b"done")
        took.append(time.perf_counter() - begin)
    comm.forget(key)
    return np.array(took[1:])
