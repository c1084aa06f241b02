"""Framework for multi-party computation: one Python program over private data of several parties.

::

    import mplang_core as mp

    cluster = mp.ClusterSpec.simple(2)
    with mp.Simulator(cluster) as sim:
        result = mp.evaluate(sim, program, *args)
        print(mp.fetch(sim, result))

``mp.connect("simulator", cluster)`` and ``mp.Simulator(cluster)`` return the host of a backend.
"""

from typing import TYPE_CHECKING, Any

from mplang_core import _extensions, errors as errors, ir as ir, simp as simp
from mplang_core.device import device as device, put as put, reveal as reveal, seal as seal
from mplang_core.driver import (
    CompiledFunction as CompiledFunction,
    compile as compile,
    evaluate as evaluate,
    fetch as fetch,
)
from mplang_core.edsl import (
    InterpContext as InterpContext,
    InterpVar as InterpVar,
    MPObject as MPObject,
    TraceContext as TraceContext,
    TracedFunction as TracedFunction,
    TraceVar as TraceVar,
    apply as apply,
    builtin_function as builtin_function,
    constant as constant,
    cur_ctx as cur_ctx,
    function as function,
    invoke as invoke,
    launch as launch,
    peval as peval,
    public as public,
    trace as trace,
    with_ctx as with_ctx,
)
from mplang_core.errors import MPLangError as MPLangError
from mplang_core.feop import (
    FeBuilder as FeBuilder,
    FeProgram as FeProgram,
    FeSignature as FeSignature,
    PFunction as PFunction,
    fe_materialize as fe_materialize,
    feop as feop,
    frontend as frontend,
    is_feop as is_feop,
    registry as registry,
    simple_op as simple_op,
)
from mplang_core.ir import Program as Program, verify as verify
from mplang_core.mask import Mask as Mask
from mplang_core.plugins import plugin_manager as _plugin_manager
from mplang_core.runtime import kernel as kernel
from mplang_core.simp import (
    connect as connect,
    keep as keep,
    pconv as pconv,
    pshfl as pshfl,
    pshfl_s as pshfl_s,
    uniform_cond as uniform_cond,
    while_loop as while_loop,
)
from mplang_core.types import (
    Attribute as Attribute,
    BaseType as BaseType,
    DType as DType,
    Form as Form,
    MPType as MPType,
    TableType as TableType,
    TensorType as TensorType,
)

if TYPE_CHECKING:  # found by __getattr__
    import mplang_analysis as analysis  # noqa: F401
    from mplang_cli import artifact as artifact, introspect as introspect, parse as parse
    from mplang_trace import Recording as Recording, Span as Span, record as record, watch as watch

    from mplang_core.device.cluster import (
        ClusterSpec as ClusterSpec,
        DeviceSpec as DeviceSpec,
        Node as Node,
    )

__version__ = "0.1.0"  # of all packages: each reads it here when it is built

_plugin_manager.connect()

for _function in (put, seal, reveal):  # seed 003 lists them in simp; their layer is above it
    setattr(simp, _function.__name__, _function)


def __dir__() -> list[str]:
    """Return the names of this module and of installed packages: backends, analysis, …."""
    return sorted({*globals(), *_extensions.names()})


def __getattr__(name: str) -> Any:
    """Return a name that another package provides: ``mp.Simulator``, ``mp.analysis``.

    Cluster classes are imported at their first use, since the import of pydantic is slow.
    """
    if name in ("ClusterSpec", "DeviceSpec", "Node"):
        from mplang_core.device import cluster

        return getattr(cluster, name)
    found = _extensions.find(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
