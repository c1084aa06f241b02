"""Running graphs: kernels by role, plans, and the interpreter."""

from mplang_core.runtime.codec import Codec, codecs, decode, encode, type_of
from mplang_core.runtime.interpreter import Interpreter, KernelContext, Listener, joined
from mplang_core.runtime.kernels import (
    Kernel,
    KernelTable,
    Role,
    host_kernels,
    kernel,
    worker_kernels,
)
from mplang_core.runtime.plan import Plan, Step
from mplang_core.runtime.recording import LinkUse, Recording
from mplang_core.runtime.spans import Recorder, Span, now

__all__ = [
    "Codec",
    "Interpreter",
    "Kernel",
    "KernelContext",
    "KernelTable",
    "LinkUse",
    "Listener",
    "Plan",
    "Recorder",
    "Recording",
    "Role",
    "Span",
    "Step",
    "codecs",
    "decode",
    "encode",
    "host_kernels",
    "joined",
    "kernel",
    "now",
    "type_of",
    "worker_kernels",
]
