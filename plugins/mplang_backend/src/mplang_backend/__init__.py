"""Building blocks of backends: a mailbox for communicators, results, a table of differences."""

from mplang_backend.mailbox import CommunicatorBase
from mplang_backend.mismatch_table import differences
from mplang_backend.results import outcome_of, type_of

__all__ = ["CommunicatorBase", "differences", "outcome_of", "type_of"]
