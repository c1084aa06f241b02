"""Storages of shares: what each protocol keeps of a tensor. Imports neither libspu nor JAX."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from mplang_spu.config import BITS


@dataclass(frozen=True, slots=True)
class Storage:
    """Layout of a party's share of an element.

    Attributes:
        name: libspu's name of it.
        form: ``arithmetic``, if the pieces add up to the element; ``boolean``, if their XOR is the
            element; ``public``, if each party has the element, as it depends on no secret.
        bits: bits of a piece.
        pieces: pieces of an element that a party has: in ABY3 two of three, otherwise its own.
    """

    name: str
    form: Literal["arithmetic", "boolean", "public"]
    bits: int
    pieces: int

    @property
    def nbytes(self) -> int:
        """Bytes of a party's share of one element."""
        return self.pieces * self.bits // 8


@functools.cache
def storages(protocol: str, field: str) -> Mapping[str, Storage]:
    """Return by name the storages of a protocol and a field.

    Args:
        protocol: ``ABY3``, ``CHEETAH`` or ``SEMI2K``.
        field: ``FM32``, ``FM64`` or ``FM128``.

    Example:
        >>> [name for name in storages("ABY3", "FM32")][:4]
        ['Pub2k<FM32>', 'aby3.AShr<FM32>', 'aby3.BShr<PT_U8,1>', 'aby3.BShr<PT_U8,2>']
        >>> storages("ABY3", "FM32")["aby3.BShr<PT_U8,2>"].nbytes
        2
    """
    ring, family = BITS[field], protocol.lower()
    pieces = 2 if protocol == "ABY3" else 1
    widths = {f"PT_U{n}": n for n in (8, 16, 32, 64, 128) if n <= ring}
    backing = widths if protocol == "ABY3" else {field: ring}
    found = [
        Storage(f"Pub2k<{field}>", "public", ring, 1),
        Storage(f"{family}.AShr<{field}>", "arithmetic", ring, pieces),
    ]
    found += [
        Storage(f"{family}.BShr<{name},{used}>", "boolean", width, pieces)
        for name, width in backing.items()
        for used in range(1, width + 1)
    ]
    return MappingProxyType({each.name: each for each in found})
