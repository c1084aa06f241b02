"""Paillier's scheme by the library heu: numbers as Python has them, in and out.

Its formats are read here only as it has just written them, and written only of numbers that were
checked, so nothing that a peer sent reaches its parsers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

SCHEMA = b"\x04" + bytes(7)  # ZPaillier, behind each value
CACHED = 4  # keys whose tables are kept, which take a second to make


class Paillier:
    """Ops under one key.

    Args:
        modulus: of the public key.
        base: of the public key.
        secret: the private key, as :func:`make_keys` returned it; empty if it is not there.
    """

    def __init__(self, modulus: int, base: int, secret: bytes = b"") -> None:
        from heu import phe  # type: ignore[import-not-found]

        public = phe.PublicKey.load_from(_written([modulus, base]))
        self._square = modulus * modulus
        kit = phe.setup(public, phe.SecretKey.load_from(secret)) if secret else phe.setup(public)
        self._load: Callable[[bytes], Any] = phe.Ciphertext.load_from
        self._encryptor, self._evaluator = kit.encryptor(), kit.evaluator()
        self._decryptor = kit.decryptor() if secret else None

    def encrypted(self, numbers: Iterable[int]) -> list[Any]:
        """Return ciphertexts of numbers."""
        return [self._encryptor.encrypt_raw(number) for number in numbers]

    def decrypted(self, ciphertexts: Iterable[Any]) -> list[int]:
        """Return the numbers in ciphertexts."""
        assert self._decryptor is not None
        return [int(self._decryptor.decrypt_raw(each)) for each in ciphertexts]

    def loaded(self, numbers: Iterable[int]) -> list[Any]:
        """Return ciphertexts that are there as numbers.

        Raises:
            ValueError: one is none under this key.
        """
        made = []
        for number in numbers:
            if not 0 < number < self._square:
                raise ValueError("a ciphertext is not a number below the square of the modulus")
            made.append(self._load(_written([number])))
        return made

    def added(self, x: Any, y: Any) -> Any:
        """Return a sum, which is not randomized."""
        return self._evaluator.add(x, y)

    def subtracted(self, x: Any, y: Any) -> Any:
        """Return a difference, which is not randomized."""
        return self._evaluator.sub(x, y)

    def multiplied(self, x: Any, number: int) -> Any:
        """Return a multiple by a number of 62 bits, which is not randomized."""
        return self._evaluator.mul(x, number)

    def total(self, terms: Iterable[Any]) -> Any:
        """Return a sum of any number of ciphertexts, randomized."""
        made = self._encryptor.encrypt_raw(0)
        for each in terms:
            self._evaluator.add_inplace(made, each)
        return made


def make_keys(bits: int) -> tuple[bytes, int, int]:
    """Return a private key, and modulus and base of the public one."""
    from heu import phe

    while True:
        kit = phe.setup(phe.SchemaType.ZPaillier, bits)
        modulus, base = _read(kit.public_key().serialize())
        if modulus.bit_length() == bits:
            return kit.secret_key().serialize(), modulus, base


@lru_cache(maxsize=CACHED)
def paillier_of(modulus: bytes, base: bytes, secret: bytes = b"") -> Paillier:
    """Return the ops under a key that was checked."""
    return Paillier(int.from_bytes(modulus, "big"), int.from_bytes(base, "big"), secret)


def number_of(ciphertext: Any) -> int:
    """Return the number that a ciphertext is."""
    (number,) = _read(ciphertext.serialize())
    return number


def _written(numbers: Sequence[int]) -> bytes:
    """Return positive numbers in heu's format: a MessagePack array, then the scheme."""
    parts = [bytes([0x90 + len(numbers)])]
    for number in numbers:
        body = number.to_bytes(number.bit_length() // 8 + 1, "little")  # the top bit is a sign
        parts.append(b"\xda" + len(body).to_bytes(2, "big") + body)
    return b"".join([*parts, SCHEMA])


def _read(data: bytes) -> list[int]:
    """Return the numbers of what heu has written.

    Raises:
        ValueError: it has another format, as another version has.
    """
    count, position, numbers = data[0] - 0x90, 1, []
    for _ in range(count):
        kind = data[position]
        size = {0xD9: 1, 0xDA: 2}.get(kind, 0)  # strings of up to 2**8 and 2**16 bytes
        start = position + 1 + size
        length = int.from_bytes(data[position + 1 : start], "big") if size else kind - 0xA0
        body = data[start : start + length]
        numbers.append(int.from_bytes(body, "little"))
        position = start + length
    if data[position:] != SCHEMA:
        raise ValueError("heu has another format than that of version 0.5.2")
    return numbers
