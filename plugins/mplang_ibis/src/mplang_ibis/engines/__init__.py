"""DuckDB's SQL on other engines: what runs there is generated from DuckDB's syntax tree.

A program has one SQL, DuckDB's. Where its tables are in PostgreSQL, say, the engine runs a
statement of its own, made from the tree that DuckDB's parser gives: each node by a rule that is
known to answer as DuckDB does, with its types. Whatever has no rule is refused, by a row of the
table of differences.
"""

from mplang_ibis.engines.differences import DIFFERENCES, ENGINES, TITLES, DialectDifference
from mplang_ibis.engines.expression import EngineRefusal
from mplang_ibis.engines.statements import Offered, SqlStatement, refusal, to_dialect

__all__ = [
    "DIFFERENCES",
    "ENGINES",
    "TITLES",
    "DialectDifference",
    "EngineRefusal",
    "Offered",
    "SqlStatement",
    "refusal",
    "to_dialect",
]
