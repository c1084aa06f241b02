"""Section ``retention`` of a worker's configuration: how long sessions keep values."""

from __future__ import annotations

from mplang_core.ext import DAY, Days, StrictModel, count_days


class RetentionConfig(StrictModel):
    """Retention of values in memory; what is on disk has rules in its own section.

    Attributes:
        kept: days that a session is open, with all values that it keeps, such as ``7d``; as long
            as its coordinator renews its lease if ``None``.

    Example:
        >>> RetentionConfig(kept="7d").seconds
        604800.0
    """

    kept: Days | None = None

    @property
    def seconds(self) -> float | None:
        """Return the days of :attr:`kept` in seconds."""
        return None if self.kept is None else count_days(self.kept) * DAY
