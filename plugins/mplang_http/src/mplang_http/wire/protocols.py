"""Protocols of workers with their versions, and the words that both sides of them use."""

from __future__ import annotations

from mplang_core.ext import WIRE_VERSION

UPGRADE = "mplang-link/5"
"""Protocol of links, as the header ``Upgrade`` of a link's first request names it."""

PROTOCOLS = {"wire": str(WIRE_VERSION), "link": UPGRADE}

MPC_ENDED = "mpc-ended"
"""Code of the error of calls that an MPC process does not answer."""

PUBLIC_NAME = "public."
"""What the names of public inputs begin with, and no others; the rest is the SHA-256."""

LINK_PROTOCOL = "mplang-link"
"""The ALPN protocol of a connection that is to become a link: the front tells it by this."""
