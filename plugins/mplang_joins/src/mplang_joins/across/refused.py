"""Reasons to refuse a query over tables of several parties: a closed list. Imports no sqlglot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Reason: TypeAlias = Literal[
    "no aggregate", "no key", "other key", "join", "condition", "expression", "function",
    "distinct", "clause", "nested", "groups", "bound", "column", "tables",
]  # fmt: skip
"""All reasons for which a query is refused while compiling."""

REASONS: tuple[Reason, ...] = get_args(Reason)
MAX_SHOWN = 120  # characters of the part of a query that a message shows


class QueryRefusedError(ValueError):
    """A query cannot be run over tables of several parties.

    Args:
        reason: why, of a closed list.
        text: what to write instead.
        part: the part of the query that it is about.

    Example:
        >>> str(QueryRefusedError("clause", "LIMIT is none of them"))
        'clause: LIMIT is none of them'
    """

    def __init__(self, reason: Reason, text: str, part: Expr | None = None) -> None:
        shown = "" if part is None else " ".join(part.sql("duckdb", comments=False).split())
        shown = f"{shown[:MAX_SHOWN]}…" if len(shown) > MAX_SHOWN else shown
        super().__init__(f"{reason}: {shown}: {text}" if shown else f"{reason}: {text}")
        self.reason = reason
