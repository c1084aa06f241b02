"""References of the driver to values at workers, and to literals."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from mplang_core import BaseType
from mplang_http.wire.requests import Public, Uploaded
from mplang_http.wire.values import frame_head, join_frame, pack

Values: TypeAlias = list[Any]
"""What a party holds, or gives, of each of some values; ``None`` for those that it has not."""

INLINE_SIZE = 16 << 10  # bytes up to which a literal is part of the job request


@dataclass(eq=False)
class PendingRun:
    """A run that has not ended, and is to give values.

    Attributes:
        failure: why it does not, once that is known.
    """

    failure: BaseException | None = field(default=None, init=False)


class Ref:
    """Reference to a value at one worker; its deletion releases the value there.

    Attributes:
        name: name of the value at the worker.
        kind: type of the value.
        flight: the run that is to give it, unless that has ended well.
    """

    __slots__ = ("_dropped", "flight", "kind", "name")

    def __init__(self, name: str, kind: BaseType, dropped: deque[str]) -> None:
        self.name = name
        self.kind = kind
        self.flight: PendingRun | None = None
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append(self.name)


class Literal:
    """Array that all parties know.

    Attributes:
        array: the array.
        input: how requests name it: by its bytes if it is small, else by their SHA-256.
        refs: by rank, where it was uploaded.
    """

    __slots__ = ("array", "input", "refs")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.input = _public_input(array)
        self.refs: dict[int, Ref] = {}


def _public_input(array: np.ndarray[Any, Any]) -> Public | Uploaded:
    head, buffers = pack(array)
    if array.nbytes <= INLINE_SIZE:
        return Public(join_frame(head, buffers))
    digest = hashlib.sha256(frame_head(head))
    for buffer in buffers:
        digest.update(buffer)
    return Uploaded(digest.hexdigest())
