"""Constants in StableHLO text, as who approves a program is shown them. Imports no JAX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from mplang_analysis import Constant

from mplang_core.ext import unpack

_DENSE = re.compile(r'dense<("0x[0-9A-Fa-f]*"|[^">]*)> : tensor<([^>]*)>')
_ELEMENT = re.compile(r"[^\[\],\s]+")
_NUMBER = re.compile(r"(?:.*x)?(ui|i|f)(8|16|32|64)")
_KINDS = {"ui": "u", "i": "i", "f": "f"}


def constants_of_code(code: bytes) -> Sequence[Constant]:
    """Return the constants of a code: single elements by type, each array for itself.

    Args:
        code: StableHLO text, compressed.

    Example:
        >>> from mplang_core.ext import pack
        >>> text = "%0 = stablehlo.constant dense<7> : tensor<i64>"
        >>> [(each.type, each.shown) for each in constants_of_code(pack(text))]
        [('i64', '7')]
    """
    return list(_constants(unpack(code)))


def _constants(text: str) -> Iterator[Constant]:
    single: dict[str, dict[str, None]] = {}
    for match in _DENSE.finditer(text):
        value, kind = match.groups()
        if value.startswith('"'):
            yield _of_bytes(bytes.fromhex(value[3:-1]), kind)
            continue
        elements = _ELEMENT.findall(value)
        if len(elements) == 1:
            single.setdefault(kind, {})[elements[0]] = None
        else:
            yield _of_elements(kind, elements)
    for kind, found in single.items():
        yield _of_elements(kind, list(found))


def _of_elements(kind: str, elements: Sequence[str]) -> Constant:
    """Return a constant of elements as MLIR writes them, which are not strings."""
    made = Constant.of_values("", kind, elements)
    return made._replace(first=tuple(each.strip('"') for each in made.first))


def _of_bytes(data: bytes, kind: str) -> Constant:
    number = _NUMBER.fullmatch(kind)
    dtype = np.dtype(f"<{_KINDS[number[1]]}{int(number[2]) // 8}") if number else np.dtype("u1")
    if len(data) % dtype.itemsize:
        dtype = np.dtype("u1")
    return Constant.of_array("", kind, np.frombuffer(data, dtype))
