"""Extension interface: keys of rows as bytes, for packages that join by them.

Imports no Arrow.
"""

from mplang_match.key_columns import key_columns as key_columns
from mplang_match.kinds import KeyKind as KeyKind, common_kind as common_kind, kind_of as kind_of
from mplang_match.published import data_sets_of as data_sets_of, published_keys as published_keys
