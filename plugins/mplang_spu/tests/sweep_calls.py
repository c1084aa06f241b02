"""Functions of the sweep, all that ``dir()`` of JAX's modules gives, and how each is called.

How is found by trying: with one, two, three arrays, a list of two, and arrays before a small static
argument; the first call that JAX traces is taken. :mod:`sweep_written` has the calls of those that
need functions as arguments or the like.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy
import numpy as np
from jax import lax
from sweep_written import CASTS, EXCLUDED, TAILS, WRITTEN, Call, key


@dataclass(frozen=True, slots=True)
class Function:
    """A function of JAX.

    Attributes:
        name: with a short name of its module, as in ``jnp.sin``.
        fn: the function.
    """

    name: str
    fn: Call


def modules() -> dict[str, Any]:
    """Return the modules of the sweep, by short names."""
    found = {
        "jnp": jnp, "lax": lax, "nn": jax.nn, "random": jax.random, "linalg": jnp.linalg
    }  # fmt: skip
    for each in pkgutil.iter_modules(jax.scipy.__path__):
        package = importlib.import_module(f"jax.scipy.{each.name}")
        found[f"scipy.{each.name}"] = package
        for inner in pkgutil.iter_modules(getattr(package, "__path__", ())):
            name = f"scipy.{each.name}.{inner.name}"
            found[name] = importlib.import_module(f"jax.{name}")
    return found


def functions() -> list[Function]:
    """Return all functions that ``dir()`` gives, sorted."""
    made = []
    for short, module in modules().items():
        for name in dir(module):
            fn = getattr(module, name)
            if name.startswith("_") or inspect.isclass(fn) or not callable(fn):
                continue
            if not getattr(fn, "__module__", "jax").startswith("jax") or name in EXCLUDED:
                continue
            if f"{short}.{name}" == "jnp.astype":
                made += [Function(f"jnp.astype({to})", fn) for to in CASTS]
            else:
                made.append(Function(f"{short}.{name}", fn))
    return sorted(made, key=lambda each: each.name)


def part_of(name: str, parts: int) -> int:
    """Return which part of the functions has one; the same function in two modules is in one."""
    return zlib.crc32(name.rpartition(".")[2].encode()) // 7 % parts


def excluded() -> list[str]:
    """Return the names of functions that are left out by hand."""
    return sorted(
        f"{short}.{name}"
        for short, module in modules().items()
        for name in EXCLUDED & set(dir(module))
    )


def candidates(function: Function) -> Iterator[tuple[int, Call]]:
    """Generate ways to call a function: the number of arrays, and a function of these."""
    fn = function.fn
    if function.name in WRITTEN:
        by = WRITTEN[function.name]
        yield (
            len(inspect.signature(by).parameters) - 1 - ("astype" in function.name),
            _bound(by, fn),
        )
        return
    if function.name.startswith("random."):
        yield from _of_key(fn)
        return
    needed, names = _parameters(fn)
    counts = list(dict.fromkeys((min(max(needed, 1), 3), 1, 2, 3)))
    for count in counts:
        yield count, lambda *xs: fn(*xs)
    if "size" in names:
        yield min(max(needed, 1), 3), lambda *xs: fn(*xs, size=8)
    yield 2, lambda x, y: fn([x, y])
    for count in (1, 2):
        for tail in TAILS:
            yield count, lambda *xs, tail=tail: fn(*xs, *tail)


def _bound(by: Call, fn: Call) -> Call:
    return lambda *xs: by(fn, *xs)


def _of_key(fn: Call) -> Iterator[tuple[int, Call]]:
    """Generate calls with a public key first; a result of the key alone goes beside the operand."""
    for shaped in (True, False):
        for count in (0, 1, 2, 3):

            def call(*xs: Any, count: int = count, shaped: bool = shaped) -> Any:
                if not count and xs[0].dtype != np.float32:
                    raise TypeError("it takes no operand, so one type is enough")
                given = xs[:count]
                made = fn(key(), *given, shape=xs[0].shape) if shaped else fn(key(), *given)
                return made if count else (made, xs[0])

            yield max(count, 1), call
    yield 1, lambda x: fn(key(), x, (8,))


def _parameters(fn: Call) -> tuple[int, frozenset[str]]:
    try:
        found = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return 1, frozenset()
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in found if p.kind in places and p.default is p.empty]
    return len(needed), frozenset(p.name for p in found)


def arrays_of(call: Call) -> Call:
    """Return a call that gives a list of arrays, without keys and ``None``."""

    def arrays(*xs: Any) -> list[Any]:
        leaves = jax.tree.leaves(call(*xs))
        plain = [x for x in leaves if not _is_key(x)]
        return [jnp.asarray(x) for x in plain]

    return arrays


def _is_key(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def is_taken(call: Call, args: list[Any]) -> bool:
    """Return whether JAX traces a call, and it computes an array."""
    with contextlib.suppress(Exception):
        made = jax.make_jaxpr(arrays_of(call))(*args)
        used = {id(v) for v in made.jaxpr.outvars} & {id(v) for v in made.jaxpr.invars}
        return bool(made.jaxpr.outvars) and bool(made.eqns or used)
    return False


TRIED = (("float32", (8,)), ("int32", (8,)), ("bool", (8,)), ("float32", (3, 4)),
         ("float32", (3, 3)), ("float32", ()))  # fmt: skip


def way_of(function: Function) -> int | None:
    """Return which of the candidates JAX traces first; ``None`` if it takes none."""
    ways = list(candidates(function))
    for dtype, shape in TRIED:
        for i, (count, call) in enumerate(ways):
            if is_taken(call, [jax.ShapeDtypeStruct(shape, np.dtype(dtype))] * count):
                return i
    return None


def call_of(function: Function, way: int) -> tuple[int, Call]:
    """Return the number of arrays that a candidate takes, and the call."""
    count, call = list(candidates(function))[way]
    return count, arrays_of(call)
