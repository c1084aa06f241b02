"""Simulator whose messages are recorded, whose randomness is dealt, and one party of which may lie.

Messages go between threads, or over TCP links of the HTTP backend.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from mplang_analysis import Holding, Memory
from mplang_simulator import Simulator
from mplang_worker.link.comm import HttpCommunicator

from mplang_core import ClusterSpec
from mplang_core.ext import (
    Communicator,
    KernelContext,
    WorkerInterpreter,
    encode,
    type_of,
    worker_kernels,
)
from mplang_core.namespace import Namespace

from .dealer import Dealer
from .deviation import Deviation
from .own_data import own

Kernel: TypeAlias = Callable[..., Any]

Transport: TypeAlias = Literal["threads", "links"]


@dataclass(frozen=True)
class Delivery:
    """A message as the receiver gets it.

    Attributes:
        key: its key, without the session of the host.
        sender: a rank.
        receiver: a rank.
        line: the user's line of the op that sends it.
        type: of the value, as a row has it.
        data: its bytes.
    """

    key: str
    sender: int
    receiver: int
    line: str
    type: str
    data: bytes

    @property
    def what(self) -> str:
        """The word of the table for it."""
        return "index" if "?" in self.key else "predicate" if "=" in self.key else "move"


@dataclass
class Setting:
    """What one run of an experiment is made of.

    Attributes:
        own: per rank the number that the party keeps.
        deviation: of the party that does not follow the protocol; ``None`` if all do.
        dealer: names tokens.
        deliveries: messages in the order of sending.
    """

    own: Sequence[int]
    deviation: Deviation | None = None
    dealer: Dealer = field(default_factory=Dealer)
    deliveries: list[Delivery] = field(default_factory=list)


def bytes_of(value: Any) -> bytes:
    """Return the bytes of a value as a transport sends them, with its type."""
    if value is None or isinstance(value, bool | bytes):
        return repr(value).encode()
    kind = type_of(value)
    header, buffers = encode(kind, value)
    return repr((str(kind), header, [bytes(buffer) for buffer in buffers])).encode()


class Lab(Simulator):
    """Simulator of an experiment.

    Args:
        cluster: the parties and devices.
        transport: what carries messages.
        kernels: further kernels, in place of the workers'.
        timeout: seconds that a party waits for a message.

    Attributes:
        setting: the current run's.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        transport: Transport = "threads",
        kernels: Mapping[str, Kernel] | None = None,
        timeout: float = 20.0,
    ) -> None:
        self.kernels_in_place = dict(kernels or {})
        self.setting = Setting([0] * len(cluster.mask))
        self.transport: Transport = transport
        self.recording = threading.Lock()
        super().__init__(cluster, timeout=timeout, check_numbers=False)

    def begin(self, setting: Setting) -> None:
        """Begin a run of an experiment, in which nothing is known of earlier ones."""
        self.setting = setting
        self._memory = Memory()
        for worker, number in zip(self._parties.workers, setting.own, strict=True):
            worker.resources[own] = number

    @property
    def held(self) -> Mapping[int, Holding]:
        """Per party what it has of shares and keys, in the mode in which programs run."""
        return self._memory.held

    def given(self, rank: int, value: Any) -> Any:
        """Return a reference to a value of a party."""
        return value

    def _start(self) -> Any:
        parties = super()._start()
        if self.transport == "links":
            parties._comms = HttpCommunicator.connected(self.world_size, self.timeout)
        for worker, comm in zip(parties.workers, parties._comms, strict=True):
            worker.communicator = RecordedCommunicator(comm, worker, self)
            worker.resources[own] = self.setting.own[worker.rank]
            _install(worker, self)
        return parties

    def _begin(self, run: str) -> None:
        self.setting.dealer.begin(run)
        super()._begin(run)


class RecordedCommunicator(Communicator):
    """Communicator that records what it delivers."""

    def __init__(self, inner: Communicator, worker: WorkerInterpreter, lab: Lab) -> None:
        self.rank, self.world_size = inner.rank, inner.world_size
        self.inner, self._worker, self._lab = inner, worker, lab

    def send(self, to_rank: int, key: str, data: Any) -> None:
        setting, deviation = self._lab.setting, self._deviation
        if deviation is not None:
            data = deviation.sent(self.inner, to_rank, key, data)
        op = self._worker.where(key.partition("/")[0])
        line = "" if op is None or op.location is None else str(op.location)
        place = setting.dealer.place(key)
        kind = "bool[]" if isinstance(data, bool) else str(type_of(data))
        found = Delivery(place, self.rank, to_rank, line, kind, bytes_of(data))
        with self._lab.recording:
            setting.deliveries.append(found)
        setting.dealer.give(to_rank, data)
        self.inner.send(to_rank, key, data)

    @property
    def _deviation(self) -> Deviation | None:
        found = self._lab.setting.deviation
        return found if found is not None and found.rank == self.rank else None

    def recv(self, from_rank: int, key: str) -> Any:
        if self._deviation is not None and key.endswith("?"):
            self._deviation.ask(self.inner, key)
        data = self.inner.recv(from_rank, key)
        if self._deviation is not None:
            self._deviation.got(data)
        return data

    def open(self, run: str) -> None:
        self.inner.open(run)

    def close(self, run: str) -> None:
        self.inner.close(run)

    def forget(self, place: str) -> None:
        self.inner.forget(place)

    def abort(self, run: str, reason: str) -> None:
        self.inner.abort(run, reason)


DEALT = (
    "crypto.keygen",
    "crypto.keypair",
    "crypto.agree",
    "crypto.encrypt",
    "crypto.decrypt",
    "spu.make_shares",
    "spu.reconstruct",
    "spu.run_jax",
)


class LabKernels(Namespace[Kernel]):
    """Kernel table of one worker: the lab's, else those of all workers."""

    def get(self, name: str) -> Kernel | None:
        return super().get(name) or worker_kernels.get(name)


def _install(worker: WorkerInterpreter, lab: Lab) -> None:
    """Replace kernels of randomness by the dealer's."""

    def dealt(opcode: str) -> Kernel:
        def kernel(ctx: KernelContext, *args: Any, **attrs: Any) -> Any:
            dealer = lab.setting.dealer
            made = getattr(dealer, opcode.partition(".")[2])(ctx, *args, **attrs)
            dealer.give(ctx.interpreter.rank, *(made if isinstance(made, tuple) else [made]))
            return made

        return kernel

    kernels = {opcode: dealt(opcode) for opcode in DEALT} | lab.kernels_in_place
    worker.kernels = LabKernels("worker kernel")
    for opcode, kernel in kernels.items():
        worker.kernels.add(opcode, kernel, provider="lab")
