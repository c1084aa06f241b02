"""Type of the tokens that a matcher sends to the other party's. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mplang_core import BaseType, Form

BYTES = 40
"""Bytes that a matcher sends for a token, about: of RR22 those of its encoding and its answer."""


@dataclass(frozen=True, slots=True)
class TokensType(BaseType):
    """Tokens of a party's keys, of which the other one can tell those that it has as well.

    Args:
        count: how many there are; ``None`` if that is told by their number alone.

    Example:
        >>> print(TokensType(1001), TokensType())
        match.tokens<1001> match.tokens<none>
    """

    name: ClassVar[str] = "match.tokens"
    form: ClassVar[Form] = Form.HANDLE

    count: int | None = None

    @property
    def nbytes(self) -> int | None:
        """Size of the messages in bytes, about; ``None`` if the type does not tell."""
        return None if self.count is None else self.count * BYTES

    def in_words(self) -> str:
        """Return how many there are; see :class:`mplang_analysis.ext.Worded`."""
        if self.count is None:
            return "a token for each different key"
        return f"{self.count:,} tokens, of keys and of none"

    def size_in_words(self, owner: str) -> str:
        """Return what their number tells, where none is declared."""
        return f"how many different keys {owner} has, as no rows= bounds it"

    def mismatch(self, value: object) -> str | None:
        """Return that no value is of it: tokens are sent, and are not values of a program."""
        return f"{self} has no values, got a {type(value).__name__}"

    def params(self) -> tuple[Any, ...]:
        """Return the number."""
        return (self.count,)

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> TokensType:
        """Construct the type from the result of :meth:`params`."""
        (count,) = params
        if count is not None and (type(count) is not int or count < 0):
            raise ValueError(f"a number of tokens, or none, got {count!r}")
        return cls(count)
