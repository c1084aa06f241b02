"""The op ``jax.run``. Its types come from the code itself, which is why it can be verified."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from mplang_core import DType, Mask, TensorType
from mplang_core.ir import AnyType, Attr, Effects, OpDef, Operation
from mplang_core.ir.code import unpack

__all__ = ["RUN", "signature"]

MAX_DEPTH = 200  # of brackets; real code has some dozens
MAX_KNOWN = 1024

Signature: TypeAlias = tuple[tuple[TensorType, ...], tuple[TensorType, ...]]
"""The types that a code takes, and those that it gives."""

_HEAD = re.compile(r"module @main(?: attributes \{[^{}\n]*\})? \{")
_MAIN = re.compile(r"  func\.func public @main\(([^()]*)\)(?: -> (?:\(([^()]*)\)|([^(){]*)))? \{")
_FUNCTION = re.compile(r"^  func\.func \w+ @([\w.]+)\(", re.MULTILINE)
_CALL = re.compile(r"\bcall @([\w.]+)\(")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-z]+\d*(?:<f\d+>)?)>")
_ELEMENTS = {"i1": "bool", **{f"ui{n}": f"u{n}" for n in (8, 16, 32, 64)}}
_ELEMENTS |= {"complex<f32>": "c64", "complex<f64>": "c128"}


_known: OrderedDict[bytes, Signature] = OrderedDict()  # by digest: the code itself may be large
_lock = threading.Lock()


def signature(code: bytes) -> Signature:
    """Return the types that the code takes and gives, read from its ``main``.

    Reads canonical text only, as ``jax.compile`` writes it, and refuses what would make a
    parser or a compiler end the process: brackets without end, escapes, recursion.

    Raises:
        ValueError: it is no such text, or has no such function, or one of other types.
    """
    key = hashlib.sha256(code).digest()
    with _lock:
        found = _known.get(key)
    if found is None:
        found = _read(unpack(code))
        with _lock:
            _known[key] = found
            if len(_known) > MAX_KNOWN:
                _known.popitem(last=False)
    return found


def _read(text: str) -> Signature:
    _check_text(text)
    head, _, rest = text.partition("\n")
    main = _MAIN.fullmatch(rest.partition("\n")[0])
    if _HEAD.fullmatch(head) is None or main is None:
        raise ValueError("the code is no StableHLO as jax.compile writes it, with @main first")
    return _tensors(main.group(1)), _tensors(main.group(2) or main.group(3) or "")


def _check_text(text: str) -> None:
    if "\\" in text or "//" in text:
        raise ValueError("the code has escapes or comments; canonical StableHLO has none")
    depth = 0
    for mark in re.findall(r"[][(){}<>]|->", text):
        depth += (mark in "[({<") - (mark in "])}>")
        if depth > MAX_DEPTH:
            raise ValueError(f"the code is nested deeper than {MAX_DEPTH}")
    calls = {name: set(_CALL.findall(body)) for name, body in _functions(text)}
    while calls:
        leaves = {name for name, called in calls.items() if not called & calls.keys()}
        if not leaves:
            raise ValueError(f"the functions {sorted(calls)} call each other in circles")
        calls = {name: called for name, called in calls.items() if name not in leaves}


def _functions(text: str) -> Iterator[tuple[str, str]]:
    found = list(_FUNCTION.finditer(text))
    for i, match in enumerate(found):
        end = found[i + 1].start() if i + 1 < len(found) else len(text)
        yield match.group(1), text[match.end() : end]


def _tensors(text: str) -> tuple[TensorType, ...]:
    found = tuple(
        TensorType(DType(_ELEMENTS.get(element, element)), [int(d) for d in dims.split("x")[:-1]])
        for dims, element in _TENSOR.findall(text)
    )
    if len(found) != text.count("tensor<"):
        raise ValueError(f"the code has types that are no static tensors: {text[:200]}")
    return found


def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    takes, gives = signature(op.attrs["code"])
    found = tuple(value.type for value in op.inputs)
    if found != takes:
        raise TypeError(f"the code takes ({_list(takes)}), got ({_list(found)})")
    return gives


def _list(types: Sequence[object]) -> str:
    return ", ".join(map(str, types))


RUN = OpDef(
    "jax.run",
    _infer,
    attrs={
        "code": Attr(bytes, doc="StableHLO text, zlib-compressed"),
        "x64": Attr(bool, doc="whether 64-bit types stay as they are"),
        "jax": Attr(str, doc="the version of JAX that made it"),
        "stablehlo": Attr(str, doc="the version of StableHLO that it is written in"),
    },
    doc="Runs StableHLO on XLA: tensors in, tensors out. No Python source is needed.",
    effects=Effects.NONE,
)
