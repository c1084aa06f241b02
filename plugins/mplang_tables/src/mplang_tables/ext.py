"""Extension interface: tables as kernels get them, whole or read when used. Imports no Arrow."""

from mplang_tables.scan import Scan as Scan, loaded as loaded
