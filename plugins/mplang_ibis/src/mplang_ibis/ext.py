"""Extension interface: SQL for kernels of other packages. Imports DuckDB at the first query."""

from typing import TYPE_CHECKING, Any

from mplang_ibis.sql import quoted as quoted

if TYPE_CHECKING:  # found by __getattr__
    from mplang_ibis.query import run_sql as run_sql


def __getattr__(name: str) -> Any:
    """Return what imports DuckDB, when it is used."""
    if name == "run_sql":
        from mplang_ibis.query import run_sql

        return run_sql
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
