"""Lines of ``mplang audit show``: one for each entry, and the times that it is asked for."""

from __future__ import annotations

import datetime
import re

from mplang_core.ext import ConfigError

MAX_LINE = 240  # characters of a reason
UNITS = {"m": 60, "h": 3600, "d": 86400}  # seconds


def one_line(text: str) -> str:
    r"""Return a text of several lines in one, cut if it is long.

    Example:
        >>> one_line("bank refuses it:\n- row 1\n- row 2")
        'bank refuses it: - row 1 - row 2'
    """
    line = " ".join(text.split())
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}… (mplang audit export has all)"


def time_since(text: str, now: float) -> float:
    """Return the time that a user means, in seconds since 1970.

    Args:
        text: a date or a time in ISO 8601, UTC if it names no zone; or a number of minutes, hours
            or days ago, such as ``24h``.
        now: the time, in seconds since 1970.

    Raises:
        ConfigError: it is neither.

    Example:
        >>> time_since("1970-01-02", 0.0), time_since("2h", 7300.0)
        (86400.0, 100.0)
    """
    ago = re.fullmatch(r"(\d{1,9})([mhd])", text)
    if ago:
        return now - int(ago[1]) * UNITS[ago[2]]
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            "--since takes a date or a time, such as 2026-03-01, or 90m, 24h or 7d ago; not "
            f"{text!r}",
            code="C006",
        ) from None
    return (when if when.tzinfo else when.replace(tzinfo=datetime.UTC)).timestamp()
