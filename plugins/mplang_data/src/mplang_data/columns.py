"""Schema checks shared by sources of tables. Imports Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from mplang_tables import arrow

from mplang_core import BaseType, TableType
from mplang_data.description import SourceError


def table_type(kind: BaseType) -> TableType:
    """Return a type as one of tables.

    Raises:
        SourceError: it is another one.
    """
    if not isinstance(kind, TableType):
        raise SourceError(f"it is a table, and not {kind}")
    return kind


def check_schema(found: Any, kind: TableType) -> None:
    """Check that a source has columns of the types that its owner says.

    Args:
        found: the Arrow schema of the source, which may have more columns.
        kind: the columns.

    Raises:
        SourceError: one is missing, or of another type.
    """
    for name, wanted in kind.columns:
        indices = found.get_all_field_indices(name)
        if len(indices) != 1:
            count = "no column" if not indices else f"{len(indices)} columns"
            raise SourceError(f"it has {count} {name!r}")
        there = str(arrow.plain_type(found.field(indices[0]).type))
        if there != wanted:
            raise SourceError(f"column {name!r} is {there} there, and {wanted} in the catalogue")


def check_there(columns: Sequence[str], names: Sequence[str]) -> None:
    """Check that a source has columns, each of them once.

    Raises:
        SourceError: it does not.
    """
    for column in columns:
        count = list(names).count(column)
        if count != 1:
            there = f"{count or 'no'} column{'s' * (count > 1)} {column!r}"
            raise SourceError(f"it has {there}, which may be matched on")


@contextmanager
def reading() -> Iterator[None]:
    """Turn what Arrow raises for a damaged source into an error that tells no data.

    Its detail is Arrow's reason.

    Raises:
        SourceError: the source cannot be read.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        detail = " ".join(str(error).split())[:300]
        raise SourceError(
            f"it is damaged, or no such file ({type(error).__name__})", detail=detail
        ) from error
