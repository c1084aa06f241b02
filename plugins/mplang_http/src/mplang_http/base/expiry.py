"""Expiry of certificates, in words."""

from __future__ import annotations

import datetime

DAY = datetime.timedelta(days=1)
WARN = datetime.timedelta(days=30)
"""The time before a certificate expires, from which on everybody is warned of it."""


def days(left: datetime.timedelta) -> str:
    """Return a time in days, or in hours if it is less than one.

    Example:
        >>> days(datetime.timedelta(days=29, hours=5)), days(datetime.timedelta(minutes=90))
        ('29 days', '1 h')
    """
    return f"{left.days} days" if left >= DAY else f"{left // datetime.timedelta(hours=1)} h"
