r"""Container format of artifacts: magic, version, length and checksum.

History
-------
1 (2026-11-21)
    First version. A head of 52 bytes: the magic ``\x89MPL\r\n\x1a\n``, the version (4 bytes,
    big-endian), the length of the payload (8 bytes, big-endian), its SHA-256. The payload is
    MessagePack, ``[manifest, program]``: see :mod:`mplang_cli.artifact.manifest`, and for the
    program :mod:`mplang_core.ir.wire`, which has a version of its own.
2 (2026-11-30)
    The payload is ``[manifest, program, sources]``: functions and texts of source lines, see
    :mod:`mplang_cli.artifact.sources`.
"""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path
from typing import TypeAlias

from mplang_core.ext import WireError

MAGIC = b"\x89MPL\r\n\x1a\n"  # as PNG's: detects a transfer as text
ARTIFACT_VERSION = 2
OLDEST_VERSION = 1
MAX_BYTES = 1 << 31

_HEAD = struct.Struct(">8sIQ32s")
_BASICS = struct.Struct(">8sI")  # what every version begins with

Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview
"""A file's path, or its bytes."""


def close(payload: bytes) -> bytes:
    """Put the head before a payload."""
    digest = hashlib.sha256(payload).digest()
    return _HEAD.pack(MAGIC, ARTIFACT_VERSION, len(payload), digest) + payload


def open_(data: bytes) -> bytes:
    """Return the payload of an artifact.

    Raises:
        WireError: it is not an artifact, one of another version, or damaged; says what to do.

    Example:
        >>> open_(close(b"payload"))
        b'payload'
    """
    if not data.startswith(MAGIC) or len(data) < _BASICS.size:
        raise WireError(f"expected an artifact of mplang, got {_what(data)}")
    _, version = _BASICS.unpack_from(data)
    if not OLDEST_VERSION <= version <= ARTIFACT_VERSION:
        raise WireError(
            f"the artifact has format version {version}, this mplang-core reads version "
            f"{ARTIFACT_VERSION} and older; "
            + (
                "pip install --upgrade mplang-core"
                if version > ARTIFACT_VERSION
                else "it may be damaged: copy it again"
            )
        )
    if len(data) < _HEAD.size:
        raise _damaged(f"it ends within its head, after {len(data)} bytes")
    _, _, length, digest = _HEAD.unpack_from(data)
    payload = data[_HEAD.size :]
    if len(payload) != length:
        raise _damaged(f"its head promises {length} bytes, and {len(payload)} follow")
    if hashlib.sha256(payload).digest() != digest:
        raise _damaged("its bytes do not have the SHA-256 that its head says")
    return payload


def read(source: Source) -> bytes:
    """Return the bytes of a file, or those that are given, if they are not too many.

    Raises:
        WireError: the file cannot be read, or is too large.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        size, data = len(source), bytes(source[: MAX_BYTES + 1])
    else:
        try:
            with Path(source).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                data = b"" if size > MAX_BYTES else file.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            raise WireError(
                f"cannot read {os.fspath(source)}: {_reason(error)}", code="C005"
            ) from error
    if max(size, len(data)) > MAX_BYTES:
        raise WireError(f"an artifact has at most {MAX_BYTES} bytes, got {size}")
    return data


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _what(data: bytes) -> str:
    if not data:
        return "nothing: it is empty"
    if MAGIC.startswith(data[: len(MAGIC)]):
        return f"the first {len(data)} bytes of one; copy it again"
    if data.startswith(b"\x89MPL"):
        return "one that was changed as text on its way; copy it as binary"
    if data.startswith(b"program "):
        return "a program as text, which mp.parse reads; mplang compile makes artifacts"
    return f"a file that begins with {data[:8]!r}; mplang compile makes artifacts"


def _damaged(why: str) -> WireError:
    return WireError(f"the artifact is damaged: {why}; copy it again, or compile it again")
