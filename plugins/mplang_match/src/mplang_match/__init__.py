"""Matching: which rows two parties have in common, by libpsi, and nothing else."""

from mplang_match.frontend import match
from mplang_match.matcher import Link, Matcher

__all__ = ["Link", "Matcher", "match"]
