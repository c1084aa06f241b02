"""Compilation, evaluation and fetching of programs."""

from __future__ import annotations

import functools
import inspect
import threading
import typing
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, cast, overload, runtime_checkable

from mplang_core.display import Displayed
from mplang_core.edsl import InterpVar, TraceContext, TracedFunction, TraceVar, apply, trace
from mplang_core.edsl.context import CatalogueEntry, Cluster, MPObject, given_catalogue
from mplang_core.edsl.trace_cache import fits, signature
from mplang_core.errors import ConfigError, DisclosureError, TraceError
from mplang_core.feop import flatten, unflatten
from mplang_core.ir import Program
from mplang_core.ir.source_line import at
from mplang_core.runtime import Listener
from mplang_core.simp.backend import get_backend
from mplang_core.simp.host import Mode, SimpHost
from mplang_core.tracebacks import of_user
from mplang_core.types import Form

K = TypeVar("K")
R = TypeVar("R")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class _Trace:
    """Traced function, with what it was traced for."""

    key: Hashable
    cluster: Cluster
    entries: Sequence[CatalogueEntry]
    tfn: TracedFunction

    def serves(self, key: Hashable, cluster: Cluster) -> bool:
        return (self.key == key or fits(self.key, key)) and self.cluster == cluster

    def check(self, catalogue: Any) -> None:
        """Raise ``TraceError`` where a catalogue differs in an entry that the program has read."""
        for entry in self.entries:
            if entry.is_in(catalogue):
                continue
            now: Any
            try:
                now = entry.read(catalogue)
            except (TypeError, ValueError) as error:
                now = error
            raise TraceError(
                f"{at()}{self.tfn.name} was compiled for {entry.what}: {entry.value}; where it is "
                f"to run now: {now}. mplang runs what was compiled, or nothing; compile the "
                "function again, by mp.compile(fn)",
                code="T005",
            )


class CompiledFunction(Displayed, Generic[R]):
    """Function with a cache of traces, one per signature of arguments and cluster.

    What was traced once is what runs on each host, so that what was reviewed is what runs: a
    host whose catalogue differs in what the program has read of it is refused.

    Attributes:
        fn: the function.
        cluster_spec: its cluster; ``None`` for the cluster of the host that evaluates it.
    """

    def __init__(self, fn: Callable[..., R], cluster_spec: Cluster | None) -> None:
        if not callable(fn):
            raise TraceError(f"{at()}expected a function, before its arguments, got {_named(fn)}")
        self.fn = fn
        self.cluster_spec = cluster_spec
        self._catalogue = given_catalogue.get()
        self._traced: list[_Trace] = []
        self._lock = threading.Lock()
        functools.update_wrapper(cast(Any, self), fn)

    @of_user
    def trace(self, parent: SimpHost | None, *args: Any, **kwargs: Any) -> TracedFunction:
        """Return the traced function for a signature; trace it if the cache has none.

        Args:
            parent: the host whose values the function may capture, and whose catalogue describes
                the data sets that it names; ``None`` for none.
            *args: values, arrays, types or literals. What was traced for a type serves all values
                of that type.
            **kwargs: the same by keyword.

        Raises:
            TraceError: no cluster is known, the host has another one or other data sets, or the
                function cannot be traced.
        """
        cluster = self.cluster_spec
        if parent is not None:
            cluster = cluster or parent.cluster_spec
            if cluster != parent.cluster_spec:
                raise TraceError(
                    f"{at()}{self.fn.__name__} was compiled for another cluster than the "
                    "one that it is to run on; compile it for that one",
                    code="T005",
                )
        if cluster is None:
            raise TraceError(
                f"{at()}compile needs the cluster, as in mp.compile(fn, *args, cluster_spec=…)"
            )
        known = (given_catalogue.get(), self._catalogue, getattr(parent, "catalogue", None))
        catalogue = next((each for each in known if each is not None), None)
        key = signature(args, kwargs, cluster.mask)
        with self._lock:
            found = next((each for each in self._traced if each.serves(key, cluster)), None)
            if found is None:
                root = TraceContext(cluster, parent)
                root.catalogue, root.entries = catalogue, []
                tfn = trace(root, self.fn, *args, **kwargs)
                self._traced.append(found := _Trace(key, cluster, root.entries, tfn))
            elif parent is not None or catalogue is not None:
                found.check(catalogue)
            if catalogue is not None:
                catalogue.check_program(found.tfn.program, cluster)
            return found.tfn

    if not typing.TYPE_CHECKING:  # to which a call is an error

        def __call__(self, *args: object, **kwargs: object) -> None:
            """Refuse a call, which names no host."""
            raise TraceError(f"{at()}a program runs on a host: mp.evaluate(host, compiled, x)")

    def __repr__(self) -> str:
        times = "once" if len(self._traced) == 1 else f"{len(self._traced)} times"
        return f"<CompiledFunction {self.fn.__name__!r}, traced {times}>"

    @property
    def traces(self) -> list[TracedFunction]:
        """The traced functions so far: one for each signature."""
        return [each.tfn for each in self._traced]

    @property
    def traced(self) -> TracedFunction:
        """The traced function, if it was traced for exactly one signature, or takes no arguments.

        Raises:
            TraceError: it was not traced yet, or for several signatures.
        """
        if not self._traced and not inspect.signature(self.fn).parameters:
            return self.trace(None)
        if len(self._traced) != 1:
            raise TraceError(
                f"{at()}{self.fn.__name__} was traced for {len(self._traced)} kinds of arguments; "
                "compile it with the arguments, or use .trace(None, *args).program",
                code="T005",
            )
        return self._traced[0].tfn

    @property
    def program(self) -> Program:
        """The program of :attr:`traced`, under the same condition."""
        return self.traced.program

    def compiler_ir(self) -> str:
        """Return the program as text; see :attr:`program`."""
        return str(self.program)


@runtime_checkable
class Runnable(Protocol):
    """Program in another form, such as an artifact, which knows how it runs."""

    def run(self, host: SimpHost, *args: object, **kwargs: object) -> object:
        """Run it on a host, as :func:`evaluate` does."""


def _named(value: object) -> str:
    """Return what was given, without what may be data."""
    return repr(value) if isinstance(value, MPObject) else f"a {type(value).__name__}"


@of_user
def compile(
    fn: Callable[..., R],
    *args: Any,
    cluster_spec: Cluster | None = None,
    backend: str | None = None,
    **kwargs: Any,
) -> CompiledFunction[R]:
    """Compile a function of multi-party values.

    Args:
        fn: the function.
        *args: arguments to trace it for: arrays, numbers, or an ``MPType`` each. Without
            any, the function is traced at its first evaluation.
        cluster_spec: the cluster of the program.
        backend: the name of a backend that must be installed. The program does not depend on it.
        **kwargs: the same by keyword.

    Returns:
        The compiled function.

    Raises:
        TraceError: the function cannot be traced; shows its line.
        PluginLoadError: the backend is not installed.

    Example:
        >>> import mplang_core as mp
        >>> kind = mp.MPType(mp.TensorType("f32", (3,)), mp.Mask.of(0))
        >>> compiled = mp.compile(lambda x: x, kind, cluster_spec=mp.ClusterSpec.simple(2))
        >>> [str(value.type) for value in compiled.program.graph.outputs]
        ['f32[3]@{0}']
    """
    if backend is not None:
        get_backend(backend)
    compiled = CompiledFunction(fn, cluster_spec)
    if args or kwargs:
        compiled.trace(None, *args, **kwargs)
    return compiled


@overload
def evaluate(
    host: SimpHost,
    program: Program | TracedFunction | Runnable,
    *args: Any,
    mode: Mode | None = None,
    listener: Listener | None = None,
    check: Literal["simulator"] | None = None,
    **kwargs: Any,
) -> Any: ...
@overload
def evaluate(
    host: SimpHost,
    program: CompiledFunction[R] | Callable[..., R],
    *args: Any,
    mode: Mode | None = None,
    listener: Listener | None = None,
    check: Literal["simulator"] | None = None,
    **kwargs: Any,
) -> R: ...
@of_user
def evaluate(
    host: SimpHost,
    program: CompiledFunction[Any] | TracedFunction | Program | Runnable | Callable[..., Any],
    *args: Any,
    mode: Mode | None = None,
    listener: Listener | None = None,
    check: Literal["simulator"] | None = None,
    **kwargs: Any,
) -> Any:
    """Run a program on a host.

    Args:
        host: ``mp.Simulator(cluster)`` or the host of another backend.
        program: a compiled or traced function, a program as ``mp.parse`` returns it, which takes
            one argument for each input, an artifact, or a Python function, which is traced first.
        *args: values of that host, or arrays and numbers, which are public: an array of more than
            64 elements shows a ``LiteralWarning``, unless :func:`mplang_core.public` returned it.
        mode: ``"standard"``: the host submits the program op by op. ``"launch"``: the host
            submits it to all parties as a whole. The results are the same.
        listener: notified of each op in standard mode.
        check: ``"simulator"``: the program runs on a simulator first, on synthetic data of the
            declared schemas and ranges, and nothing is sent before that is done. A number that is
            wrong there shows a ``PrecisionWarning`` with its line; an error ends the evaluation.
        **kwargs: the same by keyword.

    Returns:
        The result of the function. Its leaves are references to values at the parties.

    Raises:
        TraceError: the function cannot be traced, or takes other arguments.
        PartyError: a party failed while it ran; names the party, the op and the line.
    """
    if not isinstance(host, SimpHost):
        raise ConfigError(
            f"{at()}evaluate runs on a host, such as mp.Simulator(cluster), got a "
            f"{type(host).__name__}",
            code="C002",
        )
    if isinstance(program, Runnable):
        with host.options(mode=mode, listener=listener, check=check):
            return program.run(host, *args, **kwargs)
    if isinstance(program, TracedFunction | Program):
        tfn = TracedFunction.of(program) if isinstance(program, Program) else program
    else:
        if not isinstance(program, CompiledFunction):
            program = CompiledFunction(program, None)
        tfn = program.trace(host, *args, **kwargs)
    with host.options(mode=mode, listener=listener, check=check):
        return apply(host, tfn, *args, **kwargs)


@overload
def fetch(host: SimpHost, x: tuple[Any, ...]) -> tuple[Any, ...]: ...
@overload
def fetch(host: SimpHost, x: list[V]) -> list[Any]: ...
@overload
def fetch(host: SimpHost, x: dict[K, Any]) -> dict[K, Any]: ...
@overload
def fetch(host: SimpHost, x: object) -> Any: ...
@of_user
def fetch(host: SimpHost, x: Any = ...) -> Any:
    """Return the data of values.

    Args:
        host: the host that the values belong to.
        x: a nest of values.

    Returns:
        The same nest of data. A value on a device becomes its data. Any other value becomes
        a list with one entry per rank, ``None`` for a party that does not hold it.

    Raises:
        DisclosureError: a value is not plain; reveal it in the program.
        TraceError: a leaf is not a value of that host, or no host is given.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, lambda: mp.constant(7, parties=1)))
        [None, array(7)]
    """
    leaves, spec = flatten(x)
    return unflatten(spec, [_fetch(host, leaf) for leaf in leaves])


def _fetch(host: SimpHost, leaf: Any) -> Any:
    if isinstance(leaf, TraceVar):
        raise TraceError(
            f"{at()}{leaf!s} is in a program that has not run; evaluate it first", code="T004"
        )
    if not (isinstance(leaf, InterpVar) and isinstance(host, SimpHost)):
        names = ", ".join("nothing" if x is ... else type(x).__name__ for x in (host, leaf))
        how = "fetch gets a host and what evaluate gave there, as in mp.fetch(host, result)"
        raise TraceError(f"{at()}{how}; got {names}")
    host.adopt(leaf)
    if (form := leaf.base_type.form) is not Form.PLAIN:
        opens = leaf.device is not None and leaf.device.kind.form is form
        how = "mp.reveal it" if opens else "return the plain result of an op that opens or uses it"
        raise DisclosureError(
            f"{at()}{leaf!s} is a {form.value}; secret values cannot be fetched. Instead, {how}",
            code="D003",
        )
    if leaf.value.kept:
        raise DisclosureError(
            f"{at()}{leaf!s} was kept by mp.keep: it is for the session's next programs, and not "
            "fetched. Return it from a program without mp.keep, if the host may know it",
            code="D003",
        )
    values = host.fetch(leaf.value)
    return values if leaf.device is None else next((v for v in values if v is not None), None)
