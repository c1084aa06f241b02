"""Native services of a program, as its kernels declare them."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable

from mplang_core import Program
from mplang_core.ext import (
    KERNELS,
    NATIVE,
    PluginError,
    device_kinds,
    native_of,
    native_ops,
    plugin_manager,
)

_needed: weakref.WeakKeyDictionary[Program, frozenset[str]] = weakref.WeakKeyDictionary()


def native_names() -> list[str]:
    """Return the names of the native services that are installed; import nothing."""
    return plugin_manager.names(NATIVE)


def needed_natives(program: Program) -> frozenset[str]:
    """Return the native services that a program needs, as its kernels that are here declare them.

    A kernel that cannot be loaded here declares none: the parties that run it refuse it then.
    """
    found = _needed.get(program)
    if found is None:
        declared = map(_declared, {op.opcode for op in program.graph.walk()})
        found = _needed[program] = frozenset(filter(None, declared))
    return found


def _declared(opcode: str) -> str | None:
    with contextlib.suppress(PluginError):
        return native_of(opcode)
    return None


def natives_of_kinds(kinds: Iterable[str]) -> frozenset[str]:
    """Return the native services that the kernels of some kinds of devices need.

    Args:
        kinds: names of the kinds.
    """
    known = [kind for name in set(kinds) if (kind := device_kinds.get(name)) is not None]
    dialects = {dialect for kind in known for dialect in kind.dialects}
    for dialect in dialects:
        with contextlib.suppress(PluginError):  # a program that needs it is told of that
            plugin_manager.load(dialect, KERNELS)
    return frozenset(name for opcode, name in native_ops if opcode.partition(".")[0] in dialects)
