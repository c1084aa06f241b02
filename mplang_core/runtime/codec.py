"""Codecs of values by type: a header of plain data, and buffers; decoding them runs no code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mplang_core.errors import RunError, WireError
from mplang_core.namespace import Namespace
from mplang_core.types import (
    BaseType,
    DType,
    Form,
    TableType,
    TensorType,
    array_from,
    array_of,
    frozen,
    is_table,
    type_classes,
)

Encoded: TypeAlias = tuple[Mapping[str, Any], Sequence[bytes | memoryview]]
"""A header of plain data (str, int, float, bool, lists of these), and buffers."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Encoder and decoder of the values of a type.

    Attributes:
        encode: ``encode(value)`` returns a header and buffers, without a copy if the memory of
            the value allows it.
        decode: ``decode(kind, header, buffers)`` returns the value. The header and the buffers
            are untrusted; it raises ``ValueError`` or ``TypeError`` if they do not fit the type.
        normalize: ``normalize(literal)`` returns what a user puts as a value of the type, for
            example a pandas frame as an Arrow table; ``TypeError`` or ``ValueError`` if it is none.
    """

    encode: Callable[[Any], Encoded]
    decode: Callable[[BaseType, Mapping[str, Any], Sequence[bytes | memoryview]], Any]
    normalize: Callable[[Any], Any] = lambda literal: literal


codecs: Namespace[Codec] = Namespace("codec")
"""Codecs by the name of their type (``tensor``, ``spu.share``, …)."""


def type_of(value: Any) -> BaseType:
    """Return the type that a value is of.

    Raises:
        WireError: nothing that is installed knows.

    Example:
        >>> print(type_of(np.zeros((2, 3), np.float32)))
        f32[2, 3]
    """
    if isinstance(value, np.ndarray | np.generic):
        return TensorType.of(value)
    kind = getattr(value, "type", None)
    if isinstance(kind, BaseType):
        return kind
    if is_table(value):
        return TableType(tuple((field.name, str(field.type)) for field in value.schema))
    for _, cls in type_classes:  # those of one class of values have no parameters
        if issubclass(cls, BaseType) and cls.mismatch is not BaseType.mismatch:
            with contextlib.suppress(TypeError, ValueError):
                made = cls.from_params(())
                if made.mismatch(value) is None:
                    return made
    raise WireError(
        f"a {type(value).__name__} has no type that is known, so it stays here", code="I004"
    )


def check_fetchable(value: Any) -> None:
    """Check that a party may give a value to a host: it is plain to whoever has it.

    Args:
        value: what the party holds.

    Raises:
        RunError: it is a share, a key, a ciphertext or a handle.
        WireError: nothing that is installed knows its type.
    """
    form = type_of(value).form
    if form is not Form.PLAIN:
        raise RunError(f"a {form.value} stays at its party; reveal it in the program", code="D003")


def value_of(literal: Any) -> Any:
    """Return what a user gives as a value: an immutable array, an Arrow table, a plugin's value.

    Raises:
        TypeError: it is none.
        ValueError: it is a table with columns that are not supported.

    Example:
        >>> value_of([1.0, 2.0])
        array([1., 2.])
    """
    if is_table(literal):
        return _codec(TableType(())).normalize(literal)
    if isinstance(getattr(literal, "type", None), BaseType):
        return literal
    try:
        return frozen(array_of(literal))
    except TypeError:
        if not isinstance(literal, np.ndarray):
            with contextlib.suppress(WireError):
                type_of(literal)
                return literal
        raise


def encode(kind: BaseType, value: Any) -> Encoded:
    """Encode a value.

    Args:
        kind: the type of the value.
        value: a value of that type; for a tensor an array of its shape and dtype.

    Returns:
        The header and the buffers.

    Raises:
        WireError: the type has no codec, or the value is not of the type.

    Example:
        >>> kind = TensorType("i32", (2,))
        >>> header, buffers = encode(kind, np.array([1, 2], np.int32))
        >>> decode(kind, header, buffers)
        array([1, 2], dtype=int32)
    """
    if wrong := kind.mismatch(value):
        raise WireError(f"cannot write a {kind}: {wrong}", code="I004")
    return _codec(kind).encode(value)


def decode(kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]) -> Any:
    """Decode a value.

    Args:
        kind: the expected type.
        header: the header, untrusted.
        buffers: the buffers, untrusted.

    Returns:
        A value of that type; arrays are read-only.

    Raises:
        WireError: the type has no codec, or the data is not a value of the type.
    """
    try:
        if not isinstance(header, Mapping):
            raise ValueError("its header is a map")
        if not all(isinstance(data, bytes | bytearray | memoryview) for data in buffers):
            raise ValueError("its buffers are bytes")
        value = _codec(kind).decode(kind, header, buffers)
    except (TypeError, ValueError, LookupError) as error:
        raise WireError(f"what came is not of type {kind}: {error}", code="I004") from error
    if wrong := kind.mismatch(value):
        raise WireError(f"what came is not of type {kind}: {wrong}", code="I004")
    return value


def _codec(kind: BaseType) -> Codec:
    if (found := codecs.get(kind.name)) is None:
        raise WireError(
            f"there is no codec for values of type {kind.name!r} here, so they stay at their "
            "party; a worker has those of the packages that its `plugins` name",
            code="I004",
        )
    return found


def _encode_tensor(value: Any) -> Encoded:
    flat = np.ravel(np.asarray(value, DType.of(value.dtype).numpy)).view(np.uint8)
    return {"dtype": DType.of(value.dtype).value, "shape": list(value.shape)}, [flat.data]


def _decode_tensor(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> Any:
    assert isinstance(kind, TensorType)
    (data,) = buffers
    found = TensorType(DType(header["dtype"]), header["shape"])
    if found != kind:
        raise ValueError(f"it is a {found}")
    return frozen(array_from(bytes(data), kind))


codecs.add("tensor", Codec(_encode_tensor, _decode_tensor), provider="mplang-core")
