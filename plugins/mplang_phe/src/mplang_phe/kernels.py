"""Kernels of the dialect ``phe``. Error messages are public, and contain no values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from mplang_core.ext import OPTIONAL, KernelContext, KernelError, native_calls
from mplang_phe import compute
from mplang_phe.ops import Limit
from mplang_phe.types import (
    Ciphertexts,
    PheCiphertextType,
    PhePrivateKey,
    PhePublicKey,
    checked_key,
)

Array = np.ndarray[Any, Any]


def keygen(ctx: KernelContext, *, bits: int) -> tuple[PhePrivateKey, PhePublicKey]:
    """Generate a key pair."""
    secret, *public = _run(ctx, "keygen", {"bits": bits}, [], 3)
    key = checked_key(bits, *public)
    return PhePrivateKey(secret, key), key


def encrypt(
    ctx: KernelContext, x: Array, key: PhePublicKey, *, limit: Limit = OPTIONAL, scale: int
) -> Ciphertexts:
    """Encrypt numbers.

    Args:
        ctx: of the op.
        x: the numbers.
        key: the public key.
        limit: how large they are at most; ``OPTIONAL`` for what their type
            holds.
        scale: bits behind the binary point.

    Raises:
        KernelError: one is larger, or not finite.
    """
    plain = _fixed(ctx, x, limit, scale)
    return _ciphertexts(ctx, "encrypt", {}, [key.modulus, key.base, plain])


def decrypt(ctx: KernelContext, x: Ciphertexts, key: PhePrivateKey) -> Array:
    """Decrypt numbers.

    Raises:
        KernelError: one is larger than its type says.
    """
    kind = x.type
    size = kind.bits // 8 + 1
    public = key.public
    buffers = [key.secret, public.modulus, public.base, x.data]
    (data,) = _run(ctx, "decrypt", {"size": size}, buffers, 1)
    count = prod(kind.inner.shape)
    if len(data) != size * count:
        raise KernelError(f"{ctx.op.opcode}: it gives no {count} numbers", code="R017")
    numbers = [
        int.from_bytes(data[i : i + size], "big", signed=True) for i in range(0, len(data), size)
    ]
    if any(abs(number) >= 1 << kind.bits for number in numbers):
        raise KernelError(
            f"{ctx.op.opcode}: a number is larger than its type says, so it is encrypted under "
            "another key, or somebody gave another ciphertext than the program says",
            code="R012",
        )
    if kind.scale:
        return np.array([n / (1 << kind.scale) for n in numbers], "f8").reshape(kind.inner.shape)
    return np.array(numbers, "i8").reshape(kind.inner.shape)


def add(ctx: KernelContext, x: Ciphertexts, y: Ciphertexts, key: PhePublicKey) -> Ciphertexts:
    """Add encrypted numbers."""
    return _ciphertexts(ctx, "add", {}, [key.modulus, key.base, x.data, y.data])


def sub(ctx: KernelContext, x: Ciphertexts, y: Ciphertexts, key: PhePublicKey) -> Ciphertexts:
    """Subtract encrypted numbers."""
    return _ciphertexts(ctx, "sub", {}, [key.modulus, key.base, x.data, y.data])


def multiply_plain(
    ctx: KernelContext,
    x: Ciphertexts,
    y: Array,
    key: PhePublicKey,
    *,
    limit: Limit = OPTIONAL,
    scale: int,
) -> Ciphertexts:
    """Multiply encrypted numbers by plain ones.

    Args:
        ctx: of the op.
        x: ciphertexts.
        y: plain numbers of the same shape, or one.
        key: the public key.
        limit: how large plain numbers are at most; ``OPTIONAL`` for what their type
            holds.
        scale: their bits behind the binary point.

    Raises:
        KernelError: one is larger, or not finite.
    """
    plain = _fixed(ctx, np.broadcast_to(y, x.type.inner.shape), limit, scale)
    return _ciphertexts(ctx, "multiply_plain", {}, [key.modulus, key.base, x.data, plain])


def matmul_plain(
    ctx: KernelContext,
    x: Ciphertexts,
    y: Array,
    key: PhePublicKey,
    *,
    limit: Limit = OPTIONAL,
    scale: int,
) -> Ciphertexts:
    """Multiply encrypted numbers by a plain matrix.

    Args:
        ctx: of the op.
        x: ciphertexts, ``[m, k]`` or ``[k]``.
        y: plain numbers, ``[k, n]``.
        key: the public key.
        limit: how large plain numbers are at most; ``OPTIONAL`` for what their type
            holds.
        scale: their bits behind the binary point.

    Raises:
        KernelError: one is larger, or not finite.
    """
    inner, columns = y.shape
    rows = x.type.inner.shape[0] if len(x.type.inner.shape) == 2 else 1
    sizes = {"rows": rows, "inner": inner, "columns": columns}
    plain = _fixed(ctx, y, limit, scale)
    return _ciphertexts(ctx, "matmul_plain", sizes, [key.modulus, key.base, x.data, plain])


def sum(ctx: KernelContext, x: Ciphertexts, key: PhePublicKey) -> Ciphertexts:
    """Add encrypted numbers along the first axis."""
    sizes = {"columns": prod(x.type.inner.shape[1:])}
    return _ciphertexts(ctx, "sum", sizes, [key.modulus, key.base, x.data])


def segment_sum(
    ctx: KernelContext, x: Ciphertexts, segments: Array, key: PhePublicKey, *, count: int
) -> Ciphertexts:
    """Add encrypted numbers by segment.

    Args:
        ctx: of the op.
        x: ciphertexts.
        segments: the number of the segment of each row.
        key: the public key.
        count: how many segments there are.

    Raises:
        KernelError: there is no such segment.
    """
    if segments.size and not 0 <= int(segments.min()) <= int(segments.max()) < count:
        raise KernelError(
            f"{ctx.op.opcode}: segments have numbers from 0 to {count - 1}", code="R006"
        )
    sizes = {"columns": prod(x.type.inner.shape[1:]), "count": count}
    plain = segments.astype("<i8").tobytes()
    return _ciphertexts(ctx, "segment_sum", sizes, [key.modulus, key.base, x.data, plain])


def _fixed(ctx: KernelContext, x: Array, limit: Limit, scale: int) -> bytes:
    """Return plain numbers as integers of 64 bits.

    Raises:
        KernelError: one is larger than the limit, or not finite.
    """
    x = np.asarray(x)
    if limit is not OPTIONAL:
        most = limit if x.dtype.kind == "f" else int(limit)  # floats would round large integers
        if not bool(((x <= most) & (x >= -most)).all()):  # NaN is neither
            raise KernelError(
                f"{ctx.op.opcode}: a number is larger than limit={limit}", code="R006"
            )
    if x.dtype.kind == "f":
        x = np.rint(x.astype("f8") * 2.0**scale)
    return np.ascontiguousarray(x.astype("<i8")).tobytes()


def _ciphertexts(
    ctx: KernelContext, method: str, args: Mapping[str, int], buffers: Sequence[bytes]
) -> Ciphertexts:
    (data,) = _run(ctx, method, args, buffers, 1)
    kind = ctx.op.outputs[0].type
    assert isinstance(kind, PheCiphertextType)
    if len(data) != kind.nbytes:
        raise KernelError(f"{ctx.op.opcode}: it gives no {kind}", code="R017")
    return Ciphertexts(kind, data)


def _run(
    ctx: KernelContext, method: str, args: Mapping[str, int], buffers: Sequence[bytes], count: int
) -> Sequence[bytes]:
    """Run something with the library, in the process that it has on a worker."""
    calls = native_calls(ctx)
    if calls is not None:
        _, made = calls.call(ctx.run, method, args, buffers)
    else:
        try:
            made = compute.run(method, args, buffers)
        except ValueError as error:
            raise KernelError(f"{ctx.op.opcode}: {error}", code="R017") from error
    if len(made) != count:
        raise KernelError(
            f"{ctx.op.opcode}: its process answers {len(made)} values, not {count}", code="R017"
        )
    return [bytes(each) for each in made]
