"""What goes over the wire: values, requests and answers, as MessagePack."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import msgspec
from mplang_core import MPLangError
from mplang_core.ext import Failure, PartyState, WireError, codec, parse_base_type, type_of
from mplang_trace import Span


class Packed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value: its type as text, and what its codec wrote."""

    kind: str
    header: dict[str, Any]
    buffers: list[memoryview]


Value: TypeAlias = bool | bytes | Packed | None


def pack(value: Any) -> Value:
    """Write a value of any type that has a codec.

    Example:
        >>> import numpy as np
        >>> unpack(pack(np.array([1, 2])))
        array([1, 2])
    """
    if value is None or isinstance(value, bool | bytes):
        return value
    kind = type_of(value)
    header, buffers = codec.encode(kind, value)
    views = [memoryview(part) for part in buffers]
    return Packed(str(kind), dict(header), views)


def unpack(value: Value) -> Any:
    """Read a value. Nothing in it is believed: its codec checks."""
    if not isinstance(value, Packed):
        return value
    try:
        kind = parse_base_type(value.kind)
    except (MPLangError, TypeError, ValueError, RecursionError) as error:
        raise WireError(f"no type of a value: {error}") from None
    return codec.decode(kind, value.header, value.buffers)


class Request(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What a party is asked: the class is the method, and says what the answer is."""

    gives: ClassVar[Any] = None


class Send(Request):
    """Take in a message of another party."""

    sender: int
    key: str
    value: Value


class Abort(Request):
    """End all waiting in a run."""

    run: str
    reason: str


class Begin(Request):
    """Accept messages of a run; free values that the host has dropped."""

    run: str
    dropped: list[str]


class Ran(msgspec.Struct):
    """The names of a run's results; what it noted, and the time when it ended, if it was to."""

    results: list[str | None]
    spans: list[Span]
    dropped: int
    clock: float


class Run(Request):
    """Run a program on values that are here, by name, or given.

    Kernels keep what they need for a ``session``; after a failure the host begins another.
    """

    gives = Ran
    run: str
    session: str
    program: bytes
    inputs: list[str | Packed | None]
    record: bool


class End(Request):
    """Accept no more messages of a run."""

    run: str


class Fetch(Request):
    """Give the data of a value of a host, if it is plain."""

    gives = Value
    host: str
    name: str


class State(Request):
    """Tell what is done for a host now."""

    gives = PartyState
    host: str


class Leave(Request):
    """Free all that belongs to a host."""

    host: str


class Answer(msgspec.Struct, frozen=True):
    """What a request gives, or why it failed."""

    done: msgspec.Raw
    failure: Failure | None = None


encode = msgspec.msgpack.Encoder().encode
_read = {  # made at import, as threads read later
    kind: msgspec.msgpack.Decoder(kind).decode
    for kind in (Send, Abort, Begin, Run, End, Fetch, State, Leave, Answer, Ran, PartyState, None)
} | {Value: msgspec.msgpack.Decoder(Value).decode}


def decode(kind: Any, data: bytes | msgspec.Raw) -> Any:
    """Read a message, strictly.

    Raises:
        WireError: it is none of that kind.
    """
    try:
        return _read[kind](data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireError(f"no {kind}: {error}") from None
