"""Canonical StableHLO text: its limits, and the signature of its ``main``. Imports no JAX.

The text is untrusted. It is scanned in linear time, without regular expressions, before any parser
reads it. MLIR's parser recurses over brackets, and crashes on deep nesting; it keeps numbers on the
stack, and takes quadratic time for long ones.
"""

from __future__ import annotations

import functools
import hashlib
import string
import threading
from collections import OrderedDict
from typing import NamedTuple, TypeAlias

import numpy as np

from mplang_core import DType, TensorType
from mplang_core.ext import MAX_CODE, unpack
from mplang_stablehlo.nesting import check_nesting

MAX_DEPTH = 200  # nested brackets; code that JAX writes has some dozens
MAX_WORD = 1000  # characters of a name or a number outside of strings
MAX_VALUES = 4096  # operands and results
MAX_FUNCTIONS = 5000
MAX_RANK = 64
MAX_KNOWN = 1024

Signature: TypeAlias = tuple[tuple[TensorType, ...], tuple[TensorType, ...]]
"""Types of the operands and of the results of a code."""

_MODULE = ("module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {",
           "module @main {")  # fmt: skip
_MAIN, _END = "  func.func public @main(", " {"
_FORBIDDEN = {
    "\\": "escapes",
    "//": "comments",
    "{-#": "resources",
    "dense_resource": "resources",
    "!": "types of other dialects",
    "loc(": "source lines",
    "affine_": "affine maps",
}
# Aliases have names without a dot, and nothing in brackets; the precision is a convolution's.
_DIALECTS = (b"stablehlo.", b"sdy.", b"stablehlo<precision ")
_WORD, _DIGIT = np.zeros(256, bool), np.zeros(256, bool)
_DIGIT[list(string.digits.encode())] = True
_WORD[list(string.ascii_letters.encode() + string.digits.encode() + b"_.$")] = True
_ELEMENTS = {"i1": "bool", **{f"ui{n}": f"u{n}" for n in (8, 16, 32, 64)}}
_ELEMENTS |= {"complex<f32>": "c64", "complex<f64>": "c128"}
_INEXACT = ("f8", "f16", "f32", "f64", "complex", "custom_call", "rng")
"""Marks of what may differ between machines, also where they are but part of a name."""
_HEAVY = (
    *("case", "cholesky", "convolution", "custom_call", "dot_general", "fft", "gather", "if"),
    *("reduce", "rng_bit_generator", "scatter", "select_and_scatter", "sort", "triangular_solve"),
    "while",
)
_WRITTEN = {name: text for text, name in _ELEMENTS.items()}

Bytes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]
Flags: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Facts(NamedTuple):
    """Metadata of a data set that stays at its source.

    Attributes:
        signature: the types of its operands and results.
        lines: the lines of its text.
        is_exact: whether it gives the same on every machine: it has integers and bools only.
        is_light: whether it is quick to compile: it moves elements, or computes each by itself.
    """

    signature: Signature
    lines: int
    is_exact: bool
    is_light: bool


_known: OrderedDict[bytes, Facts] = OrderedDict()  # by digest, since code may be large
_lock = threading.Lock()


@functools.lru_cache(maxsize=1)  # it is asked for the signature of a code, and then for the code
def read(code: bytes, largest: int = MAX_CODE) -> str:
    """Decompress a code, and check the limits that a parser needs.

    Args:
        code: compressed text.
        largest: the maximum size of the text in bytes.

    Returns:
        The text.

    Raises:
        ValueError: the text is too large, nests too deeply, has words that are too long, or
            something that canonical text never has: escapes, comments, resources, source lines, ….
    """
    text = unpack(code, largest)
    for mark, what in _FORBIDDEN.items():
        if mark in text:
            raise ValueError(f"the code has {what}; canonical StableHLO has none")
    if text.count("func.func") > MAX_FUNCTIONS:
        raise ValueError(f"the code has over {MAX_FUNCTIONS} functions")
    check_nesting(text, MAX_DEPTH)
    data = np.frombuffer(text.encode() + bytes(max(map(len, _DIALECTS))), np.uint8)
    quoted = np.cumsum(data == ord('"')) % 2 == 1
    _check_words(data, quoted)
    _check_aliases(data, quoted)
    return text


def _check_words(data: Bytes, quoted: Flags) -> None:
    between = np.flatnonzero(quoted | ~_WORD[data])
    longest = np.diff(between, prepend=-1).max() - 1
    if longest > MAX_WORD:
        raise ValueError(f"the code has a name or a number of {longest} characters")


def _check_aliases(data: Bytes, quoted: Flags) -> None:
    """Refuse attribute aliases: a few of them may expand beyond any memory.

    A hash begins an attribute of a dialect, or selects one of several results, as in ``%0#1``.
    """
    hashes = np.flatnonzero((data == ord("#")) & ~quoted)
    known = _WORD[data[hashes - 1]] & _DIGIT[data[hashes + 1]]
    for dialect in _DIALECTS:
        known |= np.all([data[hashes + 1 + i] == mark for i, mark in enumerate(dialect)], axis=0)
    if not known.all():
        raise ValueError("the code has aliases; canonical StableHLO has none")


def signature_of(code: bytes) -> Signature:
    r"""Return the operand and result types of a code's ``main``.

    Raises:
        ValueError: the text exceeds a limit of :func:`read`, or does not begin with a ``main`` on
            static tensors, as ``jax.compile`` writes it.

    Example:
        >>> from mplang_core.ext import pack
        >>> text = "module @main {\n  func.func public @main(%arg0: tensor<2xf32>) {\n"
        >>> operands, results = signature_of(pack(text))
        >>> print(*operands, results)
        f32[2] ()
    """
    return facts_of(code).signature


def facts_of(code: bytes) -> Facts:
    """Return what passes ask of a code.

    Raises:
        ValueError: as in :func:`signature_of`.
    """
    key = hashlib.sha256(code).digest()
    with _lock:
        found = _known.get(key)
    if found is None:
        text = read(code)
        exact = not any(mark in text for mark in _INEXACT)
        light = not any(f"stablehlo.{op}" in text for op in _HEAVY)
        found = Facts(_signature(text), text.count("\n"), exact, light)
        with _lock:
            _known[key] = found
            if len(_known) > MAX_KNOWN:
                _known.popitem(last=False)
    return found


def _signature(text: str) -> Signature:
    module, main, *_ = [*text.split("\n", 2), "", ""]
    if module not in _MODULE or not main.startswith(_MAIN) or not main.endswith(_END):
        raise ValueError("the code is not StableHLO as jax.compile writes it, with @main first")
    operands, _, results = main.removeprefix(_MAIN).removesuffix(_END).partition(")")
    results = results.removeprefix(" -> ")
    if results.startswith("("):
        results = results[1:].removesuffix(")")
    arguments = _listed(operands)
    kinds = [_tensor(argument.partition(": ")[2]) for argument in arguments]
    names = [argument.partition(": ")[0] for argument in arguments]
    if names != [f"%arg{i}" for i in range(len(names))]:
        raise ValueError("the arguments of @main are not %arg0, %arg1, …")
    return tuple(kinds), tuple(map(_tensor, _listed(results)))


def text_of_type(kind: TensorType) -> str:
    """Return a type as StableHLO writes it.

    Example:
        >>> print(text_of_type(TensorType("u8", (2, 3))), text_of_type(TensorType("c64")))
        tensor<2x3xui8> tensor<complex<f32>>
    """
    element = kind.dtype.value
    return f"tensor<{''.join(f'{n}x' for n in kind.shape)}{_WRITTEN.get(element, element)}>"


def _listed(text: str) -> list[str]:
    if text.count(", ") >= MAX_VALUES:
        raise ValueError(f"a code has at most {MAX_VALUES} operands and as many results")
    return text.split(", ") if text else []


def _tensor(text: str) -> TensorType:
    """Parse a type such as ``tensor<2x3xf32>``."""
    inner = text.removeprefix("tensor<").removesuffix(">")
    if len(inner) + len("tensor<>") != len(text):
        raise ValueError(f"{text[:100]!r} is not a static tensor")
    dims: list[int] = []
    while "x" in inner.removeprefix("complex") and len(dims) < MAX_RANK:
        size, _, inner = inner.partition("x")
        if not (size.isascii() and size.isdigit() and len(size) < 20):
            raise ValueError(f"{text[:100]!r} is not a static tensor")
        dims.append(int(size))
    return TensorType(DType(_ELEMENTS.get(inner, inner)), dims)
