"""Matching: which rows two parties have in common, by libpsi, and nothing else."""

from mplang_match.frontend import match
from mplang_match.matcher import Matcher, MatchLink

__all__ = ["MatchLink", "Matcher", "match"]
