"""Keys of Python functions: their code, and the content of what they read."""

from __future__ import annotations

import enum
import functools
import hashlib
import os
import sys
import weakref
from abc import ABC
from collections.abc import Callable, Hashable, Sequence
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Generic, Protocol

import numpy as np

from mplang_cache.packages import package_of
from mplang_core import BaseType, Mask, MPType
from mplang_core.ext import captured, globals_read, is_skipped, names_of

IMPURE = frozenset(
    {"datetime", "io", "numpy.random", "os", "pathlib", "random", "secrets", "socket", "subprocess"}
    | {"tempfile", "time", "uuid"}
)
"""Modules whose functions differ from call to call; ``jax.random`` does not."""

_ASKS = frozenset({"input", "open"})  # functions of Python

MAX_ITEMS = 10_000  # in all containers that a function reads
MAX_BYTES = 64 << 20  # of an array that it reads

_LITERALS = (bool, int, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range)
_FROZEN = (BaseType, MPType, Mask, np.dtype, enum.Enum)
_BASES = (object, ABC, Generic, Protocol)  # without content of their own
_SLOTS = (GetSetDescriptorType, MemberDescriptorType)


def key_of(fn: Any, is_fixed: Callable[[Any], bool] = lambda value: False) -> Hashable:
    """Return a key of a function: equal to that of another one if both compute the same.

    The key is its code, the place of that, its defaults, and what it reads by name: closure
    variables and globals, the functions that it calls, classes and instances of the user's own,
    attributes of the user's modules, arrays; all by content. Installed packages count by identity,
    since they do not change; a function that one of them made, as ``jax.vmap`` does, by its code
    and its closure.

    A function has no key if it is not one: if it assigns a global or a variable of a function
    around it, or names what differs from call to call (:data:`IMPURE`).

    Args:
        fn: the function, or any value that it captures.
        is_fixed: returns whether an object of another kind is immutable, and counts by identity.

    Returns:
        The key; ``None`` if it reads something that can change and is not compared.

    Example:
        >>> def scaled(by):
        ...     return lambda x: by * x
        >>> key_of(scaled(2)) == key_of(scaled(2)), key_of(scaled(2)) == key_of(scaled(3))
        (True, False)
    """
    try:
        return _Reader(is_fixed).key(fn)
    except (_ChangesError, RecursionError):
        return None


class _ChangesError(Exception):
    """A value that can change, and that is not compared."""


class _Same:
    """Key of an object by identity. The object is not kept alive, if that is possible."""

    __slots__ = ("_hash", "_ref")

    def __init__(self, value: Any) -> None:
        self._hash = id(value)
        try:
            self._ref: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._ref = lambda: value

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        mine = self._ref()
        return isinstance(other, _Same) and mine is not None and mine is other._ref()


class _Reader:
    """Reader of one function; it has one number for each object, which may refer to itself."""

    def __init__(self, is_fixed: Callable[[Any], bool]) -> None:
        self._is_fixed = is_fixed
        self._seen: dict[int, tuple[int, Any]] = {}
        self._items = 0

    def key(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in _LITERALS:
            return kind, value
        if kind in (float, complex):
            return kind, repr(value)  # NaN is itself, and -0.0 is not 0.0
        if isinstance(value, _FROZEN):
            return kind, value
        if _counts_by_identity(value) or self._is_fixed(value):
            return _Same(value)
        if id(value) in self._seen:
            return "again", self._seen[id(value)][0]
        self._seen[id(value)] = len(self._seen), value
        return kind, self._content(value)

    def _content(self, value: Any) -> Hashable:
        match value:
            case FunctionType():
                names = names_of(value.__code__).all
                found = [*captured(value)]
                if not _is_installed(package_of(value)):
                    found += globals_read(value)
                    _check_is_pure(value, found)
                read = tuple(self._reached(each, names) for each in found)
                place = value.__code__, value.__code__.co_filename
                return place, self._all(value.__defaults__, value.__kwdefaults__), read
            case BuiltinMethodType():
                return value.__name__, self.key(value.__self__)
            case MethodType():
                return self._all(value.__func__, value.__self__)
            case functools.partial():
                return self._all(value.func, value.args, value.keywords)
            case np.ndarray() | np.generic() if not value.dtype.hasobject:
                return _digest(np.asarray(value))
            case tuple():
                return self._all(*value)
            case list() | set() | frozenset() if type(value) in (list, set, frozenset):
                return self._all(*value)
            case dict() if type(value) is dict:
                return self._all(*value, *value.values())
            case property():
                return self._all(value.fget)
            case staticmethod() | classmethod():
                return self._all(value.__func__)
        return self._instance(value)

    def _all(self, *values: Any) -> Hashable:
        self._items += len(values)
        if self._items > MAX_ITEMS:
            raise _ChangesError
        return tuple(map(self.key, values))

    def _reached(self, value: Any, names: frozenset[str]) -> Hashable:
        """Return the key of what a function reads; of a module, that of the named attributes."""
        if not isinstance(value, ModuleType) or _counts_by_identity(value):
            return self.key(value)
        if id(value) in self._seen:
            return _Same(value)
        self._seen[id(value)] = len(self._seen), value
        found = sorted(names & vars(value).keys())
        return _Same(value), *((name, self._reached(vars(value)[name], names)) for name in found)

    def _instance(self, value: Any) -> Hashable:
        """Return the key of an instance of a class of the user, or of such a class."""
        cls = value if isinstance(value, type) else type(value)
        own = [base for base in cls.__mro__ if base not in _BASES]
        if any(map(_counts_by_identity, own)):
            raise _ChangesError  # its base has content of its own
        if value is not cls:
            return self._all(cls, object.__getstate__(value))  # of its slots, too
        every = [item for base in own for item in vars(base).items()]
        parts = [part for item in every if _is_of_user(*item) for part in item]
        return tuple(map(_Same, own)), self._all(*parts)


def _check_is_pure(fn: FunctionType, read: Sequence[Any]) -> None:
    names = names_of(fn.__code__)
    assigns = names.own.intersection(fn.__code__.co_freevars) or names.own - _cells(fn.__code__)
    impure = any(_is_impure(value, names.all) for value in read)
    if assigns or impure or _ASKS & names.all:
        raise _ChangesError


def _cells(code: CodeType) -> set[str]:
    """Return the variables of a function, and of those in it, that functions in it read."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return {*code.co_cellvars}.union(*map(_cells, inner))


def _is_impure(value: Any, names: frozenset[str]) -> bool:
    if isinstance(value, ModuleType):
        parts = [vars(value).get(name) for name in names]
        modules = [value, *(part for part in parts if isinstance(part, ModuleType))]
        return not IMPURE.isdisjoint(module.__name__ for module in modules)
    home = getattr(value, "__module__", None)
    return isinstance(home, str) and (home in IMPURE or home.startswith("numpy.random."))


def _digest(array: np.ndarray[Any, Any]) -> Hashable:
    if array.nbytes > MAX_BYTES:
        raise _ChangesError
    return array.shape, array.dtype.str, hashlib.blake2b(array.tobytes()).digest()


def _is_of_user(name: str, part: Any) -> bool:
    """Return whether an attribute of a class is the user's, and not made by Python."""
    special = name.startswith(("__", "_abc_")) and not isinstance(part, FunctionType)
    return not special and not isinstance(part, _SLOTS)


def _counts_by_identity(value: Any) -> bool:
    """Return whether an object of an installed package is a function, a class or a module.

    Another callable counts as a function if it has no attributes that could change.
    """
    if isinstance(value, MethodType | functools.partial):
        return False
    if isinstance(value, BuiltinMethodType):  # a function, or a method of an object
        return isinstance(value.__self__, ModuleType | type | None)
    if isinstance(value, FunctionType) and "<locals>" in value.__qualname__:
        return False  # made by a call of a function, as jax.vmap does
    if isinstance(value, FunctionType | ModuleType | type):
        return _is_installed(package_of(value))
    is_plain = isinstance(value, np.ufunc) or not hasattr(value, "__dict__")
    return callable(value) and is_plain and _is_installed(package_of(type(value)))


@functools.lru_cache(maxsize=4096)
def _is_installed(package: str) -> bool:
    """Return whether a package is Python's, the framework's or installed: none of them changes."""
    if package in sys.stdlib_module_names or is_skipped(package):
        return True
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))
