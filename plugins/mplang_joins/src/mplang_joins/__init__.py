"""Secret joins: tables of several parties, joined on secret shares; nobody learns who matched."""

from mplang_joins.across.groups import JoinedGroups
from mplang_joins.explaining import Explanation, explain
from mplang_joins.frontend import join
from mplang_joins.in_common import Overlap, overlap
from mplang_joins.rows import JoinedRows

__all__ = ["Explanation", "JoinedGroups", "JoinedRows", "Overlap", "explain", "join", "overlap"]
