"""Serialization of spans that a worker sends to the host."""

from __future__ import annotations

import math

import msgspec
from mplang_trace import Span, SpanRecorder

from mplang_core.ext import WireError
from mplang_http.wire.values import Buffer

MAX_SPANS = 256 << 20  # bytes that a host accepts


class Spans(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Spans of a party in one run, and the number of spans that were dropped."""

    spans: list[Span]
    dropped: int


_decoder = msgspec.msgpack.Decoder(Spans)


def write_spans(recorder: SpanRecorder) -> bytes:
    """Serialize the spans that were recorded so far."""
    return msgspec.msgpack.encode(Spans(list(recorder.spans), recorder.dropped))


def read_spans(data: Buffer) -> Spans:
    """Deserialize and validate the spans of a party.

    Raises:
        WireError: the data is malformed.
    """
    try:
        found = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"no spans: {error}", code="L005") from None
    for span in found.spans:
        if not (math.isfinite(span.begin) and 0 <= span.duration < math.inf):
            raise WireError("a span has no valid begin or duration", code="L005")
        if span.kind not in ("program", "op") and not isinstance(span.facts.get("peer"), int):
            raise WireError("the span of a message names no peer", code="L005")
    return found
