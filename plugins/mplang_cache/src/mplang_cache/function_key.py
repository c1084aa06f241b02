"""Keys of Python functions: their code, and the content of what they read."""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import operator
import re
import sys
import weakref
from abc import ABC
from collections.abc import Callable, Hashable, Sequence
from inspect import getattr_static
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, Generic, Protocol

import numpy as np

from mplang_cache.packages import is_installed, module_of, package_of
from mplang_cache.reads import closure_of, contents, read_by, uses_of
from mplang_core import BaseType, Mask, MPType
from mplang_core.ext import names_of

IMPURE = frozenset(
    {"datetime", "duckdb", "genericpath", "glob", "httpx", "io", "numpy.random", "os", "pathlib"}
    | {"posixpath", "random", "requests", "secrets", "shelve", "shutil", "socket", "sqlite3"}
    | {"subprocess", "tempfile", "time", "urllib", "uuid"}
)
"""Modules and packages whose functions differ from call to call; ``jax.random`` does not."""

_READS_FILES = re.compile(
    r"(read|load|scan|fetch|open)_\w+|load|loadmat|loadtxt|genfromtxt|fromfile|fromregex|memmap"
    r"|urlopen|urlretrieve|connect|dataset|\w*(File|Reader|Store)"
)
"""Names by which functions of libraries read files: ``np.load``, ``pd.read_csv``, …"""

_REFLECTIVE = frozenset({"ctypes", "gc", "importlib", "inspect", "weakref"})
"""Modules whose functions read what code does not name."""

_ASKS = frozenset(
    {"__builtins__", "__closure__", "__dict__", "__getattribute__", "__globals__", "__import__"}
    | {"_getframe", "attrgetter", "eval", "exec", "getattr", "globals", "input", "methodcaller"}
    | {"modules", "open", "vars"}
)
"""Names, such as functions of Python, by which code reads what it does not name."""

_READS_OTHERS = (operator.attrgetter, operator.methodcaller, weakref.ref, MethodWrapperType)

MAX_ITEMS = 10_000  # in all containers that a function reads
MAX_BYTES = 64 << 20  # of an array that it reads

_LITERALS = (bool, int, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range)
_FROZEN = (BaseType, MPType, Mask, np.dtype)
_BASES = (object, ABC, Generic, Protocol)  # without content of their own
_METHODS = (FunctionType, property, staticmethod, classmethod)
_SLOTS = (GetSetDescriptorType, MemberDescriptorType)


def key_of(fn: Any, is_fixed: Callable[[Any], bool] = lambda value: False) -> Hashable:
    """Return a key of a function: equal to that of another one if both compute the same.

    The key is its code, the place of that, its defaults, and what it reads by name: closure
    variables and globals, the functions that it calls, classes and instances of the user's own,
    attributes of the user's modules, also of those that it imports, arrays; all by content.
    Installed packages count by identity, since they do not change; a function that one of them
    made, as ``jax.vmap`` does, by its code and its closure.

    A function has no key if it is not one: if it assigns a global or a variable of a function
    around it, names what differs from call to call (:data:`IMPURE`) or reads files, or reads what
    its code does not name: by ``getattr``, ``globals()`` or ``eval``, by a module that it hands on,
    by a metaclass of the user, by a weak reference.

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
        self._modules: set[tuple[Any, ...]] = set()
        self._items = 0

    def key(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in _LITERALS:
            return kind, value
        if kind in (float, complex):
            return kind, repr(value)  # NaN is itself, and -0.0 is not 0.0
        if issubclass(kind, _FROZEN):
            return kind, value
        if _reads_others(value):
            raise _ChangesError
        if _counts_by_identity(value) or self._is_fixed(value):
            return _Same(value)
        if id(value) in self._seen:
            return "again", self._seen[id(value)][0]
        self._seen[id(value)] = len(self._seen), value
        return kind, self._content(value)

    def _content(self, value: Any) -> Hashable:
        kind = type(value)
        if kind is FunctionType:
            return self._function(value)
        if kind is BuiltinMethodType:
            return value.__name__, self.key(value.__self__)
        if kind is MethodType:
            return self._all(value.__func__, value.__self__)
        if kind is functools.partial:
            return self._all(value.func, value.args, value.keywords)
        if (kind is np.ndarray or issubclass(kind, np.generic)) and not value.dtype.hasobject:
            return _digest(np.asarray(value))
        if kind in (tuple, list, set, frozenset):
            return self._all(*value)
        if kind is dict:
            return self._all(*value, *value.values())
        if kind is property:
            return self._all(value.fget)
        if kind in (staticmethod, classmethod):
            return self._all(value.__func__)
        if issubclass(kind, enum.Enum):
            return _Same(value), self._methods(kind)
        if issubclass(kind, tuple) and all(map(_is_tuple_or_of_user, kind.__mro__)):
            return self._all(*tuple.__iter__(value), *_state(value)), self._methods(kind)
        return self._instance(value)

    def _function(self, fn: FunctionType) -> Hashable:
        names, loose = names_of(fn.__code__).all, uses_of(fn.__code__).loose
        extra: tuple[Any, ...] = ()
        if is_installed(_home(fn)):
            found = list(closure_of(fn))
        else:
            found = _found_by(fn)
            _check_is_pure(fn, [each for _, each in found])
            extra = tuple(item for item in fn.__dict__.items() if item[0] != "__wrapped__")
        read = tuple((name, self._reached(name, each, names, loose)) for name, each in found)
        place = fn.__code__, fn.__code__.co_filename
        return place, self._all(fn.__defaults__, fn.__kwdefaults__, *extra), read

    def _all(self, *values: Any) -> Hashable:
        self._items += len(values)
        if self._items > MAX_ITEMS:
            raise _ChangesError
        return tuple(map(self.key, values))

    def _reached(
        self, name: str, value: Any, names: frozenset[str], loose: frozenset[str]
    ) -> Hashable:
        """Return the key of what a function reads; of a module, that of the named attributes."""
        if not issubclass(type(value), ModuleType) or _counts_by_identity(value):
            return self.key(value)
        parts = contents(value)
        if name in loose or type(value) is not ModuleType or "__getattr__" in parts:
            raise _ChangesError  # what is read of it has no name here
        found = sorted(names & parts.keys())
        if (id(value), *found) in self._modules:
            return _Same(value)
        self._modules.add((id(value), *found))
        read = ((name, self._reached(name, parts[name], names, loose)) for name in found)
        return _Same(value), *read

    def _instance(self, value: Any) -> Hashable:
        """Return the key of an instance of a class of the user, or of such a class."""
        cls = value if issubclass(type(value), type) else type(value)
        own = [base for base in type.__dict__["__mro__"].__get__(cls) if base not in _BASES]
        if any(map(_counts_by_identity, own)) or not is_installed(package_of(type(cls))):
            raise _ChangesError  # its base has content of its own, or its metaclass answers for it
        if value is not cls:
            return self._all(cls, *_state(value))
        every = [item for base in own for item in vars(base).items()]
        parts = [part for item in every if _is_of_user(*item) for part in item]
        return tuple(map(_Same, own)), self._all(*parts)

    def _methods(self, cls: type) -> Hashable:
        """Return the key of the functions of a class whose instances have content of Python's."""
        own = [base for base in cls.__mro__ if not _counts_by_identity(base)]
        every = [item for base in own for item in vars(base).items()]
        return self._all(*(part for item in every if type(item[1]) in _METHODS for part in item))


def _is_tuple_or_of_user(base: type) -> bool:
    return base is tuple or base in _BASES or not _counts_by_identity(base)


def _state(value: Any) -> list[Any]:
    """Return the attributes of an instance, without asking it for one."""
    found: list[Any] = []
    for base in type(value).__mro__:
        for name, part in vars(base).items():
            slot = type(part) is MemberDescriptorType
            if slot or (name == "__dict__" and type(part) is GetSetDescriptorType):
                with contextlib.suppress(AttributeError):  # an empty slot
                    found += name, part.__get__(value)
    return found


def _found_by(fn: FunctionType) -> list[tuple[str, Any]]:
    try:
        return list(read_by(fn))
    except LookupError as error:
        raise _ChangesError from error


def _check_is_pure(fn: FunctionType, read: Sequence[Any]) -> None:
    names = names_of(fn.__code__)
    assigns = names.own.intersection(fn.__code__.co_freevars) or names.own - _cells(fn.__code__)
    impure = any(_is_impure(value, names.all) for value in read)
    if assigns or impure or _ASKS & names.all or any(map(_READS_FILES.fullmatch, names.all)):
        raise _ChangesError


def _cells(code: CodeType) -> set[str]:
    """Return the variables of a function, and of those in it, that functions in it read."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return {*code.co_cellvars}.union(*map(_cells, inner))


def _is_impure(value: Any, names: frozenset[str]) -> bool:
    if issubclass(type(value), ModuleType):
        parts = [contents(value).get(name) for name in names]
        modules = [value, *(part for part in parts if issubclass(type(part), ModuleType))]
        known = {*map(module_of, modules), *map(package_of, modules)}
        return bool(known & (IMPURE | _REFLECTIVE))
    if _READS_FILES.fullmatch(_name_of(value)) and is_installed(package_of(value)):
        return True  # of ``from numpy import load as stored``, too
    home = module_of(value)
    known = {home, package_of(value)}
    return bool(known & (IMPURE | _REFLECTIVE)) or home.startswith("numpy.random.")


def _reads_others(value: Any) -> bool:
    """Return whether a callable reads what the code that calls it does not name."""
    if type(value) is BuiltinMethodType:
        return value.__name__ in _ASKS
    return value in _READS_OTHERS if type(value) is type else issubclass(type(value), _READS_OTHERS)


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
    kind = type(value)
    if kind in (MethodType, functools.partial):
        return False
    if kind is BuiltinMethodType:  # a function, or a method of an object
        owner = value.__self__
        if issubclass(type(owner), type):
            return is_installed(package_of(owner))
        return owner is None or issubclass(type(owner), ModuleType)
    if kind is FunctionType:  # one made by a call of a function, as jax.vmap does, has a closure
        made = "<locals>" in value.__code__.co_qualname
        return is_installed(_home(value)) and (not made or _is_of_module(value))
    if issubclass(kind, ModuleType | type):
        return is_installed(package_of(value))
    is_plain = kind is np.ufunc or not kind.__dictoffset__ or _is_of_module(value)
    return callable(value) and is_plain and is_installed(package_of(kind))


def _home(fn: FunctionType) -> str:
    """Return the package of a function's code; its ``__module__`` may be that of what it wraps."""
    return str(fn.__globals__.get("__name__", "")).partition(".")[0]


def _is_of_module(fn: Any) -> bool:
    """Return whether an installed module has a function under its name."""
    module = sys.modules.get(module_of(fn))
    if module is None or not is_installed(package_of(module)):
        return False
    name = _name_of(fn)
    return bool(name) and contents(module).get(name) is fn


def _name_of(fn: object) -> str:
    """Return the name of a function, without asking another object; empty if it has none."""
    if type(fn) is FunctionType or type(fn) is BuiltinMethodType:
        return fn.__name__
    name = getattr_static(fn, "__name__", None)
    return name if isinstance(name, str) else ""
