"""Protocols of workers, and their versions: they have to be the same at all parties."""

from __future__ import annotations

from mplang_core.ext import WIRE_VERSION

UPGRADE = "mplang-link/4"
"""Protocol of links, as the header ``Upgrade`` of a link's first request names it."""

PROTOCOLS = {"wire": str(WIRE_VERSION), "link": UPGRADE}
