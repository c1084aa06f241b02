"""Readers: who reads a value that a party gets, where the party itself does not."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from mplang_core.ext import MPLangError, parse_base_type, printable


@runtime_checkable
class ReadInside(Protocol):
    """Interface of a type of what is sealed for one reader, such as an enclave of a party."""

    def reader(self, party: str) -> str:
        """Return who reads a value that a party gets, as in ``the enclave of bank (tdx)``.

        Args:
            party: what the party is called. It reads the value itself where that is returned as it
                is.
        """


def reader_of(kind: str, party: str) -> str | None:
    """Return for whom a value is sealed that a party gets; ``None`` for one that is not sealed.

    Args:
        kind: its type as text.
        party: what the party is called.

    Example:
        >>> reader_of("f32[3]", "bank") is None
        True
    """
    sealed = type_in(kind)
    return printable(sealed.reader(party)) if isinstance(sealed, ReadInside) else None


def type_in(text: str) -> object:
    """Return the type that a text is of, or ``None`` if it cannot be read."""
    try:
        return parse_base_type(text)
    except (MPLangError, ValueError, TypeError):
        return None
