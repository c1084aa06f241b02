"""The frontend ``hello``: summaries, a vault, and a backend that can be watched."""

from mplang_hello.broadcast import broadcast
from mplang_hello.ops import join, pick, split, standardize, summarize
from mplang_hello.types import Half, HalfType, Summary, SummaryType

__all__ = [
    "Half",
    "HalfType",
    "Summary",
    "SummaryType",
    "broadcast",
    "join",
    "pick",
    "split",
    "standardize",
    "summarize",
]
