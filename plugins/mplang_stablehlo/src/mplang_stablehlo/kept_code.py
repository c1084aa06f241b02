"""XLA's executables that another process of the same owner has compiled. Imports JAX.

JAX asks its own cache by the module that it is given. Here the module is not even parsed if the
executable is there: the text, which was admitted, names it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import jax
from jax._src import compiler
from jaxlib import version as jaxlib_version, xla_client as xc
from mplang_cache import code_key, drop_code, find_code, has_code_cache, keep_code, machine

from mplang_stablehlo.module import parse_alone

NOTHING = "module @main {}"
"""What JAX is given in place of the module: it asks its name, and the length of its text."""

_MACHINE = machine()  # before this process is confined
_FLAGS = ("XLA_FLAGS", "NPROC")  # variables that XLA reads when it compiles for a CPU
_this_thread = threading.local()
_compile = compiler.compile_or_get_cached


def has_kept_code() -> bool:
    """Return whether this process keeps executables, and knows the machine that they are for."""
    return bool(_MACHINE) and has_code_cache()


@contextlib.contextmanager
def compiling(text: str) -> Iterator[None]:
    """Make what JAX compiles in this thread StableHLO text, whatever module it is given.

    Args:
        text: admitted StableHLO.
    """
    _this_thread.text = text
    try:
        yield
    finally:
        _this_thread.text = None


def _compile_or_load(*args: Any, **named: Any) -> xc.LoadedExecutable:
    text = getattr(_this_thread, "text", None)
    if text is None:
        return _compile(*args, **named)
    backend, _, devices, options, callbacks, over, *more = args
    key = _key(text, backend, options, devices)
    code = find_code(key)
    if code is not None:
        try:
            return backend.deserialize_executable(code, over, options)
        except jax.errors.JaxRuntimeError as error:
            drop_code(key, f"XLA does not load it: {error}")
    module = parse_alone(text)
    made = _compile(backend, module, devices, options, callbacks, over, *more, **named)
    keep_code(key, backend.serialize_executable(made))
    return made


def _key(
    text: str, backend: xc.Client, options: xc.CompileOptions, devices: Iterable[xc.Device]
) -> str:
    kinds = (each.device_kind for each in devices)
    versions = jax.__version__, jaxlib_version.__version__, backend.platform_version, *kinds
    flags = (f"{name}={os.environ.get(name)}" for name in _FLAGS)
    return code_key("xla", text, options.SerializeAsString(), *versions, _MACHINE, *flags)


compiler.compile_or_get_cached = _compile_or_load
