"""Cache of compiled functions, for compilers that declare ``caching``."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from mplang_cache.function_key import key_of
from mplang_core import FeProgram, FeSignature
from mplang_core.ext import Feop, checks_determinism, flatten


def compiled_once(
    op: Feop,
    fn: Callable[..., Any],
    signature: FeSignature,
    make: Callable[[], FeProgram],
    *,
    depends_on: Hashable = None,
    is_fixed: Callable[[Any], bool] = lambda value: False,
) -> FeProgram:
    """Return the program that a compiler made of the same function before, or make it.

    It is kept in the process state of the compiler, which declares ``state_scope="process"`` and
    ``caching=Caching(scope="process")``. Two functions are the same if
    :func:`mplang_cache.key_of` says so: the same code at the same place that reads the same
    values, so also a lambda that is made anew in each turn of a loop. As with ``jax.jit``, effects
    of the function besides its result happen when it is compiled.

    Args:
        op: the compiler.
        fn: the function.
        signature: its arguments.
        make: compiles it.
        depends_on: what else the program depends on, such as the compiler's configuration.
        is_fixed: see :func:`mplang_cache.key_of`.
    """
    if checks_determinism():
        return make()
    leaves, spec = flatten((signature.args, dict(signature.kwargs)))
    key = key_of((fn, tuple(leaves)), is_fixed)
    if key is None:
        return make()
    made: FeProgram = op.__get_state__().get_or_make((key, spec, depends_on), make)
    return made
