"""Kernels of ``he``, ``bfv`` and ``ckks``. Error messages are public, and have no values."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mplang_core.ext import KernelContext, KernelError, native_calls
from mplang_he import reference
from mplang_he.circuit import is_masked
from mplang_he.ops import checked, operands_of
from mplang_he.parameters import Parameters
from mplang_he.service import UNNAMED
from mplang_he.spans import Array
from mplang_he.types import (
    FLOATS,
    INTEGERS,
    EncryptedColumns,
    HeCiphertextType,
    HePrivateKey,
    HePrivateKeyType,
    HePublicKey,
    HePublicKeyType,
    HeRelinKeyType,
    HeRotationKeyType,
)


def keygen(
    ctx: KernelContext, *, scheme: str, degree: int, primes: tuple[int, ...], plain: int
) -> tuple[HePrivateKey, HePublicKey, HePublicKey]:
    """Generate a key pair, and relinearization keys."""
    parameters = Parameters.from_params((scheme, degree, primes, plain))
    _, made = _call(ctx, "keygen", parameters, {}, [])
    if len(made) != 3:
        raise KernelError(
            f"{ctx.op.opcode}: its process makes {len(made)} keys, not 3", code="R017"
        )
    private = HePrivateKey(HePrivateKeyType(parameters), made[0])
    public = HePublicKey(HePublicKeyType(parameters), made[1])
    return private, public, HePublicKey(HeRelinKeyType(parameters), made[2])


def encrypt(
    ctx: KernelContext, x: Array, key: HePublicKey, *, low: float, high: float
) -> EncryptedColumns:
    """Encrypt a tensor by columns.

    Raises:
        KernelError: a number is not within its range.
    """
    if not checked(x, low, high):
        raise KernelError(
            f"{ctx.op.opcode}: a number is not within the range [{low}, {high}]", code="R006"
        )
    kind = _result(ctx)
    plain = _bytes(np.moveaxis(x, 0, -1), kind.parameters)
    made = _call(ctx, "encrypt", kind.parameters, {"rows": kind.rows}, [key.data, plain])[1]
    (value,) = _sealed(ctx, [kind], made)
    reference.keep(ctx, value, x)
    return value


def decrypt(ctx: KernelContext, x: EncryptedColumns, key: HePrivateKey) -> Array:
    """Decrypt a tensor.

    Raises:
        KernelError: no noise budget is left, or a number is beyond its type.
    """
    kind = x.type
    sizes = {"rows": kind.rows, "count": kind.count}
    about, made = _call(ctx, "decrypt", kind.parameters, sizes, [key.data, *x.parts])
    is_bfv = kind.parameters.scheme == "bfv"
    count, size = kind.rows * kind.count // kind.blocks, 8
    if len(made) != 1 or len(made[0]) != size * count:
        raise KernelError(f"{ctx.op.opcode}: it gives no {kind.inner}", code="R017")
    numbers = np.frombuffer(made[0], "<i8" if is_bfv else "<f8")
    slack = 0 if is_bfv else 2 * kind.error + 1e-9 * max(abs(kind.low), abs(kind.high))
    if (is_bfv and about.get("budget", 0) < 1) or not checked(
        numbers, kind.low - slack, kind.high + slack
    ):
        raise KernelError(
            f"{ctx.op.opcode}: a number is beyond its type, or no noise budget is left: it is "
            "under another key, as of another branch, or somebody gave another ciphertext than the "
            "program says, or numbers beyond their range",
            code="R012",
        )
    dtype = kind.inner.dtype.numpy
    if not is_bfv and dtype.kind != "f":
        numbers = np.rint(numbers)
    shape = (*kind.shape, kind.rows)
    result = np.moveaxis(numbers.reshape(shape), -1, kind.axis).astype(dtype)
    reference.compare(ctx, x, result)
    return result


def rotation_keys(ctx: KernelContext, key: HePrivateKey, *, steps: tuple[int, ...]) -> HePublicKey:
    """Generate keys by which slots are rotated."""
    kind = HeRotationKeyType(key.type.parameters, steps)
    _, made = _call(ctx, "rotation_keys", kind.parameters, {"steps": steps}, [key.data])
    if len(made) != 1:
        raise KernelError(
            f"{ctx.op.opcode}: its process makes {len(made)} keys, not 1", code="R017"
        )
    return HePublicKey(kind, made[0])


def sum(
    ctx: KernelContext, x: EncryptedColumns, rotation: HePublicKey, key: HePublicKey
) -> EncryptedColumns:
    """Add up the rows of a tensor."""
    value = _rotated(ctx, "sum", {}, x, rotation, key)
    reference.follow(ctx, x, value, lambda plain: plain.sum(axis=x.type.axis, keepdims=True))
    return value


def roll(
    ctx: KernelContext, x: EncryptedColumns, rotation: HePublicKey, key: HePublicKey, *, by: int
) -> EncryptedColumns:
    """Move the rows of a tensor in a circle."""
    value = _rotated(ctx, "roll", {"by": by}, x, rotation, key)
    reference.follow(ctx, x, value, lambda plain: np.roll(plain, -by, axis=x.type.axis))
    return value


def _rotated(
    ctx: KernelContext, method: str, more: Mapping[str, Any], x: EncryptedColumns,
    rotation: HePublicKey, key: HePublicKey,
) -> EncryptedColumns:  # fmt: skip
    kind = x.type
    sizes = {"rows": kind.rows, "count": kind.count, **more}
    buffers = [key.data, rotation.data, *x.parts]
    made = _call(ctx, method, kind.parameters, sizes, buffers)[1]
    return _sealed(ctx, [_result(ctx)], made)[0]


def run(
    ctx: KernelContext,
    *operands: Any,
    code: bytes,
    ranges: Sequence[tuple[float, float]],
    **made_by: object,
) -> Any:
    """Run a function on ciphertexts.

    Raises:
        KernelError: a plain number is not within its range.
    """
    *values, key, relin = operands
    ends, shapes, buffers = iter(ranges), [], [key.data, relin.data, code]
    kind = next(each.type for each in values if isinstance(each, EncryptedColumns))
    for each in values:
        if isinstance(each, EncryptedColumns):
            shapes.append((each.type.axis, each.type.inner.shape, len(each.parts)))
            buffers += each.parts
            continue
        low, high = next(ends)
        if not checked(each, low, high):
            raise KernelError(
                f"{ctx.op.opcode}: a number is not within the range [{low}, {high}]", code="R006"
            )
        whole = each.dtype.kind != "f"
        shapes.append((INTEGERS if whole else FLOATS, each.shape, 0))
        buffers.append(np.ascontiguousarray(each.astype("<i8" if whole else "<f8")).tobytes())
    known = operands_of([value.type for value in ctx.op.inputs][:-2], ranges)
    about = {"rows": kind.rows, "operands": shapes, "masked": is_masked(known, kind.parameters)}
    made = _call(ctx, "run", kind.parameters, about, buffers)[1]
    types = [value.type for value in ctx.op.outputs]
    results = _sealed(ctx, [each for each in types if isinstance(each, HeCiphertextType)], made)
    reference.keep_results(ctx, code, values, results)
    return results[0] if len(results) == 1 else tuple(results)


def _bytes(x: Array, parameters: Parameters) -> bytes:
    kind = "<f8" if parameters.scheme == "ckks" else "<i8"
    return np.ascontiguousarray(x.astype(kind)).tobytes()


def _result(ctx: KernelContext) -> HeCiphertextType:
    kind = ctx.op.outputs[0].type
    assert isinstance(kind, HeCiphertextType)
    return kind


def _sealed(
    ctx: KernelContext, kinds: Sequence[HeCiphertextType], made: Sequence[bytes]
) -> list[EncryptedColumns]:
    """Return what the library made, as values of the types of the op."""
    if builtins.sum(kind.count for kind in kinds) != len(made):
        raise KernelError(
            f"{ctx.op.opcode}: its process gives {len(made)} ciphertexts", code="R017"
        )
    parts, results = iter(made), []
    for kind in kinds:
        results.append(EncryptedColumns(kind, tuple(next(parts) for _ in range(kind.count))))
    return results


def _call(
    ctx: KernelContext,
    method: str,
    parameters: Parameters,
    args: Mapping[str, Any],
    buffers: Sequence[bytes],
) -> tuple[Mapping[str, Any], list[bytes]]:
    """Run something with the library, in the process that it has on a worker."""
    args = {"parameters": parameters.params(), **args}
    calls = native_calls(ctx)
    if calls is not None:
        about, made = calls.call(ctx.run, method, args, buffers)
        return about, [bytes(each) for each in made]
    from mplang_he import compute

    try:
        answer = compute.run(method, args, buffers)
    except UNNAMED as error:
        raise KernelError(f"{ctx.op.opcode}: {error}", code="R017") from error
    return answer.about, answer.buffers
