# ruff: noqa: N802 (libspu calls these names)
"""Channel of libpsi over the communicator of a process."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mplang_spu.ext import MPLangChannel

from mplang_core.ext import CommError
from mplang_match.matcher import MatchLink


class PsiChannel(MPLangChannel):
    """Channel to the other party of a matching; libpsi sends empty messages as well.

    Args:
        link: to the other party.
        fail: is told why the link has failed; then the thread that waits never comes back.
    """

    def __init__(self, link: MatchLink, fail: Callable[[BaseException], None]) -> None:
        super().__init__(link.communicator, link.communicator.rank, link.peer, link.key)
        self._link, self._fail = link, fail

    def Send(self, tag: str, data: bytes) -> None:
        """Send a message without waiting for the receiver."""
        try:
            self._link.communicator.send(self._link.peer, f"{self._link.key}|{tag}", bytes(data))
        except BaseException as error:
            self._stop(error)

    SendAsync = Send
    SendAsyncThrottled = Send

    def Recv(self, tag: str) -> bytes:
        """Wait for the message with a tag."""
        try:
            data = self._link.communicator.recv(self._link.peer, f"{self._link.key}|{tag}")
            if isinstance(data, bytes | bytearray | memoryview):
                return bytes(data)
            raise CommError(f"party {self._link.peer} sent something else than bytes", code="L005")
        except BaseException as error:
            return self._stop(error)

    def _stop(self, error: BaseException) -> bytes:
        self._fail(error)
        threading.Event().wait()
        raise AssertionError from error  # nobody sets it
