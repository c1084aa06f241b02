"""Names of what Arrow has no type stubs for. Imports no Arrow."""

from __future__ import annotations

from typing import Any, TypeAlias

Table: TypeAlias = Any
"""A ``pyarrow.Table``, or a scan where an op takes one."""
Column: TypeAlias = Any
"""A ``pyarrow.ChunkedArray``."""
DataType: TypeAlias = Any
"""A ``pyarrow.DataType``."""
