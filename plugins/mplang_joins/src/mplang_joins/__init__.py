"""Secret joins: tables of several parties, joined on secret shares; nobody learns who matched."""

from mplang_joins.frontend import join
from mplang_joins.joined import Joined

__all__ = ["Joined", "join"]
