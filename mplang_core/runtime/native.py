"""Native services: libraries that read what peers send, in a process apart from a party's data.

A package names one in the group ``mplang.native``: a function that takes a :class:`NativeParty` and
returns a :class:`NativeService`, or a :class:`NativeSpec`, which says what it needs beside links.
Kernels that need it declare its name, ``native="spu"``. A worker runs it in a process of its own,
an MPC process of the session, and kernels reach it by :func:`native_calls`; in a simulator, where
all parties are one process, kernels call the library themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mplang_core.errors import AdmissionError, KernelError
from mplang_core.runtime.communicator import Communicator
from mplang_core.runtime.kernels import native_ops

if TYPE_CHECKING:
    from mplang_core.runtime.interpreter import KernelContext

Buffer: TypeAlias = bytes | bytearray | memoryview
Answer: TypeAlias = tuple[Mapping[str, Any], Sequence[Buffer]]
"""Plain data as MessagePack has it, and bytes."""


@dataclass(slots=True)
class NativeParty:
    """Party of a session, as a native service knows it.

    Attributes:
        communicator: to the native services of the other parties.
        insecure: whether insecure protocols for debugging may run.
        timeout: how long links wait for a peer, in seconds.
        folder: the folder of its process, if its spec asks for one; else empty.
        resources: objects that the service keeps between runs; replaced after a failure, since
            links may be out of sync.
    """

    communicator: Communicator
    insecure: bool
    timeout: float
    folder: str = ""
    resources: dict[Any, Any] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """This party's rank."""
        return self.communicator.rank


class NativeService(Protocol):
    """Service of one session at one party; its calls come from one thread, one after the other."""

    def call(
        self, run: str, method: str, args: Mapping[str, Any], buffers: Sequence[memoryview]
    ) -> Answer:
        """Answer a call of a kernel.

        Args:
            run: the run, which is open at the communicator.
            method: name of the method.
            args: plain data.
            buffers: bytes, which are there until the call ends.

        Returns:
            Plain data and bytes, which the kernel checks as it checks what peers send.

        Raises:
            MPLangError: it fails; the kernel gets an error of the same class and text.
        """

    def end_run(self) -> None:
        """Drop all that the last run has left."""


@dataclass(frozen=True, slots=True)
class NativeSpec:
    """Native service, and what its process needs, which it gets and nothing else.

    Attributes:
        serve: returns the service of one session at one party.
        links: whether it talks to those of the other parties: its process has links of its own
            then, and a key for them, which states the name of the service.
        plain: whether kernels give it plain data of their party, which whoever takes its process
            over has, too; a worker's log says so.
        ports: whether its process may use the network by itself where the worker is ``insecure``;
            links that are not encrypted need that.
        folder: whether its process has a folder of its own, in memory, as working directory and
            ``TMPDIR``, which is gone after it.
        programs: names of programs of the system that it may run there, such as ``sort``.

    Example:
        >>> def serve(party): ...
        >>> NativeSpec.of(serve).links, NativeSpec.of(NativeSpec(serve, links=False)).links
        (True, False)
    """

    serve: Callable[[NativeParty], NativeService]
    links: bool = True
    plain: bool = False
    ports: bool = False
    folder: bool = False
    programs: tuple[str, ...] = ()

    @classmethod
    def of(cls, named: object) -> NativeSpec:
        """Return what an entry point of the group names, a bare function as a service with links.

        Raises:
            TypeError: it is none.
        """
        if isinstance(named, NativeSpec):
            return named
        if not callable(named):
            raise TypeError(f"a native service is a function or a NativeSpec, got {named!r}")
        return cls(named)


class NativeCalls(Protocol):
    """Calls of a kernel to a native service."""

    def call(
        self, run: str, method: str, args: Mapping[str, Any], buffers: Sequence[Buffer] = ()
    ) -> Answer:
        """Call the service, and wait.

        Args:
            run: the run.
            method: name of the method.
            args: plain data.
            buffers: bytes.

        Returns:
            What the service answers.

        Raises:
            MPLangError: the service fails, the run was aborted, or the process of the service
                has ended.
        """

    def before_end(self, run: str, fetch: Callable[[], None]) -> None:
        """Register a function to call after the last op of a run, before values are dropped.

        Args:
            run: the run.
            fetch: takes what is still needed; it is not called if the run fails.
        """


def native_calls(ctx: KernelContext) -> NativeCalls | None:
    """Return the calls to the native service that the kernel of an op declares.

    Args:
        ctx: the kernel's.

    Returns:
        The calls; ``None`` where kernels call their library in this process, as in a simulator.

    Raises:
        AdmissionError: the session has no such service.
        KernelError: the kernel declares none.
    """
    natives = getattr(ctx.interpreter, "natives", None)  # not every backend has observed workers
    if natives is None:
        return None
    opcode = ctx.op.opcode
    if (service := native_ops.peek(opcode)) is None:
        raise KernelError(f"{opcode} calls a native service, and its kernel declares no native=…")
    calls: NativeCalls | None = natives.get(service)
    if calls is None:
        raise AdmissionError(
            f"{opcode} computes in its own process, which this session lacks: it was opened "
            f'without native: ["{service}"]. The host asks for it where the package with the '
            "kernel is installed; install it there, too",
            code="A004",
        )
    return calls
