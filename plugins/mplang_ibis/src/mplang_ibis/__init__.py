"""Ibis frontend: Python functions of tables compiled to SQL, and run on DuckDB."""

from mplang_ibis.frontend import ibis_compile, table
from mplang_ibis.ops import from_tensor, literal, to_tensor

__all__ = ["from_tensor", "ibis_compile", "literal", "table", "to_tensor"]
