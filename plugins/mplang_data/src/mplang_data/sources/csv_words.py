"""Names for what CSV files are read as: Arrow has no types for mypy. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Buffer: TypeAlias = Any
"""Arrow buffer, such as a file."""

Schema: TypeAlias = Any
Table: TypeAlias = Any
Type: TypeAlias = Any
"""Arrow's schemas, tables and types."""

Words: TypeAlias = Any
"""Arrow column of strings."""

Values: TypeAlias = Any
"""Arrow column of whatever type."""

Fields: TypeAlias = Mapping[str, Any]
"""Fields of ``CsvOptions``, as plain data."""
