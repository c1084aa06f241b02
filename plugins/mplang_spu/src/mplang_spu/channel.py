# ruff: noqa: N802 (libspu calls these names)
"""Channel of libspu over the communicator of a worker."""

from __future__ import annotations

from mplang_core.ext import CommError, Communicator
from mplang_spu.libspu import libspu


class MPLangChannel(libspu.link.IChannel):  # type: ignore[misc]
    """Channel from one party to another, with libspu's interface ``IChannel``.

    libspu calls these methods from the thread that runs the job; CHEETAH also calls them from its
    worker threads. An exception ends the job at this party only.

    Args:
        comm: this party's communicator; aborting it ends a waiting ``Recv``.
        local_rank: this party.
        peer_rank: the other party.
        tag_prefix: the job's unique key prefix, ``run/place``. It may change between jobs.
        unsent: the list that collects errors of sending, shared by all channels of a link.
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
        """Send a message without waiting for the receiver.

        It never raises, since CHEETAH also sends from destructors, where an exception would end the
        process. The next ``Recv`` raises the error instead.

        Args:
            tag: libspu's tag of the message.
            data: the message.
        """
        try:
            self._comm.send(self._peer_rank, f"{self.tag_prefix}|{tag}", data)
        except Exception as error:
            self._unsent.append(error)

    SendAsync = Send
    SendAsyncThrottled = Send

    def Recv(self, tag: str) -> bytes:
        """Wait for the message with a tag.

        Raises:
            CommError: the message is empty or not bytes, none will come, or an earlier one was not
                sent.
        """
        if self._unsent:
            raise self._unsent[0]
        data = self._comm.recv(self._peer_rank, f"{self.tag_prefix}|{tag}")
        if not isinstance(data, bytes | bytearray | memoryview) or not len(data):
            raise CommError(  # libspu sends no empty message, and crashes on receiving one
                f"party {self._local_rank} expected bytes of SPU from party {self._peer_rank}, "
                f"got {type(data).__name__} (empty, or no bytes)",
                code="L005",
            )
        return data if isinstance(data, bytes) else bytes(data)

    def TestSend(self, timeout_ms: int) -> None:
        """Do nothing: the peer's communicator is known to be up."""

    def TestRecv(self) -> None:
        """Do nothing: there is no greeting to wait for."""

    def WaitLinkTaskFinish(self) -> None:
        """Do nothing: sending is complete when ``Send`` returns."""

    def Abort(self) -> None:
        """Do nothing: the communicator's abort ends all waiting."""

    def SetThrottleWindowSize(self, size: int) -> None:
        """Do nothing: sending is not throttled."""

    def SetChunkParallelSendSize(self, size: int) -> None:
        """Do nothing: messages are not split."""

    def SetRecvTimeout(self, timeout_ms: int) -> None:
        """Store the timeout; the communicator's own applies."""
        self._timeout_ms = timeout_ms

    def GetRecvTimeout(self) -> int:
        """Return the stored timeout in milliseconds."""
        return self._timeout_ms
