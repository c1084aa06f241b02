"""Value of a session at a worker, with its type and its label."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from mplang_analysis import Label

from mplang_core import BaseType
from mplang_core.ext import WireError
from mplang_http.values import pack_as

PUBLIC_NAME = "public."
"""What the names of values that all parties are given begin with; the rest is the SHA-256."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """Value of a session.

    Attributes:
        kind: its type.
        value: its data.
        label: what flowed into it.
        is_result: whether a program returned it, so that it may be fetched; else it was put, or
            stays for the session's next programs.
        size: its size in bytes.
    """

    kind: BaseType
    value: Any
    label: Label
    is_result: bool = False
    size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size(self.kind, self.value))


def _size(kind: BaseType, value: Any) -> int:
    """Return the size of a value in bytes: what it says, or else what its codec makes of it."""
    told = getattr(value, "nbytes", None)
    if isinstance(told, int):
        return told
    try:
        _, buffers = pack_as(kind, value)
    except WireError:  # it never leaves this party
        return sys.getsizeof(value)
    return sum(map(len, buffers))
