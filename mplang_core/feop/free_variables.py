"""Names that a Python function reads, found in its code."""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple


def free_variables(fn: FunctionType) -> Iterator[Any]:
    """Yield the objects of a function's closure variables and globals.

    Those of functions of the same module that it uses are included.

    Args:
        fn: a Python function.

    Example:
        >>> scale = 3
        >>> def triple(x):
        ...     return scale * x
        >>> list(free_variables(triple))
        [3]
    """
    todo, seen = [fn], set()
    while todo:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        for item in (*captured(here), *globals_read(here)):
            yield item
            used = inspect.unwrap(item) if inspect.getattr_static(item, "__wrapped__", 0) else item
            if isinstance(used, FunctionType) and used.__globals__ is fn.__globals__:
                todo.append(used)


def captured(fn: FunctionType) -> Iterator[Any]:
    """Yield the closure variables of a function that it does not assign itself."""
    own = names_of(fn.__code__).own
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        if name not in own:
            with contextlib.suppress(ValueError):  # not bound yet
                yield cell.cell_contents


def globals_read(fn: FunctionType) -> Iterator[Any]:
    """Yield the globals that a function may read, and does not assign itself."""
    names = names_of(fn.__code__).globals
    yield from (fn.__globals__[name] for name in names if name in fn.__globals__)


class Names(NamedTuple):
    """Names in code and in the functions in it.

    Attributes:
        globals: the globals that it may read.
        own: the names outside of it that it assigns.
        all: all names, of attributes, too.
    """

    globals: tuple[str, ...]
    own: frozenset[str]
    all: frozenset[str]


@functools.lru_cache(maxsize=1024)
def names_of(code: CodeType) -> Names:
    """Return the names in code."""
    steps = [(step.opname, step.argval) for step in dis.get_instructions(code)]
    inner = [names_of(const) for const in code.co_consts if isinstance(const, CodeType)]
    own = {name for op, name in steps if op in ("STORE_GLOBAL", "STORE_DEREF")}
    own.update(*(names.own for names in inner))
    reads = [name for op, name in steps if op in ("LOAD_GLOBAL", "LOAD_NAME")]
    reads += [name for names in inner for name in names.globals]
    return Names(
        tuple(name for name in dict.fromkeys(reads) if name not in own),
        frozenset(own),
        frozenset({*code.co_names}.union(*(names.all for names in inner))),
    )
