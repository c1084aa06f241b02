"""Running graphs: kernels by role, plans, and the interpreter."""

from mplang_core.runtime.codec import Codec, codecs, decode, encode
from mplang_core.runtime.interpreter import Interpreter, KernelContext, Listener
from mplang_core.runtime.kernels import (
    Kernel,
    KernelTable,
    Role,
    host_kernels,
    kernel,
    launch_kernels,
    worker_kernels,
)
from mplang_core.runtime.plan import Plan, Step

__all__ = [
    "Codec",
    "Interpreter",
    "Kernel",
    "KernelContext",
    "KernelTable",
    "Listener",
    "Plan",
    "Role",
    "Step",
    "codecs",
    "decode",
    "encode",
    "host_kernels",
    "kernel",
    "launch_kernels",
    "worker_kernels",
]
