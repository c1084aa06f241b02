"""Value of a session at a worker, with its type and its label."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from mplang_analysis import Label, own
from mplang_http.ext import PUBLIC_NAME, pack_as

from mplang_core import BaseType
from mplang_core.ext import WireError
from mplang_worker.base.errors import RequestError


def check_name(name: str) -> None:
    """Check the name of a value that is not a public input.

    Raises:
        RequestError: it looks like that of one.
    """
    if name.startswith(PUBLIC_NAME):
        raise RequestError(
            422,
            "reserved",
            f"the name {name[:100]!r} begins with {PUBLIC_NAME}, as those of public inputs alone "
            "do; upload a public input to inputs/ and the SHA-256 of its bytes, or give this value "
            "another name",
        )


def label_of_put(party: int) -> Label:
    """Return the label of a value that was put at a party."""
    return own(party, "put")


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
