"""Runtime: kernels by role, execution plans, interpreter, codecs and listeners."""

from mplang_core.runtime.codec import (
    Codec as Codec,
    codecs as codecs,
    decode as decode,
    encode as encode,
)
from mplang_core.runtime.interpreter import (
    Interpreter as Interpreter,
    KernelContext as KernelContext,
)
from mplang_core.runtime.kernels import (
    Kernel as Kernel,
    Role as Role,
    add_kernel as add_kernel,
    host_kernels as host_kernels,
    kernel as kernel,
    native_of as native_of,
    native_ops as native_ops,
    worker_kernels as worker_kernels,
)
from mplang_core.runtime.listener import Listener as Listener
