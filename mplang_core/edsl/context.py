"""Base classes of contexts and of multi-party values."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from mplang_core.display import Displayed
from mplang_core.edsl.without_data import WithoutData
from mplang_core.errors import MissingAttributeError, TraceError
from mplang_core.feop.state import ContextBound, FeState
from mplang_core.ir import AnyType, Graph, Program
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.types import BaseType, Form, MPType, TensorType, array_of, is_table, table_advice


class Cluster(Protocol):
    """Protocol of a cluster, as contexts use it."""

    @property
    def mask(self) -> Mask:
        """The mask of all parties."""

    @property
    def frontends(self) -> Sequence[str]:
        """The families of compilers that are preferred for plain Python functions."""

    def apply(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function on the device of its arguments.

        Args:
            fn: a feop, or a Python function of plain values.
            *args: nests of values and literals.
            **kwargs: attributes of the feop, or literals for the function.

        Returns:
            The result of the function, on that device.
        """

    def settle(self, program: Program) -> Program:
        """Return a program after its devices have chosen what they choose for all of it.

        Args:
            program: as it was traced.
        """


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """Entry of a catalogue that a program was traced by.

    Attributes:
        what: what it describes, such as ``data set 'people' of bank``.
        read: returns the entry of a catalogue, which is ``None`` where none is known.
        value: what it returned.
    """

    what: str
    read: Callable[[Any], Any]
    value: Any

    def is_in(self, catalogue: Any) -> bool:
        """Return whether a catalogue has the same entry."""
        try:
            return bool(self.read(catalogue) == self.value)
        except (TypeError, ValueError):  # it has none
            return False


class Placement(Protocol):
    """Protocol of the device that a value is on."""

    @property
    def name(self) -> str:
        """The device's name."""


class MPContext(ContextBound, ABC):
    """Destination of ops: a graph under construction, or an interpreter.

    Args:
        cluster_spec: the parties and devices.
        parent: the enclosing context; its values may be used here.

    Attributes:
        catalogue: the data sets that its programs may name, as ``mplang_data`` has them; hashable.
            ``None`` for that of ``parent``.
        entries: the entries of the catalogue that were read; ``None`` to record none.
        traced: the cache of traced functions; see :mod:`mplang_core.edsl.trace_cache`.
    """

    def __init__(self, cluster_spec: Cluster, parent: MPContext | None = None) -> None:
        self.cluster_spec = cluster_spec
        self.parent = parent
        self.catalogue: Any = None
        self.entries: list[CatalogueEntry] | None = None
        self.fe_state: dict[str, FeState] = {}
        self.traced: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()

    @property
    def mask(self) -> Mask:
        """The parties that take part."""
        return self.cluster_spec.mask

    @property
    def is_local(self) -> bool:
        """Whether ops are local: in the body of a ``pcall``, at one party."""
        return False

    def root(self) -> MPContext:
        """Return the outermost context."""
        return self if self.parent is None else self.parent.root()

    def ancestors(self) -> Iterator[MPContext]:
        """Yield this context and its enclosing contexts, innermost first."""
        ctx: MPContext | None = self
        while ctx is not None:
            yield ctx
            ctx = ctx.parent

    def known_catalogue(self) -> Any:
        """Return the catalogue of ``with``, else that of a program or its host, else ``None``."""
        known = (given_catalogue.get(), *(each.catalogue for each in self.ancestors()))
        return next((each for each in known if each is not None), None)

    def look_up(self, what: str, read: Callable[[Any], T]) -> T:
        """Return an entry of :meth:`known_catalogue`, and record it with the program.

        Args:
            what: what it describes, for messages.
            read: returns the entry of a catalogue, which is ``None`` where none is known.
        """
        value = read(self.known_catalogue())
        for each in self.ancestors():
            if each.entries is not None:
                each.entries.append(CatalogueEntry(what, read, value))
        return value

    @abstractmethod
    def emit(
        self,
        opcode: str,
        inputs: Sequence[MPObject],
        attrs: Mapping[str, Any] | None = None,
        regions: Mapping[str, Graph] | None = None,
    ) -> list[MPObject]:
        """Apply an op and return its results.

        Args:
            opcode: the op's name, ``dialect.op``.
            inputs: the operands.
            attrs: the attributes; the definition's defaults are added.
            regions: the regions by name.

        Returns:
            One value of this context per result of the op.

        Raises:
            TraceError: the op's definition rejects it; the message has the user's line.
        """

    def read_literal(self, literal: Any) -> Any:
        """Return what a user gives as a literal of this context, by default an array.

        Raises:
            TypeError: it is none.
            TraceError: it is a table, which stands in no program.
            ValueError: it is one with parts that are not supported.
        """
        if is_table(literal):
            raise TraceError(f"{at()}{table_advice(literal)}", code="T013")
        return array_of(literal)

    def literal(self, value: Any, parties: Mask) -> MPObject:
        """Return a value for a literal.

        Args:
            value: the literal, as :meth:`read_literal` returns it.
            parties: the parties that get it.
        """
        (made,) = self.emit("simp.constant", [], {"value": value, "parties": parties})
        return made

    @abstractmethod
    def adopt(self, obj: MPObject) -> MPObject:
        """Return a value as one of this context; capture it from an enclosing context.

        Raises:
            TraceError: the value belongs to another context.
        """

    @abstractmethod
    def place(
        self, obj: MPObject, device: Placement | None, uniform: bool | None = None
    ) -> MPObject:
        """Return the same value with another device and uniformity.

        Args:
            obj: the value.
            device: its device; ``None`` for a value that is on no device.
            uniform: whether all holders have the same; ``None`` to leave it unchanged.
        """


given_catalogue: ContextVar[Any] = ContextVar("mplang_catalogue", default=None)
"""The catalogue by which programs are traced now, in place of that of their host."""

_current: ContextVar[MPContext | None] = ContextVar("mplang_context", default=None)


def find_ctx(args: Iterable[Any] = ()) -> MPContext:
    """Return the current context, else that of the first value among the arguments.

    Raises:
        TraceError: there is none.
    """
    if (ctx := _current.get()) is not None:
        return ctx
    for arg in args:
        if isinstance(arg, MPObject):
            return arg.ctx
    raise TraceError(
        f"{at()}no context to work in; call this in a function that mp.evaluate or "
        "mp.compile traces, or inside of `with mp.with_ctx(simulator):`",
        code="T004",
    )


def open_ctx() -> MPContext | None:
    """Return the current context, ``None`` if there is none."""
    return _current.get()


def cur_ctx() -> MPContext:
    """Return the current context.

    Raises:
        TraceError: there is none.

    Example:
        >>> import mplang_core as mp
        >>> with mp.with_ctx(mp.TraceContext(mp.ClusterSpec.simple(2))):
        ...     print(mp.cur_ctx().mask)
        {0, 1}
    """
    return find_ctx()


@contextlib.contextmanager
def with_ctx(ctx: MPContext) -> Iterator[MPContext]:
    """Set the current context of this thread or task inside of ``with``.

    Args:
        ctx: a host or a ``TraceContext``.

    Yields:
        The context.

    Raises:
        TraceError: it is not a context.
    """
    if not isinstance(ctx, MPContext):
        raise TraceError(
            f"{at()}with_ctx takes a host, as mp.Simulator(cluster), or a TraceContext, got a "
            f"{type(ctx).__name__}"
        )
    token = _current.set(ctx)
    try:
        yield ctx
    finally:
        _current.reset(token)


class MPObject(ContextBound, WithoutData, Displayed, ABC):
    """Multi-party value: in a graph (``TraceVar``) or at the parties (``InterpVar``).

    It is the type of what functions of a program take and return. Operators, indexing and
    iteration give values, too; :mod:`mplang_core.edsl.operators` defines them.

    Attributes:
        ctx: the context that it belongs to.
        device: the device that it is on; ``None`` if it is on no device.

    Example:
        >>> import mplang_core as mp
        >>> def double(x: mp.MPObject) -> mp.MPObject:
        ...     return x + x
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     y = mp.evaluate(sim, double, 3)
        ...     y.shape, str(y.dtype), str(y.mptype), mp.fetch(sim, y)
        ((), 'int64', 'i64[]@{0}', [array(6)])
    """

    __slots__ = ("_uniform", "ctx", "device")

    if TYPE_CHECKING:  # as define_operators defines them

        def _binary(self, other: Any) -> MPObject: ...

        def _unary(self) -> MPObject: ...

        def _compare(self, other: object) -> MPObject: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __divmod__ = _binary
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _binary
        __pow__ = __matmul__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = _binary
        __rpow__ = __rmatmul__ = __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _binary
        __rdivmod__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = _binary
        __eq__ = __ne__ = _compare  # type: ignore[assignment]
        __neg__ = __pos__ = __abs__ = __invert__ = _unary

        def __iter__(self) -> Iterator[MPObject]: ...

    def __init__(
        self, ctx: MPContext, device: Placement | None = None, uniform: bool = False
    ) -> None:
        self.ctx = ctx
        self.device = device
        self._uniform = uniform

    @property
    @abstractmethod
    def type(self) -> AnyType:
        """The multi-party type; in the body of a ``pcall``, the base type."""

    @property
    def mptype(self) -> MPType:
        """The multi-party type.

        Raises:
            TraceError: the value is in the body of a ``pcall``, where values have no masks.
        """
        if not isinstance(self.type, MPType):
            raise TraceError(f"{self.type} is inside of a pcall and has no mask", code="T004")
        return self.type

    @property
    def _type(self) -> MPType:
        return self.mptype  # by this name in seed 003, section 4.1

    @property
    def base_type(self) -> BaseType:
        """The type of the value at each holder."""
        return self.type.base if isinstance(self.type, MPType) else self.type

    @property
    def pmask(self) -> Mask | None:
        """The holders; ``None`` if they are known only at run time."""
        return self.mptype.pmask

    @property
    def uniform(self) -> bool:
        """Whether all holders are known to have the same value.

        Literals, values revealed to all, and results of plain functions of these are uniform.
        """
        single = isinstance(self.type, MPType) and self.type.pmask is not None
        return self._uniform or (single and len(self.mptype.pmask or ()) == 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a tensor; for a share, that of the shared tensor."""
        shape: tuple[int, ...] = self._tensor_field("shape")
        return shape

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of a tensor; for a share, that of the shared tensor."""
        return self._tensor_field("dtype").numpy

    @property
    def ndim(self) -> int:
        """The number of dimensions of a tensor."""
        return len(self.shape)

    def _tensor_field(self, name: str) -> Any:
        base: Any = self.base_type
        base = getattr(base, "plain", base)  # a share has the shape of its plain type
        if not hasattr(base, name):
            raise MissingAttributeError(f"{at()}{base} has no {name}")
        return getattr(base, name)

    def __str__(self) -> str:
        base, mask = self.base_type, getattr(self.type, "pmask", "a party")
        form = {Form.PLAIN: "", Form.SHARE: "secret "}.get(base.form, f"{base.form.value} ")
        where = self.device.name if self.device is not None else mask or "whom the run decides"
        return f"{form}{getattr(base, 'plain', base)!s:.200} at {where}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def __len__(self) -> int:
        if not isinstance(getattr(self.base_type, "plain", self.base_type), TensorType):
            rows = self._at_a_party("{0}.count().as_table()")
            self._not_here("the number of rows", f"{rows}; a table is one value, and not unpacked")
        if not self.shape:
            raise TraceError(f"{at()}{self!s} is a scalar, and has no length")
        return self.shape[0]

    __hash__ = object.__hash__
