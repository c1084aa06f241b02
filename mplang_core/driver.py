"""From a function to its results: compile, evaluate, fetch."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from mplang_core.edsl import InterpVar, TraceContext, TracedFunction, TraceVar, apply, trace
from mplang_core.edsl.trace_cache import signature
from mplang_core.errors import ConfigError, DisclosureError, TraceError
from mplang_core.feop import flatten, unflatten
from mplang_core.ir import Program
from mplang_core.ir.source_line import at
from mplang_core.runtime import Listener
from mplang_core.simp.backend import get_backend
from mplang_core.simp.host import Mode, SimpHost
from mplang_core.types import Form

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.device.cluster import ClusterSpec


class CompiledFunction:
    """A function that is traced once per kind of arguments.

    Attributes:
        fn: the function.
        cluster_spec: the cluster that it is for; the one of the first evaluation if ``None``.
    """

    def __init__(self, fn: Callable[..., Any], cluster_spec: ClusterSpec | None) -> None:
        self.fn = fn
        self.cluster_spec = cluster_spec
        self._traced: dict[Any, TracedFunction] = {}
        self._lock = threading.Lock()
        functools.update_wrapper(cast(Any, self), fn)

    def trace(self, parent: SimpHost | None, *args: Any, **kwargs: Any) -> TracedFunction:
        """Return the function as traced for such arguments.

        Args:
            parent: the host whose values it may capture.
            *args: values, arrays, types or literals.
            **kwargs: likewise.

        Raises:
            TraceError: no cluster is known, or the host has another one.
        """
        cluster = self.cluster_spec
        if parent is not None:
            cluster = cluster or parent.cluster_spec  # type: ignore[assignment]
            if cluster != parent.cluster_spec:
                raise TraceError(
                    f"{at()}{self.fn.__name__} was compiled for another cluster than the "
                    "one that it is to run on; compile it for that one"
                )
        if cluster is None:
            raise TraceError(
                f"{at()}compile needs the cluster, as in mp.compile(fn, *args, cluster_spec=…)"
            )
        key = signature(args, kwargs, cluster.mask)
        with self._lock:
            if key not in self._traced:
                root = TraceContext(cluster, parent)
                self._traced[key] = trace(root, self.fn, *args, **kwargs)
            return self._traced[key]

    def __repr__(self) -> str:
        return f"<CompiledFunction {self.fn.__name__!r}, traced {len(self._traced)} times>"

    @property
    def traced(self) -> TracedFunction:
        """The function as traced, where that was for one kind of arguments.

        Raises:
            TraceError: it was not traced yet, or for several kinds of arguments.
        """
        if len(self._traced) != 1:
            raise TraceError(
                f"{at()}{self.fn.__name__} was traced for {len(self._traced)} kinds of arguments; "
                "compile it with the arguments, or use .trace(None, *args).program"
            )
        return next(iter(self._traced.values()))

    @property
    def program(self) -> Program:
        """The program; see :attr:`traced`."""
        return self.traced.program

    def compiler_ir(self) -> str:
        """Return the program as text; see :attr:`program`."""
        return str(self.program)


def compile(
    fn: Callable[..., Any],
    *args: Any,
    cluster_spec: ClusterSpec | None = None,
    backend: str | None = None,
    **kwargs: Any,
) -> CompiledFunction:
    """Make a program of a function.

    Args:
        fn: the function, of multi-party values.
        *args: arguments to trace it for: arrays, numbers, or an ``MPType`` each. Without
            any, it is traced when it is first evaluated.
        cluster_spec: the cluster that it is for.
        backend: checked to be installed, if given; the program itself suits every backend.
        **kwargs: arguments by keyword.

    Raises:
        TraceError: the function cannot be traced; shows its line.
        PluginLoadError: there is no such backend.
    """
    if not callable(fn):
        raise TraceError(f"{at()}compile takes a function, got a {type(fn).__name__}")
    if backend is not None:
        get_backend(backend)
    compiled = CompiledFunction(fn, cluster_spec)
    if args or kwargs:
        compiled.trace(None, *args, **kwargs)
    return compiled


def evaluate(
    host: SimpHost,
    program: CompiledFunction | TracedFunction | Callable[..., Any],
    *args: Any,
    mode: Mode | None = None,
    listener: Listener | None = None,
    **kwargs: Any,
) -> Any:
    """Run a program.

    Args:
        host: where: ``mp.Simulator(cluster)`` or another backend's host.
        program: compiled, traced, or a function, which is traced now.
        *args: values of that host, or arrays and numbers, which become public.
        mode: ``"standard"``: the host goes through the program op by op. ``"launch"``: the
            parties get it whole. The results are the same.
        listener: is told of each op in standard mode.
        **kwargs: arguments by keyword.

    Returns:
        What the function returns; the leaves are values at the parties.

    Raises:
        TraceError: the function cannot be traced, or takes other arguments.
        PartyError: a party failed while it ran; names the party, the op and the line.
    """
    if not isinstance(host, SimpHost):
        raise ConfigError(
            f"{at()}evaluate runs on a host, such as mp.Simulator(cluster), got a "
            f"{type(host).__name__}"
        )
    if isinstance(program, TracedFunction):
        tfn = program
    else:
        if not isinstance(program, CompiledFunction):
            program = CompiledFunction(program, None)
        tfn = program.trace(host, *args, **kwargs)
    with host.options(mode=mode, listener=listener):
        return apply(host, tfn, *args, **kwargs)


def fetch(host: SimpHost, x: Any) -> Any:
    """Get the data of values.

    Args:
        host: where they are.
        x: a nest of values.

    Returns:
        The same nest. For a value on a device: its data. For a value of the parties: a list
        with one entry per party, ``None`` where a party holds none.

    Raises:
        DisclosureError: a value is protected; reveal it in the program.
        TraceError: it is no value of that host.
    """
    leaves, spec = flatten(x)
    return unflatten(spec, [_fetch(host, leaf) for leaf in leaves])


def _fetch(host: SimpHost, leaf: Any) -> Any:
    if isinstance(leaf, TraceVar):
        raise TraceError(f"{at()}{leaf!r} stands in a program that has not run; evaluate it first")
    if not isinstance(leaf, InterpVar):
        raise TraceError(f"{at()}fetch gets what evaluate gave, got a {type(leaf).__name__}")
    host.adopt(leaf)
    form = leaf.base_type.form
    if form is not Form.PLAIN:
        raise DisclosureError(
            f"{at()}{leaf!r} is a {form.value}; what is secret is not fetched. If its value may "
            "be known, mp.reveal it in the program"
        )
    values = host.fetch(leaf.value)
    if leaf.device is None:
        return values
    return next((value for value in values if value is not None), None)
