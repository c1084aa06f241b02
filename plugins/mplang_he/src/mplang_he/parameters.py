"""Parameters of the schemes BFV and CKKS at 128 bits of security."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, cast

Scheme: TypeAlias = Literal["bfv", "ckks"]

SCHEMES: Sequence[Scheme] = ("bfv", "ckks")

MODULUS_BITS: Mapping[int, int] = {4096: 109, 8192: 218, 16384: 438, 32768: 881}
"""Bits of the modulus at most by degree, for 128 bits of security and a ternary secret
(Albrecht et al., "Homomorphic Encryption Standard", 2018, table 1)."""

BFV_PRIMES: Mapping[int, Sequence[int]] = {
    4096: (36, 36, 37),
    8192: (43, 43, 44, 44, 44),
    16384: (48, 48, 48, *[49] * 6),
    32768: (*[55] * 15, 56),
}
"""Bits of the primes by degree, which are SEAL's choice; the last one is that of keys."""

MAX_PRIME = 60

ERROR = 3.2
"""Standard deviation of the noise in fresh keys and ciphertexts."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a scheme.

    Attributes:
        scheme: ``bfv``, for integers, or ``ckks``, for floats.
        degree: of the polynomials, N.
        primes: bits of the primes of the modulus; the last one is for switching keys.
        plain: of CKKS the bits of the scale, of BFV those of the plain modulus.

    Raises:
        ValueError: they have fewer than 128 bits of security, or there are no such primes.

    Example:
        >>> Parameters("ckks", 8192, (49, 40, 40, 40, 49), 40).slots
        4096
    """

    scheme: Scheme
    degree: int
    primes: tuple[int, ...]
    plain: int

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise ValueError(f"a scheme is bfv or ckks, got {self.scheme!r}")
        if type(self.degree) is not int or self.degree not in MODULUS_BITS:
            raise ValueError(f"a degree is one of {[*MODULUS_BITS]}, got {self.degree!r}")
        sizes = (*self.primes, self.plain)
        if len(self.primes) < 2 or not all(type(bits) is int for bits in sizes):
            raise ValueError("a modulus has two primes or more, which have bits")
        lowest = prime_bits(self.degree)
        if not all(lowest <= bits <= MAX_PRIME for bits in self.primes):
            raise ValueError(f"primes have {lowest} to {MAX_PRIME} bits, got {self.primes}")
        if sum(self.primes) > MODULUS_BITS[self.degree]:
            raise ValueError(
                f"a modulus of {sum(self.primes)} bits has fewer than 128 bits of security: "
                f"degree {self.degree} takes {MODULUS_BITS[self.degree]} bits"
            )
        if not plain_bits(self.degree) <= self.plain <= MAX_PRIME:
            raise ValueError(
                f"scale or plain modulus have {plain_bits(self.degree)} to {MAX_PRIME} bits, got "
                f"{self.plain}"
            )
        *ends, middle = self.primes[0], self.primes[-1], self.primes[1:-1]
        if self.scheme == "ckks" and (set(middle) - {self.plain} or min(ends) < self.plain):
            raise ValueError(
                f"primes between the first and the last one have the {self.plain} bits of the "
                f"scale, and these two as many or more, got {self.primes}"
            )
        if self.scheme == "bfv" and self.plain in self.primes:
            raise ValueError("a plain modulus has other bits than the primes of the modulus")

    @property
    def slots(self) -> int:
        """Numbers in one ciphertext."""
        return self.degree // 2 if self.scheme == "ckks" else self.degree

    @property
    def levels(self) -> int:
        """Products, one after the other, that a fresh ciphertext of CKKS can be part of."""
        return len(self.primes) - 2

    def params(self) -> tuple[str | int | tuple[int, ...], ...]:
        """Return what stands between ``<`` and ``>`` of types."""
        return (self.scheme, self.degree, self.primes, self.plain)

    @classmethod
    def from_params(cls, params: Sequence[object]) -> Parameters:
        """Construct them from the result of :meth:`params`, which may come from a peer."""
        if len(params) != 4:
            raise ValueError("parameters are scheme, degree, bits of primes, and plain bits")
        scheme, degree, primes, plain = params
        if type(scheme) is not str or not isinstance(primes, tuple) or len(primes) > 32:
            raise ValueError("parameters are scheme, degree, bits of primes, and plain bits")
        return cls(cast("Scheme", scheme), cast("int", degree), primes, cast("int", plain))


class ResultNeeds(NamedTuple):
    """Requirements on results.

    Attributes:
        precision: error of CKKS at most, as part of the largest number that a range allows.
        spare: products that they can still be part of, one after the other.
        limit: how large numbers of BFV may become in what comes after.
    """

    precision: float
    spare: int = 0
    limit: float = 0.0


def sum_steps(parameters: Parameters) -> tuple[int, ...]:
    """Return the rotations that add up all slots; 0 exchanges the halves of BFV.

    Example:
        >>> sum_steps(Parameters("bfv", 4096, (36, 36, 37), 20))
        (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 0)
    """
    half = parameters.degree // 2
    steps = tuple(1 << i for i in range(half.bit_length() - 1))
    return steps if parameters.scheme == "ckks" else (*steps, 0)


def prime_bits(degree: int) -> int:
    """Return the bits of primes of a modulus at least.

    There are thirty within a hundredth of the power of two, so scales of levels differ by no more.
    """
    return degree.bit_length() + 15


def plain_bits(degree: int) -> int:
    """Return the bits of a prime that is 1 modulo twice the degree, of which there is one."""
    return degree.bit_length() + 6


def plain_modulus(degree: int, largest: int) -> int | None:
    """Return the bits of a plain modulus of BFV that has numbers up to a size, either way.

    Example:
        >>> plain_modulus(8192, 100), plain_modulus(8192, 10**12), plain_modulus(8192, 10**18)
        (20, 42, None)
    """
    bits = max((2 * largest + 1).bit_length() + 1, plain_bits(degree))
    while bits in BFV_PRIMES[degree]:
        bits += 1
    return bits if bits <= MAX_PRIME else None
