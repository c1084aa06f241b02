"""Spans, recordings and live tables of what a host and its parties do.

``mp.record``, ``mp.watch``, ``mp.Recording`` and ``mp.Span`` are found here, where this package
is installed.
"""

from mplang_trace.live_table import watch
from mplang_trace.recording import Recording, record
from mplang_trace.screens import terminal
from mplang_trace.spans import LinkUse, Span, SpanRecorder, now

__all__ = ["LinkUse", "Recording", "Span", "SpanRecorder", "now", "record", "terminal", "watch"]
