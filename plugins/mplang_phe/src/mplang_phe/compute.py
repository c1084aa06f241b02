"""Calls of the library: in a separate process on a worker, in this one on a simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mplang_phe.heu import Paillier, make_keys, number_of, paillier_of
from mplang_phe.types import checked_key

Buffer: TypeAlias = bytes | bytearray | memoryview
Args: TypeAlias = Mapping[str, Any]


def run(method: str, args: Args, buffers: Sequence[Buffer]) -> list[bytes]:
    """Run a method.

    Args:
        method: the name of an op.
        args: its numbers.
        buffers: keys, ciphertexts and plain numbers.

    Returns:
        Keys, ciphertexts or plain numbers.

    Raises:
        ValueError: there is no such method, or an operand is none.
    """
    known = _METHODS.get(method)
    if known is None:
        raise ValueError(f"there is no op {method!r} on ciphertexts")
    whole = all(type(number) is int and number >= 0 for number in args.values())
    if args.keys() != known.fields or not whole or len(buffers) != known.buffers:
        raise ValueError(
            f"it takes {known.buffers} buffers and numbers {sorted(known.fields)}, got "
            f"{len(buffers)} and {sorted(args)}"
        )
    return known.run(args, [bytes(each) for each in buffers])


def _keygen(args: Args, buffers: Sequence[bytes]) -> list[bytes]:
    secret, modulus, base = make_keys(args["bits"])
    return [secret, modulus.to_bytes(args["bits"] // 8), base.to_bytes(args["bits"] // 4)]


def _encrypt(args: Args, buffers: Sequence[bytes]) -> list[bytes]:
    modulus, base, plain = buffers
    return _written(modulus, _key(modulus, base).encrypted(_integers(plain)))


def _decrypt(args: Args, buffers: Sequence[bytes]) -> list[bytes]:
    secret, modulus, base, x = buffers
    key = _key(modulus, base, secret)
    size = args["size"]
    half = 1 << (8 * size - 1)
    numbers = key.decrypted(_ciphertexts(key, modulus, x))
    if not all(-half <= number < half for number in numbers):
        raise ValueError("a number is larger than its type says")
    return [b"".join(number.to_bytes(size, "big", signed=True) for number in numbers)]


def _add(args: Args, buffers: Sequence[bytes]) -> list[bytes]:
    return _pairs(buffers, Paillier.added)


def _sub(args: Args, buffers: Sequence[bytes]) -> list[bytes]:
    return _pairs(buffers, Paillier.subtracted)


def _pairs(buffers: Sequence[bytes], combined: Callable[[Paillier, Any, Any], Any]) -> list[bytes]:
    modulus, base, *operands = buffers
    key = _key(modulus, base)
    x, y = (_ciphertexts(key, modulus, each) for each in operands)
    return _written(modulus, [key.total([combined(key, *pair)]) for pair in zip(x, y, strict=True)])


def _multiply_plain(args: Args, buffers: Sequence[bytes]) -> list[bytes]:
    modulus, base, x, y = buffers
    key = _key(modulus, base)
    pairs = zip(_ciphertexts(key, modulus, x), _integers(y), strict=True)
    return _written(modulus, [key.total([key.multiplied(a, b)]) for a, b in pairs])


def _matmul_plain(args: Args, buffers: Sequence[bytes]) -> list[bytes]:
    modulus, base, x, y = buffers
    key, inner, columns = _key(modulus, base), args["inner"], args["columns"]
    left = _ciphertexts(key, modulus, x)
    right = list(_integers(y))

    def made() -> Iterator[Any]:
        for first in range(0, args["rows"] * inner, max(inner, 1)):
            row = left[first : first + inner]
            for column in range(columns):
                factors = right[column::columns]
                yield key.total(key.multiplied(a, b) for a, b in zip(row, factors, strict=True))

    if not inner:
        return _written(modulus, [key.total(()) for _ in range(args["rows"] * columns)])
    return _written(modulus, made())


def _sum(args: Args, buffers: Sequence[bytes]) -> list[bytes]:
    modulus, base, x = buffers
    key, columns = _key(modulus, base), args["columns"]
    terms = _ciphertexts(key, modulus, x)
    return _written(modulus, (key.total(terms[i::columns]) for i in range(columns)))


def _segment_sum(args: Args, buffers: Sequence[bytes]) -> list[bytes]:
    modulus, base, x, segments = buffers
    key, columns = _key(modulus, base), args["columns"]
    totals = [key.total(()) for _ in range(args["count"] * columns)]
    numbers = list(_integers(segments))
    for i, term in enumerate(_ciphertexts(key, modulus, x)):
        total = numbers[i // columns] * columns + i % columns
        totals[total] = key.added(totals[total], term)
    return _written(modulus, totals)


class _Method(NamedTuple):
    """Method, its arguments, and how many buffers it takes.

    Attributes:
        run: what it does.
        fields: the names of its arguments, integers.
        buffers: how many there are.
    """

    run: Callable[[Args, Sequence[bytes]], list[bytes]]
    fields: frozenset[str]
    buffers: int


_METHODS: Mapping[str, _Method] = {
    "keygen": _Method(_keygen, frozenset({"bits"}), 0),
    "encrypt": _Method(_encrypt, frozenset(), 3),
    "decrypt": _Method(_decrypt, frozenset({"size"}), 4),
    "add": _Method(_add, frozenset(), 4),
    "sub": _Method(_sub, frozenset(), 4),
    "multiply_plain": _Method(_multiply_plain, frozenset(), 4),
    "matmul_plain": _Method(_matmul_plain, frozenset({"rows", "inner", "columns"}), 4),
    "sum": _Method(_sum, frozenset({"columns"}), 3),
    "segment_sum": _Method(_segment_sum, frozenset({"columns", "count"}), 4),
}


def _key(modulus: bytes, base: bytes, secret: bytes = b"") -> Paillier:
    checked_key(8 * len(modulus), modulus, base)
    return paillier_of(modulus, base, secret)


def _integers(plain: bytes) -> Iterator[int]:
    yield from np.frombuffer(plain, "<i8").tolist()


def _ciphertexts(key: Paillier, modulus: bytes, data: bytes) -> Sequence[Any]:
    width = 2 * len(modulus)
    if len(data) % width:
        raise ValueError(f"ciphertexts have {width} bytes each")
    numbers = (int.from_bytes(data[i : i + width], "big") for i in range(0, len(data), width))
    return key.loaded(numbers)


def _written(modulus: bytes, ciphertexts: Iterable[Any]) -> list[bytes]:
    width = 2 * len(modulus)
    return [b"".join(number_of(each).to_bytes(width, "big") for each in ciphertexts)]
