"""Tables as values of parties: what users put, and ops to tensors and back. Imports no Arrow.

Its module :mod:`mplang_tables.arrow` converts tables to and from Arrow, which it imports.
"""

from mplang_tables.casts import cast
from mplang_tables.categories import check_values, decode, encode, fits, one_hot
from mplang_tables.columns import check_table, is_number, number_columns
from mplang_tables.integers import from_integers, to_integers
from mplang_tables.literal_table import table
from mplang_tables.nulls import fill_nulls
from mplang_tables.ops import from_padded, from_tensor, literal, to_masked, to_padded, to_tensor
from mplang_tables.padded import Padded
from mplang_tables.schemas import arrow_schema, table_type
from mplang_tables.table_view import TableView, view

__all__ = [
    "Padded",
    "TableView",
    "arrow",
    "arrow_schema",
    "cast",
    "check_table",
    "check_values",
    "decode",
    "encode",
    "fill_nulls",
    "fits",
    "from_integers",
    "from_padded",
    "from_tensor",
    "is_number",
    "literal",
    "number_columns",
    "one_hot",
    "table",
    "table_type",
    "to_integers",
    "to_masked",
    "to_padded",
    "to_tensor",
    "view",
]
