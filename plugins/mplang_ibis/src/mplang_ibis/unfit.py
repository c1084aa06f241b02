"""Error of tables that are not what their catalogue says."""

from __future__ import annotations

from mplang_core.ext import KernelError


class UnfitTableError(KernelError, code="R011"):
    """A table has other columns than its catalogue says. The text names columns, and no value."""
