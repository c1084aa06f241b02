"""Results that stay: values that programs leave in the storage of their parties, and load again.

Imports no Arrow.
"""

from mplang_data.stored.agreement import agree
from mplang_data.stored.entry import NO_SINK, Entry, Held, NotStoredError, StoreError
from mplang_data.stored.frontend import load, remove, store
from mplang_data.stored.run import Storage, StoreRun
from mplang_data.stored.sink import Sink
from mplang_data.stored.sink_config import SinkConfig, read_sink

__all__ = [
    "NO_SINK",
    "Entry",
    "Held",
    "NotStoredError",
    "Sink",
    "SinkConfig",
    "Storage",
    "StoreError",
    "StoreRun",
    "agree",
    "load",
    "read_sink",
    "remove",
    "store",
]
