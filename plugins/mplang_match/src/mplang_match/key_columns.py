"""Columns of a key: one of each table for each part. Imports no Arrow."""

from __future__ import annotations


def key_columns(on: object, tables: int) -> list[tuple[str, ...]]:
    """Return what a key is made of: one column of each table for each part of it.

    Args:
        on: a column, or a list of columns and of tuples with one of each table.
        tables: how many tables there are.

    Returns:
        As many columns in each tuple as there are tables; none if ``on`` is something else.

    Example:
        >>> key_columns("id", 2), key_columns(["city", ("id", "customer")], 2)
        ([('id', 'id')], [('city', 'city'), ('id', 'customer')])
    """
    listed = [on] if isinstance(on, str) else on
    if not isinstance(listed, list | tuple):
        return []
    parts = [_part(each, tables) for each in listed]
    return [] if None in parts else [part for part in parts if part is not None]


def _part(named: object, tables: int) -> tuple[str, ...] | None:
    """Return one column of each table; ``None`` if it is something else."""
    part = (named,) * tables if isinstance(named, str) else named
    if not isinstance(part, list | tuple) or len(part) != tables:
        return None
    return tuple(part) if all(isinstance(column, str) for column in part) else None
