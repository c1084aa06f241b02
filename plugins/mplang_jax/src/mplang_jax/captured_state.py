"""Snapshot of the mutable state that a function captures, for functions that are traced twice.

Imports no JAX.
"""

from __future__ import annotations

import random
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from operator import length_hint
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    SimpleNamespace,
)
from typing import Any

import numpy as np
from mplang_cache import is_installed

from mplang_core.ext import TraceError, at, is_skipped, names_of

MAX_OBJECTS = 100_000
"""Maximum number of objects that a snapshot visits."""

MAX_BYTES = 64 << 20
"""Maximum size in bytes of the arrays that a snapshot copies."""

_UNBOUND = object()
_UNKNOWN = object()
_LEAVES = (bool, int, float, complex, str, bytes, type(None))
"""Types of what cannot change, which does not count as an object."""


class CapturedState:
    """Snapshot of the state that a function may change: what its names and arguments reach.

    Lists, dicts, sets, arrays, attributes of instances and of the user's classes, variables that
    the function assigns, and generators of random numbers are restored. Iterators cannot be.

    Args:
        fn: the function.
        args: what it is called with.

    Example:
        >>> seen = []
        >>> state = CapturedState(seen.append, ())
        >>> seen.append(1)
        >>> state.restore()
        >>> seen
        []
    """

    def __init__(self, fn: Callable[..., Any], args: Iterable[Any]) -> None:
        self._fn = fn
        self._undo: list[Callable[[], None]] = []
        self._iterators: list[tuple[Iterator[Any], Any]] = []
        self._bytes = 0
        seen: dict[int, Any] = {}  # keeps objects alive: no other one has the same number
        todo: list[Any] = [fn, *args]
        while todo and len(seen) < MAX_OBJECTS:
            value = todo.pop()
            if type(value) not in _LEAVES and id(value) not in seen:
                seen[id(value)] = value
                todo.extend(self._visit(value))
        self._is_cut = any(type(each) not in _LEAVES and id(each) not in seen for each in todo)

    def restore(self) -> None:
        """Undo the changes since the snapshot.

        Raises:
            TraceError: the function advanced an iterator.
        """
        name = getattr(self._fn, "__name__", type(self._fn).__name__)
        twice = "traced twice, with and without 64-bit types"
        for iterator, position in self._iterators:
            if position is _UNKNOWN or _position(iterator) != position:
                may = "may advance" if position is _UNKNOWN else "advances"
                raise TraceError(
                    f"{at()}{name} {may} a {type(iterator).__name__} that it captures, and is "
                    f"{twice}; capture a list of the elements, as by list(it), and take them by "
                    "number",
                    code="T011",
                )
        if self._is_cut:
            raise TraceError(
                f"{at()}{name} captures more than {MAX_OBJECTS} objects, and is {twice}, so what "
                "it may change in them cannot be restored; pass arrays, or capture less",
                code="T011",
            )
        for undo in self._undo:
            undo()

    def _visit(self, value: Any) -> Iterable[Any]:
        """Store the state of one object; return what it refers to."""
        kind = type(value)  # not its __class__, which it may answer itself
        for cls, visit in _KINDS:
            if issubclass(kind, cls):
                return visit(self, value)
        if any("__next__" in _own(base, "__dict__") for base in _own(kind, "__mro__")):
            return self._iterator(value)
        return self._instance(value)

    def _generator(self, value: Any) -> Iterable[Any]:
        """Store the state of a generator of random numbers."""
        if isinstance(value, random.Random):
            if type(value) is random.Random:  # one of the system has no state
                self._undo.append(partial(value.setstate, value.getstate()))
        elif isinstance(value, np.random.RandomState):
            self._undo.append(partial(value.set_state, value.get_state()))
        else:
            bits = value.bit_generator
            self._undo.append(partial(setattr, bits, "state", bits.state))
        return ()

    def _function(self, fn: FunctionType) -> Iterable[Any]:
        cells, names, scope = fn.__closure__ or (), names_of(fn.__code__), fn.__globals__
        inside = [cell.cell_contents for cell in cells if _content(cell) is not _UNBOUND]
        if is_installed(str(scope.get("__name__", "")).partition(".")[0]):
            return inside
        self._undo.extend(partial(_set_content, cell, _content(cell)) for cell in cells)
        around = {*fn.__code__.co_freevars, *fn.__code__.co_cellvars}
        assigned = {name: scope.get(name, _UNBOUND) for name in names.own - around}
        self._undo.extend(partial(_set_item, scope, *item) for item in assigned.items())
        read = [scope[name] for name in (*names.globals, *assigned) if name in scope]
        defaults = (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values())
        drawn = (random.random, np.random.rand) if "random" in names.all else ()
        return (*inside, *read, *defaults, *drawn, fn.__dict__)

    def _container(self, value: Any) -> Iterable[Any]:
        if isinstance(value, bytearray):
            self._undo.append(partial(_set_items, value, bytes(value)))
            return ()
        if not isinstance(value, dict):
            before = list(value)
            self._undo.append(partial(_set_items, value, before))
            return (*before, *self._instance(value))
        items = dict(dict.items(value))
        self._undo.append(partial(_set_entries, value, items))
        return (*items.values(), *self._instance(value))

    def _array(self, array: np.ndarray[Any, Any]) -> Iterable[Any]:
        self._bytes += array.nbytes
        if array.flags.writeable and self._bytes <= MAX_BYTES:
            self._undo.append(partial(_set_array, array, array.copy()))
        return array.flat if array.dtype.hasobject else ()

    def _iterator(self, iterator: Any) -> Iterable[Any]:
        kind = type(iterator)
        if _package(kind) not in ("builtins", "itertools", "_csv"):
            return self._instance(iterator)  # its state is in its attributes
        self._iterators.append((iterator, _position(iterator)))
        return iterator.__reduce__()[1] if kind in (zip, map, enumerate, filter) else ()

    def _class(self, cls: type) -> Iterable[Any]:
        if is_installed(_package(cls)):
            return ()
        parts = _attributes(cls)
        self._undo.append(partial(_set_attributes, cls, parts))
        return (*parts.values(), *_own(cls, "__bases__"))

    def _instance(self, value: Any) -> Iterable[Any]:
        """Store the attributes of an instance, without asking it for one."""
        cls = type(value)
        if is_skipped(_package(cls)):
            return ()
        if _package(cls) in sys.stdlib_module_names and cls is not SimpleNamespace:
            return ()
        found: list[Any] = [cls]
        for base in _own(cls, "__mro__"):
            for name, part in _own(base, "__dict__").items():
                if type(part) is MemberDescriptorType:
                    old = _slot(part, value)
                    self._undo.append(partial(_set_slot, part, value, old))
                    found.append(old)
                elif name == "__dict__" and type(part) is GetSetDescriptorType:
                    found.append(part.__get__(value))
        return found


_KINDS: tuple[tuple[type, Callable[[CapturedState, Any], Iterable[Any]]], ...] = (
    (FunctionType, CapturedState._function),
    (MethodType, lambda _, value: (value.__func__, value.__self__)),
    (BuiltinMethodType, lambda _, value: (value.__self__,)),
    (partial, lambda _, value: (value.func, value.args, value.keywords)),
    (property, lambda _, value: (value.fget, value.fset)),
    (staticmethod, lambda _, value: (value.__func__,)),
    (classmethod, lambda _, value: (value.__func__,)),
    (tuple, lambda state, value: (*tuple.__iter__(value), *state._instance(value))),
    (frozenset, lambda state, value: (*frozenset.__iter__(value), *state._instance(value))),
    *((kind, CapturedState._container) for kind in (list, set, deque, dict, bytearray)),
    (np.ndarray, CapturedState._array),
    (random.Random, CapturedState._generator),
    (np.random.RandomState, CapturedState._generator),
    (np.random.Generator, CapturedState._generator),
    (type, CapturedState._class),
)


def _own(cls: type, name: str) -> Any:
    """Return an attribute of a class without asking its metaclass, which may be the user's."""
    return type.__getattribute__(cls, name)


def _package(cls: type) -> str:
    return str(_own(cls, "__module__")).partition(".")[0]


def _attributes(cls: type) -> dict[str, Any]:
    parts = _own(cls, "__dict__").items()
    return {name: part for name, part in parts if not name.startswith("__")}


def _position(iterator: Any) -> Any:
    """Return what differs after an iterator was advanced, if it tells."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        return frame and (frame.f_lasti, [*map(id, frame.f_locals.values())])
    if type(iterator) in (zip, map, enumerate, filter):
        return None  # what it advances is looked at
    left = repr(iterator) if type(iterator) is count else length_hint(iterator, -1)
    return _UNKNOWN if left == -1 else left


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return _UNBOUND


def _set_content(cell: CellType, old: Any) -> None:
    if _content(cell) is old:
        return
    if old is _UNBOUND:
        del cell.cell_contents
    else:
        cell.cell_contents = old


def _set_item(scope: dict[str, Any], name: str, old: Any) -> None:
    if old is not _UNBOUND:
        scope[name] = old
    else:
        scope.pop(name, None)


def _set_array(array: np.ndarray[Any, Any], old: np.ndarray[Any, Any]) -> None:
    """Write what was there, if the function wrote: others may write to what it only read."""
    if array.tobytes() != old.tobytes():
        np.copyto(array, old)


def _set_items(container: Any, old: Any) -> None:
    if _is_as_before(container, old):
        return
    if isinstance(container, list):
        list.__setitem__(container, slice(None), old)
    elif isinstance(container, bytearray):
        container[:] = old
    else:
        kind = set if isinstance(container, set) else deque
        kind.clear(container)
        (set.update if kind is set else deque.extend)(container, old)


def _is_as_before(container: Any, old: Any) -> bool:
    """Return whether a container has the same elements, by identity and in the same order."""
    if isinstance(container, bytearray):
        return bool(bytes(container) == old)
    if isinstance(container, set):
        return len(container) == len(old) and {*map(id, set.__iter__(container))} == {*map(id, old)}
    kind = list if isinstance(container, list) else deque
    return [*map(id, kind.__iter__(container))] == [*map(id, old)]


def _set_entries(entries: dict[Any, Any], old: dict[Any, Any]) -> None:
    kind = OrderedDict if isinstance(entries, OrderedDict) else dict
    if _identities(entries) != _identities(old):
        kind.clear(entries)
        kind.update(entries, old)


def _identities(entries: dict[Any, Any]) -> list[tuple[int, int]]:
    return [(id(key), id(value)) for key, value in dict.items(entries)]


def _set_attributes(cls: type, old: dict[str, Any]) -> None:
    now = _attributes(cls)
    for name in now.keys() - old.keys():
        type.__delattr__(cls, name)
    for name, part in old.items():
        if now.get(name, _UNBOUND) is not part:
            type.__setattr__(cls, name, part)


def _slot(slot: MemberDescriptorType, value: Any) -> Any:
    try:
        return slot.__get__(value)
    except AttributeError:  # an empty slot
        return _UNBOUND


def _set_slot(slot: MemberDescriptorType, value: Any, old: Any) -> None:
    if _slot(slot, value) is old:
        return
    if old is _UNBOUND:
        slot.__delete__(value)
    else:
        slot.__set__(value, old)
