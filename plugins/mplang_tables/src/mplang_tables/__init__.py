"""Tables as values of parties: their types, their codec, and what users put. Imports no Arrow."""

from mplang_tables.columns import check_table

__all__ = ["check_table"]
