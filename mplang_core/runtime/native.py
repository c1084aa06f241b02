"""Native services: libraries that read what peers send, in a process apart from a party's data.

A package names one in the group ``mplang.native``: its name, which is the prefix of the ops that
need it, and a function that takes a :class:`NativeParty` and returns a :class:`NativeService`. A
worker runs it in the MPC process of a session, and kernels reach it by :class:`NativeCalls`; in a
simulator, where all parties are one process, kernels call the library themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from mplang_core.runtime.communicator import Communicator

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
        resources: objects that the service keeps between runs; replaced after a failure, since
            links may be out of sync.
    """

    communicator: Communicator
    insecure: bool
    timeout: float
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
        """Have a function called once the last op of a run is done, before the service drops all.

        Args:
            run: the run.
            fetch: takes what is still needed; it is not called if the run fails.
        """
