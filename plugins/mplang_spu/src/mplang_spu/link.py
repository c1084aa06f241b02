"""Links of libspu over the communicator, memory or BRPC."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from mplang_core import Mask
from mplang_core.ext import Communicator, RecvTimeoutError
from mplang_spu.config import from_env
from mplang_spu.libspu import libspu

Mode: TypeAlias = Literal["channels", "memory", "brpc"]

MAX_PAYLOAD = 32 << 20  # bytes of one BRPC message; larger ones are split

_LATE = re.compile(r"Get data timeout, key=\S*?(:(?P<sender>\d+)->\d+)?(\s|$)")

_not_yet_warned = threading.Lock()  # never released: the holder has warned


def choose(config: Mapping[str, Any], in_memory: bool = False) -> Mode:
    """Choose the link mode: by the environment, then the device's configuration, then the parties.

    Without channels in this build of libspu, the mode is BRPC if addresses are given, otherwise
    memory; the first such call warns.

    Args:
        config: of the device.
        in_memory: whether the parties can be linked in memory; they are, unless a mode is asked
            for.

    Returns:
        The mode.
    """
    wanted = from_env()
    if wanted is None:
        wanted = config.get("use_mplang_channel")
    if wanted is None:
        if in_memory:
            return "memory"
        wanted = True
    supported = hasattr(libspu.link, "create_with_channels")
    if wanted and supported:
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
    """Link of libspu among the members of one SPU, for one job at a time.

    - channels, if ``comm`` is given: messages go through the communicator;
    - memory, if ``mem_link`` is true: among threads of this process;
    - BRPC otherwise: each party listens at its address.

    Args:
        rank: this party's rank in the cluster with ``comm``, otherwise its index in ``addrs``.
        addrs: the addresses of all members, for BRPC; any unique names, for memory.
        mem_link: whether the link is in memory.
        comm: the communicator to send through.
        spu_mask: the members, with ``comm``.
        name: the link's name, used once and equal at all members.
        timeout: seconds that BRPC and memory links wait; a communicator has its own timeout.

    Attributes:
        lctx: libspu's link context.
        mode: the link mode.
        name: the link's name.
        rank: this party's index among the members.
        world_size: the number of members.
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
        self._names = addrs
        self._timeout = timeout
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
        """Set the key prefix of the next job: its messages have keys ``tag_prefix|tag``."""
        for channel in self._channels:
            if channel is not None:
                channel.tag_prefix = tag_prefix

    def check(self) -> None:
        """Raise the first error of sending, if there was one."""
        if self._unsent:
            raise self._unsent[0]

    def timeout_of(self, error: RuntimeError) -> RecvTimeoutError | None:
        """Return mplang's error for one of libspu, if a link waited in vain.

        Args:
            error: as libspu raised it.

        Returns:
            An error that names the members; ``None`` for other failures.
        """
        found = _LATE.search(str(error))
        if found is None:
            return None
        sender = f" from {self._names[int(found['sender'])]}" if found["sender"] else ""
        return RecvTimeoutError(
            f"{self._names[self.rank]} waited {self._timeout:g} s for a message of SPU{sender}; it "
            "computes for longer than that, or has failed"
        )

    def close(self) -> None:
        """Release the context; a BRPC address is free once the last runtime on it is gone."""
        self.lctx = None  # stop_link would wait for the other members


def _channels(
    comm: Communicator, members: Mask, tag_prefix: str, unsent: list[Exception]
) -> list[Any]:
    """Return a channel per member, ``None`` for this party."""
    from mplang_spu.channel import MPLangChannel  # an old libspu has no channels

    return [
        None if peer == comm.rank else MPLangChannel(comm, comm.rank, peer, tag_prefix, unsent)
        for peer in members
    ]
