"""The frontend ``hello``: summaries, a vault, and a backend that can be watched."""

from mplang_hello.broadcast import broadcast
from mplang_hello.ops import join, pick, split, standardize, summarize
from mplang_hello.rate import Rate, convert
from mplang_hello.spread import spread
from mplang_hello.types import Half, HalfType, Summary, SummaryType

__all__ = [
    "Half",
    "HalfType",
    "Rate",
    "Summary",
    "SummaryType",
    "broadcast",
    "convert",
    "join",
    "pick",
    "split",
    "spread",
    "standardize",
    "summarize",
]
