"""Framework for multi-party computation: one Python program over private data of several parties.

::

    import mplang_core as mp

    cluster = mp.ClusterSpec.simple(2)
    with mp.Simulator(cluster) as sim:
        result = mp.evaluate(sim, program, *args)
        print(mp.fetch(sim, result))

``mp.connect("simulator", cluster)`` and ``mp.Simulator(cluster)`` return the host of a backend.
"""

from functools import partial as _partial
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
    from mplang_core._installed import *  # noqa: F403
    from mplang_core.device.cluster import (
        ClusterSpec as ClusterSpec,
        DeviceSpec as DeviceSpec,
        Node as Node,
    )

__version__ = "0.1.0"  # of all packages: each reads it here when it is built

_LAZY = ("ClusterSpec", "DeviceSpec", "Node")

_plugin_manager.connect()

for _function in (put, seal, reveal):  # seed 003 lists them in simp; their layer is above it
    setattr(simp, _function.__name__, _function)


def __dir__() -> list[str]:
    """Return the names of this module and of installed packages: backends, analysis, …."""
    return sorted({*_public(globals()), *_LAZY, *_extensions.names(), "errors", "ir", "simp"})


def _public(names: dict[str, object]) -> list[str]:
    """Return what of the names of a module is not a module, not private, and not of Python."""
    hidden = {name for name, x in names.items() if name[0] == "_" or isinstance(x, type(ir))}
    return sorted(names.keys() - hidden - {"Any", "TYPE_CHECKING", "annotations"})


for _module in (errors, ir, simp):
    vars(_module)["__dir__"] = _partial(_public, vars(_module))


if not TYPE_CHECKING:  # to which a misspelt name is an error

    def __getattr__(name: str) -> Any:
        """Return a name that another package provides: ``mp.Simulator``, ``mp.analysis``.

        Cluster classes are imported at their first use, since the import of pydantic is slow.
        """
        if name in _LAZY:
            from mplang_core.device import cluster

            return getattr(cluster, name)
        if (value := _extensions.find(name)) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return value
