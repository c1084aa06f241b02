"""Retention of a log: after how many days its details and the bodies of its entries expire."""

from __future__ import annotations

from pydantic import model_validator

from mplang_core.ext import Days, StrictModel, count_days


class Retention(StrictModel):
    """Days that parts of a log are kept.

    Attributes:
        details: what entries speak of: the rows of programs, and texts of rules that count no more.
        entries: bodies of entries; an older entry keeps its number, time, kind and hash.

    Example:
        >>> Retention(details="90d", entries="365d").days
        {'details': 90, 'entries': 365}
    """

    details: Days | None = None
    entries: Days | None = None

    @property
    def days(self) -> dict[str, int]:
        """Return the rules in force: by what is kept the days. Details go with their entries."""
        entries = count_days(self.entries)
        details = count_days(self.details) or entries
        rules = {"details": details, "entries": entries}
        return {name: days for name, days in rules.items() if days is not None}

    @model_validator(mode="after")
    def _check(self) -> Retention:
        details, entries = count_days(self.details), count_days(self.entries)
        if details and entries and details > entries:
            raise ValueError(
                f"details are kept no longer than the entries that speak of them: {self.entries}"
            )
        return self
