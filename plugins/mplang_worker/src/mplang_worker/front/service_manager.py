"""Notification of the service manager: sd_notify(3), for units of ``Type=notify``."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Report a state to the service manager, if there is one.

    Args:
        state: ``READY=1`` or ``STOPPING=1``.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(state.encode(), address)
