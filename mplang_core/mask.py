"""Party sets as bit masks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mask:
    """Immutable set of ranks; bit ``i`` is set if party ``i`` is in it.

    Args:
        bits: the ranks as bits, not negative.

    Raises:
        TypeError: ``bits`` is not an int.
        ValueError: ``bits`` is negative.

    Example:
        >>> both = Mask(0b11)
        >>> list(both), 1 in both, both.num_parties()
        ([0, 1], True, 2)
        >>> print(both & Mask.from_ranks([1, 2]))
        {1}
    """

    bits: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.bits, bool) or not isinstance(self.bits, int):
            raise TypeError(f"a Mask is made of int bits, got {type(self.bits).__name__}")
        if self.bits < 0:
            raise ValueError(f"a Mask has no negative bits, got {self.bits}")

    @classmethod
    def from_ranks(cls, ranks: Iterable[int]) -> Mask:
        """Return the mask of some ranks; duplicates count once.

        Raises:
            ValueError: a rank is negative.
        """
        bits = 0
        for rank in ranks:
            if rank < 0:
                raise ValueError(f"a rank is not negative, got {rank}")
            bits |= 1 << rank
        return cls(bits)

    @classmethod
    def all(cls, world_size: int) -> Mask:
        """Return the mask of all parties of a world."""
        return cls((1 << world_size) - 1)

    @classmethod
    def of(cls, parties: Mask | int | Iterable[int]) -> Mask:
        """Return the mask of a user's argument.

        Args:
            parties: a mask, one rank, or several ranks.

        Raises:
            ValueError: a rank is negative.
        """
        if isinstance(parties, Mask):
            return parties
        return cls.from_ranks([parties] if isinstance(parties, int) else parties)

    def num_parties(self) -> int:
        """Return the number of parties."""
        return self.bits.bit_count()

    def global_to_relative_rank(self, rank: int) -> int:
        """Return the position of a rank among the ranks of this mask, from 0.

        Raises:
            ValueError: the rank is not in the mask.
        """
        if rank not in self:
            raise ValueError(f"rank {rank} is not in {self}")
        return (self.bits & ((1 << rank) - 1)).bit_count()

    @property
    def first(self) -> int:
        """The lowest rank.

        Raises:
            ValueError: the mask is empty.
        """
        for rank in self:
            return rank
        raise ValueError("the empty mask has no first rank")

    def __iter__(self) -> Iterator[int]:
        bits = self.bits
        while bits:
            low = bits & -bits
            yield low.bit_length() - 1
            bits ^= low

    def __contains__(self, rank: object) -> bool:
        return isinstance(rank, int) and rank >= 0 and bool(self.bits >> rank & 1)

    def __len__(self) -> int:
        return self.num_parties()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.bits & other.bits)

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.bits | other.bits)

    def __sub__(self, other: Mask) -> Mask:
        return Mask(self.bits & ~other.bits)

    def __le__(self, other: Mask) -> bool:
        return self.bits & ~other.bits == 0

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self)) + "}"

    def __repr__(self) -> str:
        return f"Mask.from_ranks([{', '.join(map(str, self))}])"
