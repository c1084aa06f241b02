"""Matching: which rows two parties have in common, by libpsi, and nothing else.

Its module :mod:`mplang_match.keys` makes bytes of the keys of rows, and imports Arrow.
"""

from mplang_match.frontend import match
from mplang_match.matcher import Matcher, MatchLink

__all__ = ["MatchLink", "Matcher", "keys", "match"]
