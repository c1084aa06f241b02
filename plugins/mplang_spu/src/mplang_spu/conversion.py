"""Shares as libspu has them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mplang_core.ext import RunError
from mplang_spu.libspu import libspu
from mplang_spu.share_type import ShareType
from mplang_spu.shares import SpuShare, check_share
from mplang_spu.storage import storages

if TYPE_CHECKING:
    from mplang_spu.engine import Engine

_DATA_TYPES = {"bool": "DT_I1", "f16": "DT_F16", "f32": "DT_F32", "f64": "DT_F64"}
_DATA_TYPES |= {f"{sign}{n}": f"DT_{sign.upper()}{n}" for sign in "iu" for n in (8, 16, 32, 64)}
_KINDS = {getattr(libspu.DataType, name): plain[0] for plain, name in _DATA_TYPES.items()}
_INTEGERS = ("i", "u")


def to_libspu(share: SpuShare) -> Any:
    """Return libspu's form of a share.

    Args:
        share: checked against its type.

    Returns:
        A ``libspu.Share``, whose description is made from the type and the storage.
    """
    return raw_share(_description(share.type, share.storage), share.chunks)


def raw_share(description: bytes, chunks: Sequence[bytes]) -> Any:
    """Return a ``libspu.Share``.

    Args:
        description: a serialized ``ValueMetaProto``.
        chunks: its data, each a serialized ``ValueChunkProto``.
    """
    made = libspu.Share()
    made.meta = description
    made.share_chunks = list(chunks)
    return made


@functools.lru_cache(maxsize=1024)
def _description(kind: ShareType, storage: str) -> bytes:
    """Return libspu's description of a share, a serialized ``ValueMetaProto``."""
    made = libspu.ValueMeta()
    made.data_type = _data_type(kind)
    public = storages(kind.protocol, kind.field)[storage].form == "public"
    made.visibility = libspu.Visibility.VIS_PUBLIC if public else libspu.Visibility.VIS_SECRET
    if kind.plain.shape:  # libspu's own description of a scalar has none
        made.shape = kind.plain.shape
    made.storage_type = storage
    found: bytes = made.SerializeToString()
    return found


def from_libspu(piece: Any, kind: ShareType) -> SpuShare:
    """Return a share that libspu made.

    Integers of another width are of the same ring, so they get the type that they are declared to
    have: libspu counts positions in 64 bits where JAX does in 32.

    Args:
        piece: a ``libspu.Share``.
        kind: its type.

    Returns:
        The share, checked against the type.

    Raises:
        RunError: it is of another type.
    """
    meta = libspu.ValueMeta()
    meta.ParseFromString(piece.meta)
    share = SpuShare(kind, meta.storage_type, tuple(piece.share_chunks))
    try:
        _check_description(meta, kind)
        check_share(share)
    except ValueError as error:
        raise RunError(f"libspu made no share of {kind.plain}: {error}", code="R007") from error
    return share


def settle_variable(runtime: Engine, name: str, kind: ShareType) -> str:
    """Check a variable of a runtime, and give it the type that it is declared to have.

    Args:
        runtime: where libspu made it.
        name: the variable.
        kind: its type, see :func:`from_libspu`.

    Returns:
        Its storage.

    Raises:
        RunError: it is of another type.
    """
    meta = runtime.describe(name)
    try:
        _check_description(meta, kind)
        storage = SpuShare(kind, meta.storage_type, ()).layout.name
    except ValueError as error:
        raise RunError(f"libspu made no share of {kind.plain}: {error}", code="R007") from error
    if meta.data_type != _data_type(kind):
        runtime.set(name, to_libspu(from_libspu(runtime.get(name), kind)))
    return storage


def _check_description(meta: Any, kind: ShareType) -> None:
    found, wanted = _KINDS.get(meta.data_type), kind.plain.dtype.value[0]
    alike = found == wanted or (found in _INTEGERS and wanted in _INTEGERS)
    if not alike or meta.is_complex or tuple(meta.shape.dims) != kind.plain.shape:
        raise ValueError(f"it is {meta.data_type} of shape {list(meta.shape.dims)}")


def _data_type(kind: ShareType) -> Any:
    return getattr(libspu.DataType, _DATA_TYPES[kind.plain.dtype.value])
