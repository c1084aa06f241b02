"""What SPU's messages go over, and which of the ways is taken."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import spu.libspu as libspu

from mplang_core.mask import Mask
from mplang_core.simp import Communicator
from mplang_spu.config import ENV, from_env

__all__ = ["ENV", "LinkCommunicator", "Mode", "choose", "from_env"]

Mode: TypeAlias = Literal["channels", "memory", "brpc"]

MAX_PAYLOAD = 32 << 20  # bytes of one BRPC message; larger ones are cut

_not_yet_warned = threading.Lock()  # taken by the one that warns, for good


def choose(config: Mapping[str, Any]) -> Mode:
    """Choose a way: by the environment, then the device's configuration, then channels.

    A build of libspu without channels leaves BRPC, or memory where no addresses are given;
    it is warned of that, once.
    """
    wanted = from_env()
    if wanted is None:
        wanted = config.get("use_mplang_channel", True)
    there = hasattr(libspu.link, "create_with_channels")
    if wanted and there:
        return "channels"
    fallback: Mode = "brpc" if config.get("brpc_addresses") else "memory"
    if wanted and _not_yet_warned.acquire(blocking=False):
        warnings.warn(
            f"this build of libspu has no channels, so SPU takes {fallback} links; "
            "pip install 'spu>=0.10.0.dev20251211'",
            RuntimeWarning,
            stacklevel=2,
        )
    return fallback


class LinkCommunicator:
    """A link of libspu, in one of three modes.

    - channels, where ``comm`` is given: the messages go through it;
    - memory, where ``mem_link`` is true: among threads of this process;
    - BRPC otherwise: each party listens at its address.

    For one job at a time.

    Args:
        rank: this party: in the cluster with ``comm``, otherwise its index in ``addrs``.
        addrs: of all members, for BRPC; any names, for memory.
        mem_link: whether the link is in memory.
        comm: what to send through.
        spu_mask: the members, with ``comm``.
        name: of the link, used once; the same at all members.
        timeout: how many seconds BRPC and memory links wait; a communicator knows its own.

    Attributes:
        lctx: libspu's context.
        mode: which of the three.
        name: of the link.
        rank: this party's index among the members.
        world_size: how many members there are.
    """

    def __init__(
        self,
        rank: int,
        addrs: Sequence[str] | None = None,
        *,
        mem_link: bool = False,
        comm: Communicator | None = None,
        spu_mask: Mask | None = None,
        name: str = "spu",
        timeout: float = 100.0,
    ) -> None:
        self.name = name
        self._channels: list[Any] = []
        self._unsent: list[Exception] = []
        if comm is not None:
            if spu_mask is None or rank not in spu_mask:
                raise ValueError(f"with comm, rank {rank} is one of spu_mask, got {spu_mask}")
            addrs = [f"P{member}" for member in spu_mask]
            rank = spu_mask.global_to_relative_rank(rank)
        elif addrs is None:
            raise ValueError("without comm, a link needs addrs")
        self.mode: Mode = "channels" if comm else "memory" if mem_link else "brpc"
        self.rank = rank
        self.world_size = len(addrs)
        desc = libspu.link.Desc()
        desc.id = name
        desc.recv_timeout_ms = int(timeout * 1000)
        desc.http_max_payload_size = MAX_PAYLOAD
        for i, address in enumerate(addrs):
            desc.add_party(f"P{i}", address)
        if comm is not None and spu_mask is not None:
            self._channels = _channels(comm, spu_mask, name, self._unsent)
            self.lctx = libspu.link.create_with_channels(desc, rank, self._channels)
        elif mem_link:
            self.lctx = libspu.link.create_mem(desc, rank)
        else:
            self.lctx = libspu.link.create_brpc(desc, rank)

    def set_tag_prefix(self, tag_prefix: str) -> None:
        """Have the messages of the next job go by keys ``place|tag``."""
        for channel in self._channels:
            if channel is not None:
                channel.tag_prefix = tag_prefix

    def check(self) -> None:
        """Raise the first error of sending, if there was one."""
        if self._unsent:
            raise self._unsent[0]

    def close(self) -> None:
        """Let go of the context; what BRPC listens at is free with the last runtime on it."""
        self.lctx = None  # stop_link would wait for the other members


def _channels(
    comm: Communicator, members: Mask, tag_prefix: str, unsent: list[Exception]
) -> list[Any]:
    """Return a channel per member, ``None`` for this party."""
    from mplang_spu.channel import MPLangChannel  # not there in an old libspu

    return [
        None if peer == comm.rank else MPLangChannel(comm, comm.rank, peer, tag_prefix, unsent)
        for peer in members
    ]
