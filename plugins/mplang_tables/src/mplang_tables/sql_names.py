"""Names and texts as SQL reads them. Imports no Arrow."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name as SQL reads it.

    Example:
        >>> print(quoted('pay "net" of tax'))
        "pay ""net"" of tax"
    """
    return '"' + name.replace('"', '""') + '"'


def quoted_text(value: str) -> str:
    """Return a text as a literal of SQL.

    Example:
        >>> print(quoted_text("it's"))
        'it''s'
    """
    return "'" + value.replace("'", "''") + "'"
