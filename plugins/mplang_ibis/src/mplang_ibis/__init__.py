"""Ibis frontend: Python functions of tables compiled to SQL, and run on DuckDB."""

from mplang_ibis.frontend import ibis_compile

__all__ = ["ibis_compile"]
