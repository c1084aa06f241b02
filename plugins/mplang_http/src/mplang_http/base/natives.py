"""Which native services a program needs: those of the group ``mplang.native``."""

from __future__ import annotations

import weakref

from mplang_core import Program
from mplang_core.ext import NATIVE, plugin_manager

_needed: weakref.WeakKeyDictionary[Program, frozenset[str]] = weakref.WeakKeyDictionary()


def native_names() -> list[str]:
    """Return the names of the native services that are installed; import nothing."""
    return plugin_manager.names(NATIVE)


def needed_natives(program: Program) -> frozenset[str]:
    """Return the names of the native services that a program needs, of those installed here.

    They are the prefixes of its ops.
    """
    found = _needed.get(program)
    if found is None:
        prefixes = {op.opcode.partition(".")[0] for op in program.graph.walk()}
        found = _needed[program] = frozenset(prefixes.intersection(native_names()))
    return found
