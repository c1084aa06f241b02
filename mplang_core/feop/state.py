"""State scopes of feops: none, process, or context."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Literal, Protocol

from mplang_core.errors import FeStateError
from mplang_core.ir.source_line import at

Scope = Literal["none", "process", "ctx"]
BOUND = 256


class ContextBound:
    """Base class of contexts and of objects that belong to one.

    They must not outlive their context, so the process scope rejects them.
    """

    __slots__ = ()


class HasRoot(Protocol):
    """Protocol of a context, as state scopes use it."""

    def root(self) -> Any:
        """Return the outermost context."""


class FeState(MutableMapping[Any, Any]):
    """Bounded, thread-safe mapping with least-recently-used eviction.

    Args:
        owner: the feop's name, for messages.
        refuses: whether to reject objects that belong to a context.
        bound: the maximum number of entries; ``None`` for no limit.
    """

    def __init__(self, owner: str, *, refuses: bool, bound: int | None = BOUND) -> None:
        self._owner = owner
        self._refuses = refuses
        self._bound = bound
        self._items: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.RLock()

    def __getitem__(self, key: Any) -> Any:
        with self._lock:
            value = self._items[key]
            self._items.move_to_end(key)
            return value

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._refuses:
            self._check(key)
            self._check(value)
        with self._lock:
            self._items[key] = value
            self._items.move_to_end(key)
            while self._bound is not None and len(self._items) > self._bound:
                self._items.popitem(last=False)

    def __delitem__(self, key: Any) -> None:
        with self._lock:
            del self._items[key]

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            return iter(list(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def get_or_make(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the entry of a key; make it at its first use while other threads wait."""
        with self._lock:
            if key not in self._items:
                self[key] = make()
            return self[key]

    def _check(self, value: Any) -> None:
        if isinstance(value, ContextBound):
            raise FeStateError(
                f"{at()}{self._owner} keeps a {type(value).__name__} in its process state; keep "
                "the values of a context with state_scope='ctx', or not at all"
            )
        if isinstance(value, Mapping):
            value = (*value.keys(), *value.values())
        if isinstance(value, list | tuple | set | frozenset):
            for item in value:
                self._check(item)


class _NoState(FeState):
    def __setitem__(self, key: Any, value: Any) -> None:
        raise FeStateError(f"{at()}{self._owner} has state_scope='none', so it keeps no state")


_process: dict[str, FeState] = {}
_process_lock = threading.Lock()


def fe_process_state(key: str) -> FeState:
    """Return the process state of a feop by its name (seed 002)."""
    return state_of(key, "process")


def state_of(name: str, scope: Scope, ctx: HasRoot | None = None) -> FeState:
    """Return the state of a feop.

    Args:
        name: the feop.
        scope: its ``state_scope``.
        ctx: the context, for the scope ``ctx``; the state lives as long as its root context.

    Raises:
        FeStateError: the scope is ``ctx`` and there is no context.
    """
    if scope == "none":
        return _NoState(name, refuses=True)
    if scope == "process":
        with _process_lock:
            return _process.setdefault(name, FeState(name, refuses=True))
    if ctx is None:
        raise FeStateError(f"{at()}{name} keeps its state with a context, but no context is active")
    states: dict[str, FeState] = ctx.root().fe_state
    return states.setdefault(name, FeState(name, refuses=False, bound=None))
