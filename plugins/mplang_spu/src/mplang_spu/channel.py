# ruff: noqa: N802 (libspu calls these names)
"""SPU's messages on the communicator of a worker."""

from __future__ import annotations

import spu.libspu as libspu

from mplang_core.errors import CommError
from mplang_core.simp import Communicator

__all__ = ["MPLangChannel"]


class MPLangChannel(libspu.link.IChannel):  # type: ignore[misc]
    """The way from one party to one other, as libspu sees it.

    libspu calls the methods with names of C++, from the thread that runs the job and, with
    CHEETAH, also from threads of its own. What they raise ends the job, here only.

    Args:
        comm: of this party; a waiting ``Recv`` ends when it is aborted.
        local_rank: this party.
        peer_rank: the other party.
        tag_prefix: ``run/place`` of the job, which no other job has. It may be changed
            between jobs.
        unsent: where errors of sending are kept; all channels of a link have one.
    """

    def __init__(
        self,
        comm: Communicator,
        local_rank: int,
        peer_rank: int,
        tag_prefix: str,
        unsent: list[Exception] | None = None,
    ) -> None:
        super().__init__()
        self.tag_prefix = tag_prefix
        self._comm = comm
        self._local_rank = local_rank
        self._peer_rank = peer_rank
        self._unsent = [] if unsent is None else unsent
        self._timeout_ms = 0

    def Send(self, tag: str, data: bytes) -> None:
        """Send; the communicator does not wait for the receiver.

        It never raises: CHEETAH also sends what is left when its objects go, amid another
        error, say, where an exception would end the process. ``Recv`` raises it instead.
        """
        try:
            self._comm.send(self._peer_rank, f"{self.tag_prefix}|{tag}", data)
        except Exception as error:
            self._unsent.append(error)

    SendAsync = Send
    SendAsyncThrottled = Send

    def Recv(self, tag: str) -> bytes:
        """Wait for the message of that tag.

        Raises:
            CommError: what came is no bytes, or nothing will come; or something was not sent.
        """
        if self._unsent:
            raise self._unsent[0]
        data = self._comm.recv(self._peer_rank, f"{self.tag_prefix}|{tag}")
        if not isinstance(data, bytes | bytearray | memoryview) or not len(data):
            raise CommError(  # libspu sends no empty message, and dies of one
                f"party {self._local_rank} expected bytes of SPU from party {self._peer_rank}, "
                f"got {type(data).__name__} of no use"
            )
        return data if isinstance(data, bytes) else bytes(data)

    def TestSend(self, timeout_ms: int) -> None:
        """Greet the other party: not needed, since its communicator is there."""

    def TestRecv(self) -> None:
        """Wait for the other's greeting: not needed."""

    def WaitLinkTaskFinish(self) -> None:
        """Wait until all is sent: it is."""

    def Abort(self) -> None:
        """End all waiting: the communicator's abort does."""

    def SetThrottleWindowSize(self, size: int) -> None:
        """Nothing is throttled."""

    def SetChunkParallelSendSize(self, size: int) -> None:
        """Messages are not cut."""

    def SetRecvTimeout(self, timeout_ms: int) -> None:
        """Take note; the communicator's own timeout holds."""
        self._timeout_ms = timeout_ms

    def GetRecvTimeout(self) -> int:
        """Return what was set."""
        return self._timeout_ms
