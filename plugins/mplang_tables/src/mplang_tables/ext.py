"""Extension interface: tables as kernels get them, whole or read when used, and names in SQL.

Imports no Arrow.
"""

from mplang_tables.at_source import (
    AtSource as AtSource,
    Place as Place,
    stays_at_source as stays_at_source,
)
from mplang_tables.columns import wide_dtype as wide_dtype
from mplang_tables.scan import Scan as Scan, loaded as loaded
from mplang_tables.sql_names import quoted as quoted, quoted_text as quoted_text
