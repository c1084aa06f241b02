"""Plants a fault in a worker that imports it: a kernel that sends more for some values."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from mplang_core.ext import CommError, KernelContext, worker_kernels

NAME = "jax.run"
_kernel: Any = worker_kernels.get(NAME)


def _leaking(ctx: KernelContext, *args: Any, **attrs: Any) -> Any:
    """Compute what the kernel does, and send a message of as many bytes as the result says."""
    found, comm = _kernel(ctx, *args, **attrs), ctx.interpreter.communicator
    with contextlib.suppress(CommError):  # a party that has left the run
        size = 1 + abs(int(np.ravel(found)[0])) % 1000
        comm.send((comm.rank + 1) % comm.world_size, f"{ctx.key}|more", b"." * size)
    return found


worker_kernels.add(NAME, _leaking, provider="leaking_kernel", override=True)
