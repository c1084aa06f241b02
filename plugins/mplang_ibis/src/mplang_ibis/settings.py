"""Section of this plugin in a worker's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from mplang_core.ext import StrictModel


class QuerySettings(StrictModel):
    """Limits of a query.

    Attributes:
        memory: bytes of memory; the engine of a session has a limit, too.
        seconds: time after which it is interrupted; a week at most.
        threads: threads of a query of data sets, if its result has the same bytes on any number of
            them; by default one for each core.
        join: how many times the rows of the largest table that it reads a join by equal columns may
            have, before its query fails.

    Example:
        >>> QuerySettings(seconds=60).seconds
        60.0
    """

    memory: int = Field(default=4_000_000_000, gt=0, le=1 << 50, strict=True)
    join: int = Field(default=16, gt=0, le=1 << 50, strict=True)
    threads: int | None = Field(default=None, gt=0, le=1 << 10, strict=True)
    seconds: float = Field(default=600.0, gt=0, le=604_800)


current = QuerySettings()
"""Settings of this process."""


def configure(section: Mapping[str, Any]) -> None:
    """Replace the settings of this process.

    Raises:
        ConfigError: a field is invalid or unknown.
    """
    global current
    current = QuerySettings(**section)
