"""Tables as values of parties: what users put, and ops to tensors and back. Imports no Arrow.

Its module :mod:`mplang_tables.arrow` converts tables to and from Arrow, which it imports.
"""

from mplang_tables.columns import check_table, is_number, number_columns
from mplang_tables.literal_table import table
from mplang_tables.ops import encode, fits, from_tensor, literal, one_hot, to_padded, to_tensor
from mplang_tables.padded import Padded
from mplang_tables.schemas import arrow_schema, table_type

__all__ = [
    "Padded",
    "arrow",
    "arrow_schema",
    "check_table",
    "encode",
    "fits",
    "from_tensor",
    "is_number",
    "literal",
    "number_columns",
    "one_hot",
    "table",
    "table_type",
    "to_padded",
    "to_tensor",
]
