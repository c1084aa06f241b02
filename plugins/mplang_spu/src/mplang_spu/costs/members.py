# ruff: noqa: N802 (libspu calls these names)
"""Members of an SPU in one process, whose channels count what they send."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mplang_spu import engine
from mplang_spu.libspu import libspu
from mplang_spu.oblivious_transfer import Way

SECONDS = 60.0  # that a member waits for a message


class Sent(NamedTuple):
    """Message between members.

    Attributes:
        sender: the index of the member that sends it.
        link: ``root``, or the name of a link that a protocol has beside it.
        kind: ``ALLGATHER`` if all members send each other one at once, otherwise ``P2P``.
        size: in bytes.
    """

    sender: int
    link: str
    kind: str
    size: int


class Ran(NamedTuple):
    """Cost of a run.

    Attributes:
        sent: the messages of all members.
        rounds: the longest chain of messages of which each waits for the one before.
        in_turn: the most bytes that go one after the other, each link taking one at a time.
        seconds: of the CPU, of a member.
    """

    sent: Sequence[Sent]
    rounds: int
    in_turn: int
    seconds: float


class _Letter(NamedTuple):
    """Message, and when it arrives: after so many messages, and so many bytes."""

    data: bytes
    before: int
    bytes_before: int


class _Letters:
    """Letter box of a member."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._waiting = defaultdict[tuple[int, str], deque[_Letter]](deque)

    def put(self, sender: int, tag: str, letter: _Letter) -> None:
        with self._arrived:
            self._waiting[sender, tag].append(letter)
            self._arrived.notify_all()

    def take(self, sender: int, tag: str) -> _Letter:
        with self._arrived:
            self._arrived.wait_for(lambda: self._waiting[sender, tag], SECONDS)
            return self._waiting.pop((sender, tag)).popleft()


class _Channel(libspu.link.IChannel):  # type: ignore[misc]
    """Channel between two members. Each message tells how many came before it."""

    def __init__(self, members: Members, me: int, peer: int) -> None:
        super().__init__()
        self._members, self._me, self._peer = members, me, peer
        self.bytes_sent = 0

    def Send(self, tag: str, data: bytes) -> None:
        link, number, *_ = tag.split(":")
        kind = "ALLGATHER" if tag.endswith("ALLGATHER") else number.partition("-")[0]
        members = self._members
        members.sent.append(Sent(self._me, link, kind, len(data)))
        before, bytes_before = members.clocks[self._me]
        self.bytes_sent = max(self.bytes_sent, bytes_before) + len(data)
        letter = _Letter(bytes(data), before + 1, self.bytes_sent)
        members.letters[self._peer].put(self._me, tag, letter)

    SendAsync = Send
    SendAsyncThrottled = Send

    def Recv(self, tag: str) -> bytes:
        letter = self._members.letters[self._me].take(self._peer, tag)
        before, bytes_before = self._members.clocks[self._me]
        later = max(before, letter.before), max(bytes_before, letter.bytes_before)
        self._members.clocks[self._me] = later
        return letter.data

    def TestSend(self, timeout_ms: int) -> None: ...

    def TestRecv(self) -> None: ...

    def WaitLinkTaskFinish(self) -> None: ...

    def Abort(self) -> None: ...

    def SetThrottleWindowSize(self, size: int) -> None: ...

    def SetChunkParallelSendSize(self, size: int) -> None: ...

    def SetRecvTimeout(self, timeout_ms: int) -> None: ...

    def GetRecvTimeout(self) -> int:
        return int(SECONDS * 1000)


class Members:
    """Members of an SPU, each with a runtime of its own, on channels that count.

    Args:
        count: how many they are.
        config: protocol, field and fixed point.
        ot: how CHEETAH makes oblivious transfers.

    Attributes:
        count: how many they are.
        set_up: what it took to begin.
        sent: the messages of the last run.
        clocks: per member, how many messages, and bytes, came one after the other until now.
        letters: their letter boxes.
    """

    def __init__(self, count: int, config: Mapping[str, object], ot: Way) -> None:
        self.count = count
        self.sent: list[Sent] = []
        self.clocks = [(0, 0)] * count
        self._channels: list[_Channel] = []
        self.letters = [_Letters() for _ in range(count)]
        protocol, field, fxp = (config[e] for e in ("protocol", "field", "fxp_fraction_bits"))
        self._setting = count, str(protocol), str(field), int(str(fxp))
        self._pool = ThreadPoolExecutor(count)
        runtime = engine.runtime_config(config, ot)
        self._links = list(self._pool.map(self._link, range(count)))  # no runtime keeps its own
        self._runtimes = list(
            self._pool.map(lambda link: libspu.RuntimeWrapper(link, runtime), self._links)
        )
        self.set_up = self._ran(0.0)

    def _link(self, index: int) -> object:
        desc = libspu.link.Desc()
        desc.id = "root"
        for i in range(self.count):
            desc.add_party(f"P{i}", f"P{i}")
        others = [None if i == index else _Channel(self, index, i) for i in range(self.count)]
        self._channels += filter(None, others)
        link: object = libspu.link.create_with_channels(desc, index, others)
        return link

    def put(self, name: str, array: NDArray[np.generic], secret: bool) -> None:
        """Set a variable to an array, shared or public."""
        io = engine.io(*self._setting)
        pieces = io.make_shares(np.asarray(array, order="C"), engine.visibility(secret))
        for runtime, piece in zip(self._runtimes, pieces, strict=True):
            runtime.SetVar(name, piece)

    def storage(self, name: str) -> str:
        """Return how a variable is stored, as libspu names it."""
        storage: str = self._runtimes[0].GetVarMeta(name).storage_type
        return storage

    def copy(self, name: str, to: str) -> None:
        """Set a variable to another one."""
        for runtime in self._runtimes:
            runtime.SetVar(to, runtime.GetVar(name))

    def drop(self, name: str) -> None:
        """Delete a variable."""
        for runtime in self._runtimes:
            runtime.DelVar(name)

    def run(self, code: str, ins: Sequence[str], outs: Sequence[str]) -> Ran:
        """Run PPHLO on variables."""
        program = libspu.Executable(
            name="count", input_names=list(ins), output_names=list(outs), code=code.encode()
        )
        self.sent, self.clocks = [], [(0, 0)] * self.count
        for channel in self._channels:
            channel.bytes_sent = 0
        begin = time.process_time()
        list(self._pool.map(lambda runtime: runtime.Run(program), self._runtimes))
        seconds = (time.process_time() - begin) / self.count
        return self._ran(seconds)

    def _ran(self, seconds: float) -> Ran:
        rounds, in_turn = map(max, zip(*self.clocks, strict=True))
        return Ran(self.sent, rounds, in_turn, seconds)
