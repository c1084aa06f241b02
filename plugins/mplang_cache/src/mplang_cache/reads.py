"""Names that a function's code reads: closure variables, globals, and imports in its body."""

from __future__ import annotations

import dis
import functools
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from mplang_core.ext import names_of


class Import(NamedTuple):
    """Import in the body of a function.

    Attributes:
        module: the name of the module, after ``level`` dots.
        level: the number of dots.
        bound: per name that it binds, the attribute of the module; ``None`` is the module itself.
    """

    module: str
    level: int
    bound: tuple[tuple[str, str | None], ...]


class Uses(NamedTuple):
    """Uses of names by code.

    Attributes:
        loose: those that it does not only ask for an attribute by its name: what is read of such
            a module cannot be known.
        imports: the imports in it and in the functions in it.
    """

    loose: frozenset[str]
    imports: tuple[Import, ...]


@functools.lru_cache(maxsize=1024)
def uses_of(code: CodeType) -> Uses:
    """Return how code, and the functions in it, use names."""
    steps = list(dis.get_instructions(code))
    inner = [uses_of(const) for const in code.co_consts if isinstance(const, CodeType)]
    loose: set[str] = set()
    for step, after in pairwise(steps):
        if not step.opname.startswith("LOAD_") or step.opname in ("LOAD_CONST", "LOAD_CLOSURE"):
            continue
        if after.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            loose.update(step.argval if type(step.argval) is tuple else [str(step.argval)])
    imports = [_import(steps, i) for i, step in enumerate(steps) if step.opname == "IMPORT_NAME"]
    for uses in inner:
        loose |= uses.loose
        imports += uses.imports
    return Uses(frozenset(loose), tuple(imports))


def _import(steps: list[dis.Instruction], at: int) -> Import:
    level, names = steps[at - 2].argval, steps[at - 1].argval
    module, bound = steps[at].argval, []
    for step, after in pairwise(steps[at:]):
        if step.opname == "IMPORT_NAME" and step is not steps[at]:
            break
        if names and step.opname == "IMPORT_FROM":
            bound.append((after.argval, step.argval))
        if not names and after.opname.startswith("STORE_"):  # of `import a.b`, the name is a
            plain = step.opname == "IMPORT_NAME"
            return Import(module.partition(".")[0] if plain else module, 0, ((after.argval, None),))
    return Import(module, level, tuple(bound))


def read_by(fn: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function reads by name, each with the name that it has there.

    Names that the function assigns itself, or that are not bound, are ignored.

    Raises:
        LookupError: a module that it imports is not loaded, or has no such attribute.
    """
    yield from closure_of(fn)
    for name in names_of(fn.__code__).globals:
        if name in fn.__globals__:
            yield name, fn.__globals__[name]
    for found in uses_of(fn.__code__).imports:
        module = sys.modules[_absolute(found, fn.__globals__)]
        if not issubclass(type(module), ModuleType):
            raise LookupError(found.module)
        for name, attribute in found.bound:
            yield name, module if attribute is None else _attribute(module, attribute)


def closure_of(fn: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the closure variables of a function that it does not assign itself."""
    own = names_of(fn.__code__).own
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        if name not in own:
            try:
                yield name, cell.cell_contents
            except ValueError:  # not bound yet
                continue


def _absolute(found: Import, scope: Mapping[str, Any]) -> str:
    if not found.level:
        return found.module
    package = scope.get("__package__") or str(scope.get("__name__")).rpartition(".")[0]
    try:
        return importlib.util.resolve_name("." * found.level + found.module, package)
    except ImportError as error:
        raise LookupError(found.module) from error


def _attribute(module: ModuleType, name: str) -> Any:
    parts = contents(module)
    return parts[name] if name in parts else sys.modules[f"{parts.get('__name__')}.{name}"]


def contents(module: ModuleType) -> dict[str, Any]:
    """Return the attributes of a module, without asking it for one."""
    found: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return found
