"""Shares that the native service of SPU holds, as the kernels of a worker use them.

Imports neither libspu nor JAX: what peers send does not get to libspu in this process.
"""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mplang_core import Mask, TensorType
from mplang_core.ext import Answer, Buffer, KernelContext, NativeCalls, RunError, native_calls
from mplang_spu.requests import Made
from mplang_spu.share_type import ShareType
from mplang_spu.shares import SpuShare, check_share

if TYPE_CHECKING:
    from mplang_spu.engine import Compiled

KNOWN = 256  # codes that the service is taken to have
SMALL = 4096  # bytes of a result up to which the service sends it at once


def native_spu(ctx: KernelContext) -> NativeSpu | None:
    """Return the native service of SPU, ``None`` where kernels call libspu in this process.

    Args:
        ctx: of an op.

    Raises:
        AdmissionError: the session has none.
    """
    calls = native_calls(ctx)
    if calls is None:
        return None
    worker = ctx.interpreter
    found = worker.resources.get("spu")
    if not isinstance(found, NativeSpu) or found.calls is not calls:
        found = worker.resources["spu"] = NativeSpu(calls)
    return found


class HeldChunks(Sequence[bytes]):
    """Chunks of a share that the service holds; they are fetched when they are first read.

    Args:
        kind: the type of the share.
        storage: its storage, as the service says.
        shares: those of the run.
        number: its number.
    """

    def __init__(self, kind: ShareType, storage: str, shares: _RunShares, number: int) -> None:
        self._kind, self._storage = kind, storage
        self._shares, self._number = shares, number
        self._chunks: tuple[bytes, ...] | None = None

    def __len__(self) -> int:
        return len(self.fetch())

    def __getitem__(self, index: Any) -> Any:
        return self.fetch()[index]

    def __del__(self) -> None:
        self._shares.dropped.append(self._number)

    def number_in(self, shares: _RunShares) -> int | None:
        """Return the number of the share, ``None`` if it is not of that run."""
        return self._number if self._shares is shares else None

    def fetch(self) -> tuple[bytes, ...]:
        """Return the chunks, which are checked against the type.

        Raises:
            RunError: the run is over, or what came is not of the type.
            MPLangError: the service fails.
        """
        if self._chunks is None:
            self.take(self._shares.fetch(self._number, self._kind))
            assert self._chunks is not None
        return self._chunks

    def take(self, chunks: tuple[bytes, ...]) -> None:
        """Take the chunks that the service has sent.

        Raises:
            RunError: they are not of the type.
        """
        try:
            check_share(SpuShare(self._kind, self._storage, chunks))
        except ValueError as error:
            raise RunError(
                f"SPU made no share of {self._kind.plain}: {error}", code="R007"
            ) from error
        self._chunks = chunks


class _RunShares:
    """Shares of one run that the service holds.

    Attributes:
        run: the run.
        dropped: numbers of shares whose values are gone, and which the service still has.
    """

    def __init__(self, run: str, calls: NativeCalls) -> None:
        self.run = run
        self.dropped: list[int] = []
        self._calls = calls
        self._given: dict[int, int] = {}  # numbers of shares that came from elsewhere, by identity
        self._alive: weakref.WeakSet[HeldChunks] = weakref.WeakSet()
        self._is_over = False
        calls.before_end(run, self._end)

    def add(self, kind: ShareType, number: int, storage: str, sent: tuple[bytes, ...]) -> SpuShare:
        """Return a share that the service made.

        Args:
            kind: its type.
            number: its number.
            storage: its storage, as the service says.
            sent: its chunks, if they were sent.

        Raises:
            RunError: the type has no such storage, or the chunks are not of the type.
        """
        chunks = HeldChunks(kind, storage, self, number)
        share = SpuShare(kind, storage, chunks)
        try:
            _ = share.layout
        except ValueError as error:
            raise RunError(f"SPU made no share of {kind.plain}: {error}", code="R007") from error
        if sent:
            chunks.take(sent)
        else:
            self._alive.add(chunks)
        return share

    def number_of(self, share: SpuShare) -> int | None:
        """Return the number of a share that the service has, ``None`` if it has not."""
        chunks = share.chunks
        number = chunks.number_in(self) if isinstance(chunks, HeldChunks) else None
        return self._given.get(id(share)) if number is None else number

    def give(self, share: SpuShare, number: int) -> None:
        """Record that the service gets a share, which it holds as long as this process does."""
        self._given[id(share)] = number
        weakref.finalize(share, self._release, id(share), number).atexit = False

    def _release(self, identity: int, number: int) -> None:
        del self._given[identity]
        self.dropped.append(number)

    def fetch(self, number: int, kind: ShareType) -> tuple[bytes, ...]:
        """Return the chunks of a share."""
        if self._is_over:
            raise RunError(
                f"the run {self.run} failed, and its share of {kind.plain} is gone: SPU's process "
                "drops what it holds at the end of a run. Run the program again",
                code="R015",
            )
        _, buffers = self._calls.call(self.run, "fetch", {"share": number})
        return tuple(map(bytes, buffers))

    def take_dropped(self) -> list[int]:
        """Return the numbers of shares that the service can drop, once."""
        taken, self.dropped = self.dropped, []
        return taken

    def _end(self) -> None:
        for chunks in list(self._alive):
            chunks.fetch()
        self.close()

    def close(self) -> None:
        """Say that the service has nothing any more."""
        self._is_over = True


class NativeSpu:
    """SPU's native service, as the kernels of one session call it; it serves one run at a time.

    Args:
        calls: to the service.

    Attributes:
        calls: to the service.
    """

    def __init__(self, calls: NativeCalls) -> None:
        self.calls = calls
        self._numbers = itertools.count()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._shares: _RunShares | None = None

    def run(
        self,
        ctx: KernelContext,
        parties: Mask,
        config: Mapping[str, Any],
        compiled: Compiled,
        args: Sequence[SpuShare | np.ndarray[Any, Any]],
    ) -> list[SpuShare]:
        """Run a compiled program jointly with the other members.

        Args:
            ctx: of the op.
            parties: the members.
            config: of the device.
            compiled: the program.
            args: its operands, without those of the program itself.

        Returns:
            This member's share of each result, which the service holds.

        Raises:
            RunError: what the service answers is wrong.
            MPLangError: it fails.
        """
        shares = self._shares_of(ctx.run)
        operands: list[dict[str, Any]] = []
        buffers: list[bytes | memoryview] = []
        for arg in (*args, *compiled.operands):
            operand, data = self._operand(arg, shares)
            operands.append(operand)
            buffers.extend(data)
        kinds = cast(Sequence[ShareType], ctx.step.checks)
        numbers = list(itertools.islice(self._numbers, len(kinds)))
        request = {
            "key": ctx.key,
            "parties": parties.bits,
            "config": dict(config),
            "code": compiled.digest,
            "operands": operands,
            "results": [
                {"share": number, "sent": kind.nbytes <= SMALL, **_plain(kind.plain)}
                for number, kind in zip(numbers, kinds, strict=True)
            ],
            "drop": shares.take_dropped(),
        }
        made = _results(*self._call(ctx.run, request, compiled, buffers), len(kinds))
        return [
            shares.add(kind, number, *found)
            for kind, number, found in zip(kinds, numbers, made, strict=True)
        ]

    def _operand(
        self, arg: SpuShare | np.ndarray[Any, Any], shares: _RunShares
    ) -> tuple[dict[str, Any], Sequence[bytes | memoryview]]:
        """Return an operand as the service gets it: a reference, or its data at the first use."""
        if not isinstance(arg, SpuShare):
            array = np.asarray(arg, order="C")
            plain = _plain(TensorType.of(array))
            return {"form": "public", **plain}, [array.reshape(-1).view(np.uint8).data]
        number = shares.number_of(arg)
        if number is not None:
            return {"form": "reference", "share": number}, ()
        number = next(self._numbers)
        shares.give(arg, number)
        described = {"share": number, "storage": arg.storage, "chunks": len(arg.chunks)}
        return {"form": "data", **_plain(arg.type.plain), **described}, list(arg.chunks)

    def _shares_of(self, run: str) -> _RunShares:
        if self._shares is None or self._shares.run != run:
            if self._shares is not None:
                self._shares.close()
            self._shares = _RunShares(run, self.calls)
        return self._shares

    def _call(
        self, run: str, request: dict[str, Any], compiled: Compiled, buffers: Sequence[Any]
    ) -> Answer:
        """Call the service; send the code only if it does not have it."""
        sends = compiled.digest not in self._known
        answer = self._send(run, request, compiled.code if sends else None, buffers)
        if not sends and answer[0] == {"unknown_code": True}:  # another process serves now
            answer = self._send(run, request, compiled.code, buffers)
        self._known[compiled.digest] = None
        self._known.move_to_end(compiled.digest)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return answer

    def _send(
        self, run: str, request: dict[str, Any], code: bytes | None, buffers: Sequence[Any]
    ) -> Answer:
        first = [] if code is None else [code]
        args = {**request, "has_code": code is not None}
        return self.calls.call(run, "run", args, [*first, *buffers])


def _plain(kind: TensorType) -> dict[str, Any]:
    return {"dtype": kind.dtype.value, "shape": list(kind.shape)}


def _results(
    answer: Mapping[str, Any], buffers: Sequence[Buffer], count: int
) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    """Return the storage of each result and the chunks that were sent, of an answer that may lie.

    Raises:
        RunError: it tells something else.
    """
    made = Made(**answer)
    if {len(made.storages), len(made.chunks)} != {count} or sum(made.chunks) != len(buffers):
        raise RunError(
            f"SPU's process answered {made} and {len(buffers)} buffers, expected the storages of "
            f"{count} results, and what it sends of each",
            code="R015",
        )
    rest = iter(buffers)
    sent = [tuple(map(bytes, itertools.islice(rest, number))) for number in made.chunks]
    return zip(made.storages, sent, strict=True)
