"""Parts of linked modules, by their lines in the user's program. Imports no JAX."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

from mplang_core.ext import Location

MAX_KNOWN = 1024  # linked modules whose parts are kept

Part: TypeAlias = tuple[Location | None, bytes]
"""The user's line of an op, and its code."""

_known: OrderedDict[tuple[bytes, Location | None], tuple[Part, ...]] = OrderedDict()
_lock = threading.Lock()


def remember_parts(code: bytes, parts: Sequence[Part]) -> None:
    """Remember in this process what a module was linked from.

    Args:
        code: the linked module.
        parts: its parts in order.
    """
    with _lock:
        _known[_key(code, parts[0][0])] = tuple(parts)
        if len(_known) > MAX_KNOWN:
            _known.popitem(last=False)


def parts_of(code: bytes, line: Location | None) -> Sequence[Part]:
    """Return what a module was linked from in this process.

    Args:
        code: the module.
        line: of the op that runs it.

    Returns:
        The parts; none if it was not linked here.
    """
    with _lock:
        return _known.get(_key(code, line), ())


def _key(code: bytes, line: Location | None) -> tuple[bytes, Location | None]:
    return hashlib.sha256(code).digest(), line
