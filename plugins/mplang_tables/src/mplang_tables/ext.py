"""Extension interface: tables as kernels get them, whole or read when used. Imports no Arrow."""

from mplang_tables.at_source import (
    AtSource as AtSource,
    Place as Place,
    stays_at_source as stays_at_source,
)
from mplang_tables.scan import Scan as Scan, loaded as loaded
