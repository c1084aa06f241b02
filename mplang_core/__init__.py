"""mplang: one Python program over the private data of several parties.

::

    import mplang_core as mp

    cluster = mp.ClusterSpec.simple(2)
    with mp.Simulator(cluster) as sim:
        result = mp.evaluate(sim, program, *args)
        print(mp.fetch(sim, result))

A backend is reached as ``mp.connect("simulator", cluster)``, and by its name with a capital
letter: ``mp.Simulator(cluster)``.
"""

from typing import Any

from mplang_core import analysis, artifact, errors, introspect, ir, simp
from mplang_core.device import ClusterSpec, DeviceSpec, Node, device, put, reveal, seal
from mplang_core.driver import CompiledFunction, compile, evaluate, fetch, record
from mplang_core.edsl import (
    InterpContext,
    InterpVar,
    MPObject,
    TraceContext,
    TracedFunction,
    TraceVar,
    apply,
    builtin_function,
    constant,
    cur_ctx,
    function,
    invoke,
    launch,
    peval,
    trace,
    with_ctx,
)
from mplang_core.errors import MPLangError
from mplang_core.feop import (
    FeBuilder,
    FeProgram,
    FeSignature,
    PFunction,
    fe_materialize,
    feop,
    is_feop,
    registry,
    simple_op,
)
from mplang_core.ir import Program, parse, verify
from mplang_core.live import watch
from mplang_core.mask import Mask
from mplang_core.plugins import plugin_manager as _plugin_manager
from mplang_core.runtime import Recording, Span, kernel
from mplang_core.simp import connect, pconv, pshfl, pshfl_s, uniform_cond, while_loop
from mplang_core.types import BaseType, DType, Form, MPType, TableType, TensorType

__version__ = "0.1.0"

__all__ = [
    "BaseType",
    "ClusterSpec",
    "CompiledFunction",
    "DType",
    "DeviceSpec",
    "FeBuilder",
    "FeProgram",
    "FeSignature",
    "Form",
    "InterpContext",
    "InterpVar",
    "MPLangError",
    "MPObject",
    "MPType",
    "Mask",
    "Node",
    "PFunction",
    "Program",
    "Recording",
    "Span",
    "TableType",
    "TensorType",
    "TraceContext",
    "TraceVar",
    "TracedFunction",
    "analysis",
    "apply",
    "artifact",
    "builtin_function",
    "compile",
    "connect",
    "constant",
    "cur_ctx",
    "device",
    "errors",
    "evaluate",
    "fe_materialize",
    "feop",
    "fetch",
    "function",
    "introspect",
    "invoke",
    "ir",
    "is_feop",
    "kernel",
    "launch",
    "parse",
    "pconv",
    "peval",
    "pshfl",
    "pshfl_s",
    "put",
    "record",
    "registry",
    "reveal",
    "seal",
    "simp",
    "simple_op",
    "trace",
    "uniform_cond",
    "verify",
    "watch",
    "while_loop",
    "with_ctx",
]

_plugin_manager.connect()

for _function in (put, seal, reveal):  # seed 003 names them here too; they are of a higher layer
    setattr(simp, _function.__name__, _function)


def __dir__() -> list[str]:
    """List what is here, the hosts of the backends that are installed among it."""
    from mplang_core.simp.backend import backends

    return sorted({*globals(), *(name.capitalize() for name in backends.known())})


def __getattr__(name: str) -> Any:
    """Find a backend's host by its name with a capital letter, ``mp.Simulator``."""
    if name[:1].isupper():
        from mplang_core.simp.backend import backends, get_backend

        if name.lower() in backends or name == "Simulator":
            return get_backend(name.lower()).host
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
