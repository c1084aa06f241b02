"""By which kinds the columns of a key are compared. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_match.ext import common_kind

from mplang_joins.ops import Kinds


def key_kinds(types: Sequence[Sequence[str]]) -> Kinds:
    """Return by which kind each column of a key is compared.

    Args:
        types: the types of the columns of each side's key.

    Raises:
        TypeError: no values of two columns are equal.

    Example:
        >>> key_kinds([["int64", "string"], ["uint8", "string"]])
        (('integer', 0), ('string', 0))
    """
    kinds = []
    for first, *others in zip(*types, strict=True):
        kind = max(common_kind(first, other) for other in others)
        kinds.append((kind.name, kind.scale))
    return tuple(kinds)
