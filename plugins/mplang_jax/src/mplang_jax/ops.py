"""The op ``jax.run``. Its types come from the code itself, which is why it can be verified."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from mplang_core import DType, Mask, TensorType
from mplang_core.ir import AnyType, Attr, OpDef, Operation
from mplang_core.ir.code import unpack

__all__ = ["RUN", "signature"]

_MAIN = re.compile(r"func\.func public @main\((.*?)\)(?: -> (.*?))? (?:attributes .*?)?\{\n")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-z]+\d*(?:<f\d+>)?)>")
_ELEMENTS = {"i1": "bool", **{f"ui{n}": f"u{n}" for n in (8, 16, 32, 64)}}
_ELEMENTS |= {"complex<f32>": "c64", "complex<f64>": "c128"}


@functools.lru_cache(maxsize=1024)
def signature(code: bytes) -> tuple[tuple[TensorType, ...], tuple[TensorType, ...]]:
    """Return the types that the code takes and gives, read from its ``main``.

    Raises:
        ValueError: it has no such function, or one of other types.
    """
    main = _MAIN.search(unpack(code))
    if main is None:
        raise ValueError("the code is no StableHLO with a public function @main")
    return _tensors(main.group(1)), _tensors(main.group(2) or "")


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
)
