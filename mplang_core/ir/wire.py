"""Wire format of programs: canonical MessagePack with a version.

``docs/wire.md`` describes how to extend it.

History
-------
1 (2026-11-21)
    First version. An envelope ``[magic, version, name, mask, types, graph, buffers]``. Types
    are text, each written once. Constants and other bytes are buffers, each written once.
    Values are numbered per graph, inputs first. Extension 1 is a base type (its text), 2 a
    mask (little-endian bits), 3 a tensor (type and buffer), 4 bytes (buffer).

The digest is SHA-256 over the same envelope with an empty name and ``DIGEST_VERSION``, without
locations, and with the SHA-256 of each buffer in its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, assert_never, get_args

import msgspec
import numpy as np
from msgspec.msgpack import Ext

from mplang_core.errors import MPLangError, WireError
from mplang_core.ir.attrs import AttrValue, AttrVisitor, normalize
from mplang_core.ir.graph import AnyType, Graph, Location, Operation, Program, Value, digest_of
from mplang_core.ir.parser import MAX_DEPTH, parse_attribute, parse_base_type, parse_type
from mplang_core.mask import Mask
from mplang_core.types import Attribute, TensorType, array_from

MAGIC = "mplang"
WIRE_VERSION = 1
OLDEST_VERSION = 1
DIGEST_VERSION = 1  # not WIRE_VERSION: old programs keep their digests in a new version
MAX_BYTES = 1 << 31
MAX_MASK_BYTES = 1 << 13
MAX_LIST = 1 << 16  # operands or results of an op, attributes of it, types of a program
MAX_ITEMS = 300_000  # items in the attributes of a program
MAX_VALUES = 1_000_000  # results of all ops

_T = TypeVar("_T")

ExtensionCode: TypeAlias = Literal[1, 2, 3, 4]
"""Codes of the MessagePack extensions; the history says what each holds."""

_TYPE: Final = 1
_MASK: Final = 2
_TENSOR: Final = 3
_BYTES: Final = 4
_CODES: Mapping[int, ExtensionCode] = {code: code for code in get_args(ExtensionCode)}


_Indices: TypeAlias = Annotated[list[int], msgspec.Meta(max_length=MAX_LIST)]
_Line: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=10**9)]  # as text has it


class _Op(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    opcode: str
    inputs: _Indices
    types: _Indices
    attrs: dict[str, Any]
    regions: list[tuple[str, _Graph]]
    location: tuple[str, _Line] | None


class _Graph(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    inputs: list[int]
    ops: list[_Op]
    outputs: list[int]


class _Envelope(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    magic: str
    version: int
    name: str
    mask: bytes
    types: Annotated[list[str], msgspec.Meta(max_length=MAX_LIST)]
    graph: _Graph
    buffers: list[bytes]


class _Head(msgspec.Struct, array_like=True):
    magic: str
    version: int


_encoder = msgspec.msgpack.Encoder(order="deterministic")


def to_bytes(program: Program, *, locations: bool = True) -> bytes:
    """Serialize a program.

    Args:
        program: the program.
        locations: whether to keep source lines (file name and line, no path).

    Returns:
        Canonical bytes: equal programs give equal bytes.
    """
    return _encoder.encode(_Writer(locations).envelope(program))


def digest(program: Program) -> str:
    """Return the SHA-256 of the canonical bytes in hex; see the module's docstring."""
    envelope = _Writer(locations=False).envelope(program)
    envelope.name, envelope.version = "", DIGEST_VERSION
    envelope.buffers = [hashlib.sha256(data).digest() for data in envelope.buffers]
    return hashlib.sha256(_encoder.encode(envelope)).hexdigest()


def from_bytes(data: bytes | memoryview) -> Program:
    """Deserialize a program; the inverse of :func:`to_bytes`.

    Args:
        data: untrusted bytes.

    Returns:
        The program, not verified; see :func:`mplang_core.verify`.

    Raises:
        WireError: the bytes are damaged, have another version, or are not a program.
    """
    if len(data) > MAX_BYTES:
        raise WireError(f"a program has at most {MAX_BYTES} bytes, got {len(data)}")
    try:
        head = _head_decoder.decode(data)
        if head.magic != MAGIC:
            raise WireError(f"expected a program of mplang, got one of {head.magic[:20]!r}")
        if not OLDEST_VERSION <= head.version <= WIRE_VERSION:
            raise _other_version(head.version)
        return _Reader(_decoder.decode(data)).program()
    except MPLangError as error:
        if isinstance(error, WireError):
            raise
        raise WireError(f"damaged program: {error}") from error
    except (msgspec.MsgspecError, RecursionError, TypeError, ValueError, LookupError) as error:
        raise WireError(f"damaged program: {error}") from error


class _Writer(AttrVisitor[object]):
    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.types: dict[str, int] = {}
        self.buffers: dict[bytes, int] = {}
        self._type_index: dict[AnyType, int] = {}

    def envelope(self, program: Program) -> _Envelope:
        graph = self.graph(program.graph)
        return _Envelope(
            magic=MAGIC,
            version=WIRE_VERSION,
            name=program.name,
            mask=_mask_bytes(program.mask),
            types=list(self.types),
            graph=graph,
            buffers=list(self.buffers),
        )

    def graph(self, graph: Graph) -> _Graph:
        ids = {value: i for i, value in enumerate(graph.inputs)}
        inputs = [self.type(value) for value in graph.inputs]
        ops = [self.op(op, ids) for op in graph.ops]
        return _Graph(inputs, ops, [ids[value] for value in graph.outputs])

    def op(self, op: Operation, ids: dict[Value, int]) -> _Op:
        inputs = [ids[value] for value in op.inputs]
        for value in op.outputs:
            ids[value] = len(ids)
        location = None
        if self.locations and op.location is not None:
            location = (op.location.name, op.location.line)
        return _Op(
            op.opcode,
            inputs,
            [self.type(value) for value in op.outputs],
            {name: self.visit(op.attrs[name]) for name in sorted(op.attrs)},
            [(name, self.graph(region)) for name, region in op.regions.items()],
            location,
        )

    def type(self, value: Value) -> int:
        if (index := self._type_index.get(value.type)) is None:
            index = self.types.setdefault(str(value.type), len(self.types))
            self._type_index[value.type] = index
        return index

    def buffer(self, data: bytes) -> int:
        return self.buffers.setdefault(data, len(self.buffers))

    # -- attributes

    def _plain(self, value: object) -> object:
        return value

    visit_bool = visit_int = visit_float = visit_str = _plain

    def visit_none(self) -> object:
        return None

    def visit_bytes(self, value: bytes) -> object:
        return Ext(_BYTES, _encoder.encode((self.buffer(value),)))

    def visit_tuple(self, value: tuple[AttrValue, ...]) -> object:
        return [self.visit(item) for item in value]

    def visit_array(self, value: np.ndarray[Any, Any]) -> object:
        payload = (str(TensorType.of(value)), self.buffer(value.tobytes()))
        return Ext(_TENSOR, _encoder.encode(payload))

    def visit_mask(self, value: Mask) -> object:
        return Ext(_MASK, _mask_bytes(value))

    def visit_type(self, value: Attribute) -> object:
        return Ext(_TYPE, str(value).encode())

    def visit_mapping(self, value: Mapping[str, AttrValue]) -> object:
        return {name: self.visit(value[name]) for name in value}


class _Extended:
    """Decoded MessagePack extension; the reader resolves it when it has the buffers."""

    def __init__(self, code: int, data: memoryview) -> None:
        self.code, self.data = code, bytes(data)


# created at import: msgspec crashes if two threads create decoders of one type at a time
_head_decoder = msgspec.msgpack.Decoder(_Head)
_decoder = msgspec.msgpack.Decoder(_Envelope, ext_hook=_Extended)


class _Reader:
    def __init__(self, envelope: _Envelope) -> None:
        self.envelope = envelope
        self.types = [parse_type(text) for text in envelope.types]
        self.depth = 0
        self.items = self.values = 0

    def program(self) -> Program:
        mask = _mask(self.envelope.mask)
        return Program(self.envelope.name, mask, self.graph(self.envelope.graph))

    def graph(self, wire: _Graph) -> Graph:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise WireError(f"nested deeper than {MAX_DEPTH}")
        values = [self.value(index) for index in wire.inputs]
        graph = Graph(inputs=list(values))
        for op in wire.ops:
            graph.ops.append(self.op(op, values))
        graph.outputs = [_pick(values, i) for i in wire.outputs]
        self.depth -= 1
        return graph

    def op(self, wire: _Op, values: list[Value]) -> Operation:
        inputs = tuple(_pick(values, i) for i in wire.inputs)
        self.values += len(wire.types)
        if self.values > MAX_VALUES:
            raise WireError(f"the ops of a program have at most {MAX_VALUES} results")
        outputs = tuple(self.value(index) for index in wire.types)
        values.extend(outputs)
        return Operation(
            wire.opcode,
            inputs,
            outputs,
            {name: self.attr(value) for name, value in wire.attrs.items()},
            self.regions(wire.regions),
            Location(*wire.location) if wire.location is not None else None,
        )

    def regions(self, wire: list[tuple[str, _Graph]]) -> dict[str, Graph]:
        regions = {name: self.graph(graph) for name, graph in wire}
        if len(regions) != len(wire):
            raise WireError("a region is given twice")
        return regions

    def value(self, index: int) -> Value:
        return Value(_pick(self.types, index))

    def attr(self, value: Any, depth: int = 0) -> AttrValue:
        if self.depth + depth > MAX_DEPTH:
            raise WireError(f"nested deeper than {MAX_DEPTH}")
        self.items += 1
        if self.items > MAX_ITEMS:
            raise WireError(f"the attributes of a program have at most {MAX_ITEMS} items")
        if isinstance(value, _Extended):
            return self.extension(value)
        if isinstance(value, list):
            return tuple(self.attr(item, depth + 1) for item in value)
        if isinstance(value, dict):
            return normalize({key: self.attr(item, depth + 1) for key, item in value.items()})
        if isinstance(value, bytes):
            raise WireError("bytes stand in a buffer, not in place")
        return normalize(value)

    def extension(self, ext: _Extended) -> AttrValue:
        if (code := _CODES.get(ext.code)) is None:
            raise _unknown(ext.code)
        if code == _TYPE:
            return parse_attribute(ext.data.decode())
        if code == _MASK:
            return _mask(ext.data)
        if code == _BYTES:
            (index,) = msgspec.msgpack.decode(ext.data, type=tuple[int])
            return _pick(self.envelope.buffers, index)
        if code == _TENSOR:
            text, index = msgspec.msgpack.decode(ext.data, type=tuple[str, int])
            kind = parse_base_type(text)
            if not isinstance(kind, TensorType):
                raise WireError(f"a constant is a tensor, not {kind}")
            return normalize(array_from(_pick(self.envelope.buffers, index), kind))
        assert_never(code)


def _other_version(version: int) -> WireError:
    newer = "its writer is newer: upgrade mplang-core here, or " if version > WIRE_VERSION else ""
    return WireError(
        f"the program has wire version {version}, this mplang-core reads {_versions()}; "
        f"{newer}use the same mplang-core on both sides"
    )


def _unknown(code: int) -> WireError:
    return WireError(
        f"unknown extension {code}; this mplang-core reads {_versions()} with the extensions "
        f"{', '.join(map(str, _CODES))}. The program is damaged, or its "
        "writer is newer: use the same mplang-core on both sides"
    )


def _versions() -> str:
    if OLDEST_VERSION == WIRE_VERSION:
        return f"version {WIRE_VERSION}"
    return f"versions {OLDEST_VERSION} to {WIRE_VERSION}"


def _pick(items: Sequence[_T], index: int) -> _T:
    if not 0 <= index < len(items):
        raise WireError(f"index {index} of {len(items)}")
    return items[index]


def _mask_bytes(mask: Mask) -> bytes:
    return mask.bits.to_bytes((mask.bits.bit_length() + 7) // 8, "little")


def _mask(data: bytes) -> Mask:
    if len(data) > MAX_MASK_BYTES or data[-1:] == b"\0":
        raise WireError("no canonical mask")
    return Mask(int.from_bytes(data, "little"))


digest_of.register(Program, digest)
