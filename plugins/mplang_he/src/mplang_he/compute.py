"""Calls of the library: in a separate process on a worker, in this one on a simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tenseal.sealapi as seal

from mplang_he.choice import finished
from mplang_he.circuit import module_of
from mplang_he.columns import Columns
from mplang_he.interpreter import ColumnInterpreter
from mplang_he.library import bfv, ckks
from mplang_he.library.columns import SealColumn, SealColumns
from mplang_he.library.context import SealContext, SealObject, context_of, loaded, saved
from mplang_he.parameters import Parameters, sum_steps
from mplang_he.spans import Array
from mplang_he.types import INTEGERS, MAX_CIPHERTEXTS, MAX_ROWS, HeRotationKeyType

Buffer: TypeAlias = bytes | bytearray | memoryview
Args: TypeAlias = Mapping[str, Any]

CACHED = 8  # keys that are kept, which take time to load


class MethodResult(NamedTuple):
    """Answer of a method.

    Attributes:
        about: plain data.
        buffers: bytes.
    """

    about: Mapping[str, Any]
    buffers: list[bytes]


def run(method: str, args: Args, buffers: Sequence[Buffer]) -> MethodResult:
    """Run a method.

    Args:
        method: ``keygen``, ``encrypt``, ``decrypt`` or ``run``.
        args: parameters, shapes.
        buffers: keys, ciphertexts and plain numbers.

    Raises:
        ValueError: there is no such method, or an operand is none.
    """
    if method not in _METHODS:
        raise ValueError(f"there is no op {method!r} on ciphertexts")
    known, fields = _METHODS[method]
    if args.keys() != {"parameters", *fields}:
        raise ValueError(f"it takes parameters and {fields}, got {sorted(args)}")
    params = args["parameters"]
    if not isinstance(params, list | tuple) or len(params) != 4:
        raise ValueError("it takes parameters of a scheme")
    scheme, degree, primes, plain = params
    parameters = Parameters.from_params((scheme, degree, tuple(primes), plain))
    return known(context_of(parameters), args, [bytes(each) for each in buffers])


def _keygen(ctx: SealContext, args: Args, buffers: Sequence[bytes]) -> MethodResult:
    _some(buffers, 0)
    made = seal.KeyGenerator(ctx.seal)
    public, relin = seal.PublicKey(), seal.RelinKeys()
    made.create_public_key(public)
    made.create_relin_keys(relin)
    return MethodResult({}, [saved(each) for each in (made.secret_key(), public, relin)])


def _encrypt(ctx: SealContext, args: Args, buffers: Sequence[bytes]) -> MethodResult:
    """Encrypt numbers, which come column by column."""
    key, plain = _some(buffers, 2)
    rows = _count(args, "rows", MAX_ROWS)
    columns = _columns(ctx, rows, key)
    numbers = np.frombuffer(plain, "<f8" if _is_ckks(ctx) else "<i8")
    if numbers.size % rows:
        raise ValueError("each column has as many rows")
    return _saved([columns.encrypted(each) for each in numbers.reshape(-1, rows)])


def _decrypt(ctx: SealContext, args: Args, buffers: Sequence[bytes]) -> MethodResult:
    """Return numbers, column by column, and of BFV the noise budget that is left."""
    rows, count = _count(args, "rows", MAX_ROWS), _count(args, "count", MAX_CIPHERTEXTS)
    secret, *parts = _some(buffers, count + 1)
    decryptor = _decryptor(ctx.parameters, secret)
    columns: list[Array] = []
    budgets = [1000]
    for column in _loaded(ctx, parts, rows):
        if _is_ckks(ctx):
            columns.append(ckks.decrypted(ctx, decryptor, column)[:rows])
        else:
            numbers, budget = bfv.decrypted(ctx, decryptor, column)
            columns.append(numbers[:rows])
            budgets.append(budget)
    kind = "<f8" if _is_ckks(ctx) else "<i8"
    return MethodResult({"budget": min(budgets)}, [np.concatenate(columns).astype(kind).tobytes()])


def _run(ctx: SealContext, args: Args, buffers: Sequence[bytes]) -> MethodResult:
    """Run a function.

    ``args`` has ``operands``: for each the axis of rows, of a plain one ``FLOATS`` or ``INTEGERS``,
    its shape, and how many ciphertexts it has, 0 of a plain one; and whether slots without rows
    are ``masked``.
    """
    key, relin, code, *parts = buffers
    operands = args.get("operands")
    if not isinstance(operands, list | tuple):
        raise ValueError("it takes a list of operands")
    rows = _count(args, "rows", MAX_ROWS)
    columns, rest = _columns(ctx, rows, key, relin), iter(parts)
    values: list[Columns | Array] = []
    for axis, shape, count in operands:
        if axis < 0:
            values.append(_plain(next(rest, b""), tuple(shape), axis))
            continue
        blocks = [part for _, part in zip(range(count), rest, strict=False)]
        cells = np.empty(len(blocks) // len(columns.starts), object)
        cells[:] = _loaded(ctx, blocks, rows)
        values.append(Columns(cells.reshape(shape[:axis] + shape[axis + 1 :]), axis, rows))
    made = ColumnInterpreter(columns).run(module_of(code), values)
    tensors = [each for each in made if isinstance(each, Columns)]
    if args["masked"] is True:
        tensors = [each.map(columns.masked) for each in tensors]
    done = [cell for each in tensors for cell in finished(columns, each).cells.flat]
    return _saved(done)


def _rotation_keys(ctx: SealContext, args: Args, buffers: Sequence[bytes]) -> MethodResult:
    (secret,) = _some(buffers, 1)
    if not isinstance(args["steps"], list | tuple):
        raise ValueError("steps are a list of numbers")
    kind = HeRotationKeyType(ctx.parameters, tuple(args["steps"]))
    order, keys = 2 * ctx.parameters.degree, seal.GaloisKeys()
    elements = [order - 1 if step == 0 else pow(3, step, order) for step in kind.steps]
    maker = seal.KeyGenerator(ctx.seal, loaded(seal.SecretKey, ctx, secret))
    maker.create_galois_keys(elements, keys)
    return MethodResult({}, [saved(keys)])


def _sum(ctx: SealContext, args: Args, buffers: Sequence[bytes]) -> MethodResult:
    """Add up the rows of columns."""
    columns, keys, parts = _rotating(ctx, args, buffers)
    steps = sum_steps(ctx.parameters)
    return _saved([columns.result(columns.summed(each, steps, keys)) for each in parts])


def _roll(ctx: SealContext, args: Args, buffers: Sequence[bytes]) -> MethodResult:
    """Move the rows of columns in a circle."""
    columns, keys, parts = _rotating(ctx, args, buffers)
    by = _count(args, "by", columns.rows - 1)
    return _saved([columns.result(columns.rolled(each, by, keys)) for each in parts])


def _rotating(
    ctx: SealContext, args: Args, buffers: Sequence[bytes]
) -> tuple[SealColumns, SealObject, list[SealColumn]]:
    rows, count = _count(args, "rows", MAX_ROWS), _count(args, "count", MAX_CIPHERTEXTS)
    key, rotation, *parts = _some(buffers, count + 2)
    keys = _key(ctx.parameters, "GaloisKeys", rotation)
    return _columns(ctx, rows, key), keys, _loaded(ctx, parts, rows)


def _saved(columns: Sequence[SealColumn]) -> MethodResult:
    """Return columns as bytes, a ciphertext for each block."""
    return MethodResult({}, [saved(block) for each in columns for block in each.blocks])


_Method: TypeAlias = Callable[[SealContext, Args, Sequence[bytes]], MethodResult]

_METHODS: Mapping[str, tuple[_Method, Sequence[str]]] = {
    "keygen": (_keygen, ()),
    "encrypt": (_encrypt, ("rows",)),
    "decrypt": (_decrypt, ("rows", "count")),
    "rotation_keys": (_rotation_keys, ("steps",)),
    "sum": (_sum, ("rows", "count")),
    "roll": (_roll, ("rows", "count", "by")),
    "run": (_run, ("rows", "operands", "masked")),
}
"""The methods, and the fields of their arguments besides the parameters."""


def _plain(data: bytes, shape: tuple[int, ...], kind: int) -> Array:
    """Return a plain operand; integers stay so, which floats do not hold beyond 2**53."""
    numbers = np.frombuffer(data, "<i8" if kind == INTEGERS else "<f8")
    return numbers.reshape(shape)


def _loaded(ctx: SealContext, parts: Sequence[bytes], rows: int) -> list[SealColumn]:
    """Return columns of what came from a peer; SEAL checks each ciphertext.

    Raises:
        ValueError: it is none of these parameters, at none of their levels.
    """
    blocks = -(-rows // ctx.parameters.slots)
    if len(parts) % blocks or len(parts) > MAX_CIPHERTEXTS:
        raise ValueError(f"each column has {blocks} ciphertexts")
    ciphertexts = [loaded(seal.Ciphertext, ctx, part) for part in parts]
    columns = []
    for i in range(0, len(ciphertexts), blocks):
        levels = {_level(ctx, each) for each in ciphertexts[i : i + blocks]}
        if len(levels) != 1:
            raise ValueError("ciphertexts of a column are at one level")
        columns.append(SealColumn(ciphertexts[i : i + blocks], levels.pop()))
    return columns


def _level(ctx: SealContext, ciphertext: SealObject) -> int:
    """Return the level of a ciphertext.

    Raises:
        ValueError: it has none, or another scale or size than those of its level.
    """
    if ciphertext.size() != 2 or ciphertext.is_transparent():
        raise ValueError("a ciphertext has two polynomials, and shows nothing")
    ids = [tuple(each) for each in ctx.ids]
    if tuple(ciphertext.parms_id()) not in ids:
        raise ValueError("a ciphertext is at a level of its parameters")
    level = ids.index(tuple(ciphertext.parms_id()))
    if not _is_ckks(ctx):
        return 0
    if ciphertext.scale != ctx.scales[level]:
        raise ValueError("a ciphertext has the scale of its level")
    return level


def _columns(ctx: SealContext, rows: int, key: bytes, relin: bytes | None = None) -> SealColumns:
    kind = ckks.CkksColumns if _is_ckks(ctx) else bfv.BfvColumns
    public = _key(ctx.parameters, "PublicKey", key)
    switching = None if relin is None else _key(ctx.parameters, "RelinKeys", relin)
    return kind(ctx, rows, public, switching)


@lru_cache(CACHED)
def _key(parameters: Parameters, kind: str, data: bytes) -> SealObject:
    key = loaded(getattr(seal, kind), context_of(parameters), data)
    if kind == "RelinKeys" and not key.has_key(2):  # SEAL would read beyond its end
        raise ValueError("it is not a RelinKeys: it has none for products of two")
    return key


@lru_cache(CACHED)
def _decryptor(parameters: Parameters, secret: bytes) -> SealObject:
    ctx = context_of(parameters)
    return seal.Decryptor(ctx.seal, loaded(seal.SecretKey, ctx, secret))


def _is_ckks(ctx: SealContext) -> bool:
    return ctx.parameters.scheme == "ckks"


def _some(buffers: Sequence[bytes], count: int) -> Sequence[bytes]:
    if len(buffers) != count:
        raise ValueError(f"it takes {count} buffers, got {len(buffers)}")
    return buffers


def _count(args: Args, name: str, most: int) -> int:
    count = args.get(name)
    if type(count) is not int or not 1 <= count <= most:
        raise ValueError(f"{name} is a number from 1 to {most}, got {count!r}")
    return count
