"""Checks of public inputs by the front, before the engine gets them."""

from __future__ import annotations

import hashlib
import os

from mplang_http.ext import Buffer

from mplang_worker.base.errors import RequestError
from mplang_worker.front.threads import in_thread
from mplang_worker.wire import ipc


async def check_digest(body: ipc.Body, digest: str) -> None:
    """Check that a body is what its name says.

    Args:
        body: the body, which stays open.
        digest: its SHA-256, in hex.

    Raises:
        RequestError: it is another one.
    """
    data = ipc.read_file(os.dup(body)) if isinstance(body, int) else body or b""
    found = await in_thread(_digest_of, data)
    if found != digest:
        raise RequestError(
            400, "forged", f"a public input is named by the SHA-256 of its bytes, {found}"
        )


def _digest_of(data: Buffer) -> str:
    return hashlib.sha256(data).hexdigest()
