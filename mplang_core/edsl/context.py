"""Contexts, and the values that live in them."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from mplang_core.errors import TraceError
from mplang_core.feop.state import ContextBound, FeState
from mplang_core.ir import AnyType, Graph
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.types import BaseType, MPType


class Cluster(Protocol):
    """What a context needs to know of a cluster."""

    @property
    def mask(self) -> Mask:
        """All its parties."""

    def apply(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function on the device of its arguments."""


class Placement(Protocol):
    """The device that a value is on, as far as the language needs to know it."""

    @property
    def name(self) -> str:
        """The device's name."""


class MPContext(ContextBound, ABC):
    """Where ops go to: a graph that is being built, or an interpreter that runs them.

    Args:
        cluster_spec: the parties and devices.
        parent: the context around this one, whose values may be used here.

    Attributes:
        traced: functions as they were traced before; see :mod:`mplang_core.edsl.trace_cache`.
    """

    def __init__(self, cluster_spec: Cluster, parent: MPContext | None = None) -> None:
        self.cluster_spec = cluster_spec
        self.parent = parent
        self.fe_state: dict[str, FeState] = {}
        self.traced: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()

    @property
    def mask(self) -> Mask:
        """The parties that take part."""
        return self.cluster_spec.mask

    @property
    def is_local(self) -> bool:
        """Whether this is the inside of a ``pcall``, at one party."""
        return False

    def root(self) -> MPContext:
        """Return the outermost context."""
        return self if self.parent is None else self.parent.root()

    def ancestors(self) -> Iterator[MPContext]:
        """Yield this context and all around it, from the inside."""
        ctx: MPContext | None = self
        while ctx is not None:
            yield ctx
            ctx = ctx.parent

    @abstractmethod
    def emit(
        self,
        opcode: str,
        inputs: Sequence[MPObject],
        attrs: Mapping[str, Any] | None = None,
        regions: Mapping[str, Graph] | None = None,
    ) -> list[MPObject]:
        """Apply an op here and return its results.

        Raises:
            TraceError: the op does not allow it; shows the user's line.
        """

    def literal(self, value: np.ndarray[Any, Any], parties: Mask) -> MPObject:
        """Make a value of a literal that only these parties get."""
        (made,) = self.emit("simp.constant", [], {"value": value, "parties": parties})
        return made

    @abstractmethod
    def adopt(self, obj: MPObject) -> MPObject:
        """Return an object as one of this context, capturing it where that is possible.

        Raises:
            TraceError: the object belongs to another context.
        """

    @abstractmethod
    def place(
        self, obj: MPObject, device: Placement | None, uniform: bool | None = None
    ) -> MPObject:
        """Return the same value, marked as being on a device, and as uniform or not."""


_current: ContextVar[MPContext | None] = ContextVar("mplang_context", default=None)


def find_ctx(args: Iterable[Any] = ()) -> MPContext:
    """Return the current context, or else the one that the arguments live in.

    Raises:
        TraceError: there is none.
    """
    ctx = _current.get()
    if ctx is not None:
        return ctx
    for arg in args:
        if isinstance(arg, MPObject):
            return arg.ctx
    raise TraceError(
        f"{at()}no context to work in; call this in a function that mp.evaluate or "
        "mp.compile traces, or inside of `with mp.with_ctx(simulator):`"
    )


def cur_ctx() -> MPContext:
    """Return the current context.

    Raises:
        TraceError: there is none.
    """
    return find_ctx()


@contextlib.contextmanager
def with_ctx(ctx: MPContext) -> Iterator[MPContext]:
    """Make a context the current one, for this thread and task.

    Raises:
        TraceError: it is no context.
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


class MPObject(ContextBound, ABC):
    """A value of several parties: in a graph (``TraceVar``) or at the parties (``InterpVar``).

    Its operators are in :mod:`mplang_core.edsl.operators`.

    Attributes:
        ctx: the context that it belongs to.
        device: the device that it is on, if it is on one.
    """

    __slots__ = ("_uniform", "ctx", "device")
    __array_priority__ = 1000  # np.ndarray + MPObject is MPObject.__radd__

    def __init__(
        self, ctx: MPContext, device: Placement | None = None, uniform: bool = False
    ) -> None:
        self.ctx = ctx
        self.device = device
        self._uniform = uniform

    @property
    @abstractmethod
    def type(self) -> AnyType:
        """Its multi-party type; inside of a ``pcall``, its base type."""

    @property
    def mptype(self) -> MPType:
        """Its multi-party type.

        Raises:
            TraceError: it is inside of a ``pcall``, where values have no masks.
        """
        if not isinstance(self.type, MPType):
            raise TraceError(f"{self.type} is inside of a pcall and has no mask")
        return self.type

    @property
    def _type(self) -> MPType:
        return self.mptype  # by this name in seed 003, section 4.1

    @property
    def base_type(self) -> BaseType:
        """What each holder has."""
        return self.type.base if isinstance(self.type, MPType) else self.type

    @property
    def pmask(self) -> Mask | None:
        """Who holds it; ``None`` where that is known only at run time."""
        return self.mptype.pmask

    @property
    def uniform(self) -> bool:
        """Whether all holders are known to have the same: literals, what is revealed to all,
        and what plain functions make of these. Others may differ from party to party.
        """
        single = isinstance(self.type, MPType) and self.type.pmask is not None
        return self._uniform or (single and len(self.mptype.pmask or ()) == 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, of a tensor."""
        shape: tuple[int, ...] = self._tensor_field("shape")
        return shape

    @property
    def dtype(self) -> Any:
        """The NumPy dtype, of a tensor."""
        return self._tensor_field("dtype").numpy

    @property
    def ndim(self) -> int:
        """The number of dimensions, of a tensor."""
        return len(self.shape)

    def _tensor_field(self, name: str) -> Any:
        base: Any = self.base_type
        base = getattr(base, "plain", base)  # a share has the shape of what it shares
        if not hasattr(base, name):
            raise AttributeError(f"{at()}{base} has no {name}")
        return getattr(base, name)

    def __repr__(self) -> str:
        where = f" on {self.device.name}" if self.device is not None else ""
        return f"{type(self).__name__}({self.type}{where})"

    # -- what a value that is not here cannot do

    def _not_here(self, what: str, instead: str) -> NoReturn:
        raise TraceError(f"{at()}{what} of {self!r} needs its data; {instead}")

    def __bool__(self) -> bool:
        self._not_here(
            "the truth",
            "for `if` use mp.uniform_cond, for `while` mp.while_loop, with data mp.fetch",
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        self._not_here(
            "an array", "run the function at a party, mp.device('P0')(fn)(x), or mp.fetch the value"
        )

    def _number(self) -> Any:
        self._not_here("the number", "mp.fetch it, or keep computing with mp.device(...)")

    __float__ = __int__ = __complex__ = __index__ = _number

    def __len__(self) -> int:
        if not self.shape:
            raise TraceError(f"{at()}{self!r} is a scalar, and has no length")
        return self.shape[0]

    __hash__ = object.__hash__
