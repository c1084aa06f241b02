"""How parties talk over gRPC: each message is a call, which the receiver answers or refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.ext import CommError, CommunicatorBase, size_of

from mplang_grpc import wire
from mplang_grpc.rpc import Client, Methods, Server


class GrpcCommunicator(CommunicatorBase):
    """A party's server, and its clients of the others; the mailbox is the core's.

    Args:
        rank: this party.
        world_size: how many parties there are.
        timeout: how many seconds one ``recv`` or ``send`` takes at most.
        address: where its server listens.
        methods: what its server does beside taking messages.

    Attributes:
        server: its server.

    Example:
        >>> a, b = GrpcCommunicator.connected(2, timeout=10.0)
        >>> b.open("run")
        >>> a.send(1, "run/0", True)
        >>> b.recv(0, "run/0")
        True
        >>> a.shut(), b.shut()
        (None, None)
    """

    def __init__(
        self,
        rank: int,
        world_size: int,
        timeout: float,
        address: str = "127.0.0.1:0",
        methods: Methods | None = None,
    ) -> None:
        super().__init__(rank, world_size, timeout)
        self._peers: Mapping[int, Client] = {}
        mine: Methods = {wire.Send: self._sent, wire.Abort: self._aborted}
        self.server = Server(address, {**mine, **(methods or {})})

    @classmethod
    def connected(cls, world_size: int, timeout: float) -> list[GrpcCommunicator]:
        """Return one communicator per party, all in this process."""
        comms = [cls(rank, world_size, timeout) for rank in range(world_size)]
        introduce(comms)
        return comms

    def meet(self, addresses: Sequence[str]) -> None:
        """Know where the parties are, by rank."""
        others = enumerate(addresses)
        self._peers = {rank: Client(rank, at) for rank, at in others if rank != self.rank}

    def _send(self, to_rank: int, key: str, data: Any) -> int:
        """Send a value, and return once it is in the other's mailbox."""
        message = wire.Send(self.rank, key, wire.pack(data))
        self._peers[to_rank].ask(message, self.timeout)
        return size_of(data)

    def abort(self, run: str, reason: str) -> None:
        """End all waiting in a run at all parties, but for lost ones."""
        self.stop(run, reason)
        for peer in self._peers.values():
            peer.start(wire.Abort(run, reason), self.timeout)

    def _sent(self, message: wire.Send) -> None:
        if message.sender not in self._peers:
            raise CommError(f"there is no party {message.sender} among {self.world_size}")
        value = wire.unpack(message.value)
        self.deliver(message.sender, message.key, value)

    def _aborted(self, message: wire.Abort) -> None:
        self.stop(message.run, message.reason)

    def shut(self) -> None:
        """End its server and its clients."""
        self.server.close()
        for peer in self._peers.values():
            peer.close()


def introduce(comms: Sequence[GrpcCommunicator]) -> None:
    """Have parties of one process know each other, once their servers have ports."""
    for comm in comms:
        comm.meet([other.server.address for other in comms])
