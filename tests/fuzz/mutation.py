"""Structure-aware mutation: decode an input by its format, change a node, and encode it again.

Formats nest: a program within an artifact, SQL within a program, a certificate within JSON. A node
of bytes or text is mutated by its own format, so that one mutator serves all targets.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from mplang_cli.artifact.container import MAGIC, close
from mplang_http.wire.values import join_frame, split_frame
from mplang_worker.link.frames import PREFIX
from msgspec.msgpack import Ext

MAX_BYTES = 1 << 18
INNER = 16  # bytes of what may have a format of its own, and is changed more often
NUMBERS = [0, 1, -1, 2, 7, 63, 64, 65, 127, 128, 255, 256, 4096, 65535, 65536, 1 << 20, 1 << 31]
NUMBERS += [(1 << 32) - 1, 1 << 53, (1 << 63) - 1, -(1 << 63), (1 << 64) - 1]
FLOATS = [0.0, -0.0, 1e308, 5e-324, float("inf"), float("-inf"), float("nan")]
MARKS = list("{}[]()<>=:,@?.;'\"%#!/\\*+- \n\0\u00e9\ud7ff\U0001f600")
WORDS = [
    *MARKS, "->", "-1", "0", "1", "64", "99999999999999999999", "1e999", "none", "true", "inf",
    "nan", "NULL", "i1", "f32", "f64[]", "i64[3]", "tensor", "tensor<0xf32>", "tensor<?xf32>",
    "spu.share", "crypto.ciphertext", "table", "{0}", "{0,1}", "{65535}", "dense<1>", "dict{}",
    "func.call", "stablehlo.add", "return", "module", "x", "t0", "SELECT", "FROM", "WITH",
]  # fmt: skip


@dataclass(frozen=True)
class Format:
    """Format of bytes.

    Attributes:
        read: decodes bytes to a tree; raises an exception if they are of another format.
        write: encodes a tree; raises an exception if it cannot.
    """

    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]


def _read_artifact(data: bytes) -> Any:
    assert data.startswith(MAGIC)
    return [data[52:]]


_FIRST_LINE = re.compile(rb"[A-Z]+ \S* HTTP/1\.1\r\n")


def _read_request(data: bytes) -> Any:
    assert _FIRST_LINE.match(data)
    head, _, body = data.partition(b"\r\n\r\n")
    return [*(line.decode("latin-1") for line in head.split(b"\r\n")), body]


def _write_request(tree: Any) -> bytes:
    """Write a request with the length of its body, and the body's hash where the path has one."""
    *lines, body = tree
    body = body if isinstance(body, bytes) else str(body).encode()
    lines = [str(line) for line in lines]
    if lines and len(body) % 8:  # else they stay wrong
        digest = hashlib.sha256(body).hexdigest()
        lines[0] = re.sub(r"/programs/[0-9a-f]{64}", f"/programs/{digest}", lines[0])
        lines = [re.sub(r"^(content-length: ?).*", rf"\g<1>{len(body)}", line) for line in lines]
    return "\r\n".join([*lines, "", ""]).encode(errors="replace") + body


_PEM = re.compile(r"(?s)-----BEGIN ([A-Z ]+)-----\n(.+?)-----END \1-----\n")


def _read_pem(data: bytes) -> Any:
    found = _PEM.fullmatch(data.decode("ascii"))
    assert found
    return [found[1], base64.b64decode(found[2])]


def _write_pem(tree: Any) -> bytes:
    label, der = tree
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n".encode()


def _read_der(data: bytes) -> Any:
    """Decode DER to nested lists ``[tag, content, …]``."""
    items, at = [], 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size > 127:
            width = size - 128
            size, at = int.from_bytes(data[at : at + width], "big"), at + width
        content = data[at : at + size]
        assert len(content) == size
        items.append([tag, _read_der(content) if tag & 0x20 else content])
        at += size
    return items


def _write_der(tree: Any) -> bytes:
    parts = []
    for tag, content in tree:
        inner = _write_der(content) if isinstance(content, list) else content
        length = len(inner).to_bytes(4, "big").lstrip(b"\0")
        size = bytes([len(inner)]) if len(inner) < 128 else bytes([128 + len(length)]) + length
        parts += [bytes([tag % 256]), size, inner]
    return b"".join(parts)


def _read_certificate(data: bytes) -> Any:
    assert data[:2] in (b"\x30\x81", b"\x30\x82", b"\x30\x59")
    return _read_der(data)


def _read_json(data: bytes) -> Any:
    assert data[:1] in (b"{", b"[")
    return json.loads(data)


def _read_code(data: bytes) -> Any:
    assert data[:1] == b"\x78"
    return [zlib.decompress(data)]


def _read_value(data: bytes) -> Any:
    packed = split_frame(data)
    return [*msgspec.to_builtins(packed.head), bytes(packed.body)]


def _write_value(tree: Any) -> bytes:
    """Write a framed value, whose sizes are those of its body if they would not add up."""
    *head, body = tree
    if len(head) == 3 and len(body) % 8 and isinstance(head[2], list) and head[2]:
        sizes = [size for size in head[2][:-1] if isinstance(size, int)]
        head[2] = [*sizes, max(0, len(body) - sum(sizes))]
    return join_frame(msgspec.msgpack.encode(head), [body])


def _read_frames(data: bytes) -> Any:
    """Decode the frames of a link; each is ``[kind, stream, key, head, size, body]``."""
    frames, at = [], 0
    while at < len(data):
        kind, stream, key, head, size = PREFIX.unpack_from(data, at)
        assert 0 < kind < 9
        at += PREFIX.size
        body = 0 if size > 1 << 20 else size
        parts = []
        for length in (key, head, body):
            parts.append(data[at : at + length])
            at += length
        frames.append([kind, stream, *parts[:2], size, parts[2]])
    assert frames
    assert at == len(data)
    return frames


def _write_frames(tree: Any) -> bytes:
    parts = []
    for kind, stream, key, head, size, body in tree:
        length = size if size > 1 << 20 or len(body) % 8 == 0 else len(body)
        prefix = PREFIX.pack(kind % 256, stream % (1 << 32), len(key), len(head), length)
        parts += [prefix, key, head, body]
    return b"".join(parts)


def _read_messagepack(data: bytes) -> Any:
    found = msgspec.msgpack.decode(data)
    assert isinstance(found, list | dict)
    return found


_TOKEN = re.compile(r"\s+|[^\W\d]\w*|\d+|\"[^\"]*\"|->|.", re.DOTALL)


def _read_text(data: bytes) -> Any:
    text = data.decode()
    assert sum(c.isprintable() or c == "\n" for c in text) > 0.9 * len(text)
    return [token.encode() for token in _TOKEN.findall(text)]


def _write_text(tree: Any) -> bytes:
    return b"".join(x if isinstance(x, bytes) else str(x).encode(errors="replace") for x in tree)


FORMATS: Sequence[Format] = (
    Format(_read_artifact, lambda tree: close(tree[0])),
    Format(_read_request, _write_request),
    Format(_read_pem, _write_pem),
    Format(_read_json, lambda tree: json.dumps(tree, ensure_ascii=False).encode(errors="replace")),
    Format(_read_code, lambda tree: zlib.compress(tree[0])),
    Format(_read_certificate, _write_der),
    Format(_read_value, _write_value),
    Format(_read_frames, _write_frames),
    Format(_read_messagepack, msgspec.msgpack.encode),
    Format(_read_text, _write_text),
)
"""Formats, the most specific ones first."""


def mutate(data: bytes, rng: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Return changed bytes.

    Args:
        data: an input.
        rng: source of randomness; the same state gives the same bytes.
        others: further inputs, whose nodes may be put into it.
    """
    for _ in range(1 + min(4, int(rng.expovariate(1.5)))):
        data = _mutate_once(data, rng, others)[:MAX_BYTES]
    return data


def _mutate_once(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    if rng.random() < 0.9:
        for form in FORMATS:
            try:
                tree = form.read(data)
            except Exception:  # another format
                continue
            try:
                return form.write(_change(tree, rng, _donor(form, rng, others)))
            except Exception:  # what the format cannot express
                break
    return _mutate_bytes(data, rng)


def _donor(form: Format, rng: random.Random, others: Sequence[bytes]) -> Any:
    try:
        return form.read(rng.choice(others))
    except Exception:
        return None


def _nodes(tree: Any) -> list[tuple[Any, Any]]:
    """Return the places of all nodes below the root: containers and keys."""
    found: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo and len(found) < 20_000:
        node = todo.pop()
        if isinstance(node, list | dict):
            for key in range(len(node)) if isinstance(node, list) else list(node):
                found.append((node, key))
                todo.append(node[key])
    return found


def _change(tree: Any, rng: random.Random, donor: Any) -> Any:
    places = _nodes(tree)
    if not places:
        return _value(rng)
    inner = [at for at in places if isinstance(node := at[0][at[1]], bytes) and len(node) > INNER]
    place, key = rng.choice(inner if inner and rng.random() < 0.4 else places)
    node = place[key]
    match rng.randrange(10):
        case 0:
            del place[key]
        case 1 if isinstance(place, list):
            many = 5000 if isinstance(node, int | bytes) and len(str(node)) < 20 else 20
            place[key:key] = [node] * rng.choice([1, 1, 2, 20, many])
        case 2:
            other, at = rng.choice(places)
            place[key], other[at] = other[at], node
        case 3:
            place[key] = _value(rng)
        case 4:
            for _ in range(rng.choice([1, 2, 20, 120, 600])):
                node = [node] if rng.random() < 0.9 else {"a": node}
            place[key] = node
        case 5 if donor is not None and (given := _nodes(donor)):
            source, at = rng.choice(given)
            place[key] = source[at]
        case 6 if isinstance(place, dict):
            place[rng.choice([*place, "", "a", "\0", 1, None])] = place.pop(key)
        case _:
            place[key] = _leaf(node, rng)
    return tree


def _leaf(node: Any, rng: random.Random) -> Any:
    """Return a changed leaf of its own kind."""
    match node:
        case bool() | None:
            return rng.choice([None, True, False])
        case int():
            return rng.choice([node + 1, node - 1, -node, node * 2, node ^ 1, _number(rng)])
        case float():
            return rng.choice([*FLOATS, -node, node * 2])
        case str():
            return _mutate_once(node.encode(), rng, ()).decode(errors="replace")
        case bytes():
            return _mutate_once(node, rng, ())
        case Ext():
            code = rng.choice([node.code] * 4 + [1, 2, 3, 4, 5, -1])
            return Ext(code, _mutate_once(bytes(node.data), rng, ()))
        case list() | dict():
            return _change(node, rng, None)
    return _value(rng)


def _number(rng: random.Random) -> int:
    return rng.choice(NUMBERS) + rng.choice([0, 0, 1, -1])


def _value(rng: random.Random) -> Any:
    made = [None, True, _number(rng), rng.choice(FLOATS), rng.choice(WORDS), b"", [], {}, "a" * 300]
    return rng.choice([*made, rng.randbytes(rng.randrange(20)), [0] * rng.choice([1, 70, 3000])])


def _mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    at = rng.randrange(len(made) + 1)
    end = min(len(made), at + rng.choice([1, 1, 2, 4, 8, 64]))
    match rng.randrange(6):
        case 0 if made:
            made[at % len(made)] ^= 1 << rng.randrange(8)
        case 1 if made:
            made[at % len(made)] = rng.choice([0, 1, 0x7F, 0x80, 0xC1, 0xFF, rng.randrange(256)])
        case 2:
            del made[at:end]
        case 3:
            made[at:at] = made[at:end] * rng.choice([1, 2, 50])
        case 4:
            width = rng.choice([1, 2, 4, 8])
            number = _number(rng) % (1 << 8 * width)
            made[at : at + width] = number.to_bytes(width, rng.choice(["big", "little"]))
        case _:
            made[at:at] = rng.choice(WORDS).encode() if rng.random() < 0.5 else rng.randbytes(3)
    return bytes(made)
