"""Workloads of the SPU benchmarks."""

from __future__ import annotations

import contextlib
import socket

import jax
import jax.numpy as jnp
import numpy as np


def f32(*shape: int) -> np.ndarray:
    """Return some numbers."""
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def step(x, y, w):
    """One step of logistic regression."""
    return w - 0.1 * x.T @ (jax.nn.sigmoid(x @ w) - y) / 256


def ten_steps(x, y, w):
    """Ten of them."""
    for _ in range(10):
        w = step(x, y, w)
    return w


REGRESSION = f32(256, 16), f32(256), f32(16)
WORK = {
    "compare": (lambda x, y: x > y, (f32(), f32())),
    "argmax of 1,000": (lambda x: jnp.argmax(x), (f32(1000),)),
    "64×64 matmul": (lambda x, y: x @ y, (f32(64, 64), f32(64, 64))),
    "256×256 matmul": (lambda x, y: x @ y, (f32(256, 256), f32(256, 256))),
    "logistic regression step": (step, REGRESSION),
    "ten steps of it": (ten_steps, REGRESSION),
}


def free_addresses(count: int) -> list[str]:
    """Return addresses on loopback where nobody listens."""
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in taken:
            sock.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{sock.getsockname()[1]}" for sock in taken]
