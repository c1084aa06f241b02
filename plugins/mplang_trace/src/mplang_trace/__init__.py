"""Spans, recordings and live tables of what a host and its parties do.

``mp.record``, ``mp.watch``, ``mp.Recording`` and ``mp.Span`` are found here, where this package
is installed.
"""

from mplang_trace.chart import OpBlock, PartyLane
from mplang_trace.line_bars import Bar, LineBars
from mplang_trace.lines import LineUse, LineUses
from mplang_trace.live_table import watch
from mplang_trace.recording import Recording, record
from mplang_trace.screens import terminal
from mplang_trace.spans import LinkUse, Span, SpanRecorder, now
from mplang_trace.timeline import Timeline

__all__ = [
    "Bar",
    "LineBars",
    "LineUse",
    "LineUses",
    "LinkUse",
    "OpBlock",
    "PartyLane",
    "Recording",
    "Span",
    "SpanRecorder",
    "Timeline",
    "now",
    "record",
    "terminal",
    "watch",
]
