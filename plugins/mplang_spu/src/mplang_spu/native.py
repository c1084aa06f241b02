"""Native service of SPU: libspu's runtimes, in a process that has shares and no plain data.

Results stay in libspu's runtime, where the next op of the run uses them by name.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mplang_core import TensorType
from mplang_core.ext import Answer, MPLangError, NativeParty, RunError
from mplang_spu import conversion, engine
from mplang_spu.engine_pool import Job, acquire_engine
from mplang_spu.oblivious_transfer import comparisons_of
from mplang_spu.public import public_share
from mplang_spu.requests import Data, Fetch, Made, Operand, Public, Result, Run
from mplang_spu.share_type import ShareType
from mplang_spu.shares import SpuShare, check_share

UNKNOWN_CODE: Answer = ({"unknown_code": True}, ())


@dataclass(frozen=True, slots=True)
class _Held:
    """Share in a variable of a runtime."""

    engine: engine.Engine
    name: str
    storage: str

    def share(self) -> Any:
        """Return a copy of it, as libspu's share."""
        if self.engine.is_closed:
            raise RunError(
                "the link on which a share was computed was replaced amid the run: a member of "
                "this SPU says that it has lost the link",
                code="R015",
            )
        return self.engine.get(self.name)

    def drop(self) -> None:
        if not self.engine.is_closed:
            self.engine.drop([self.name])


class SpuService:
    """Native service of SPU for one party.

    Args:
        party: this party.
    """

    def __init__(self, party: NativeParty) -> None:
        self._party = party
        self._run: str | None = None
        self._held: dict[int, _Held] = {}
        self._codes: OrderedDict[str, bytes] = OrderedDict()

    def call(
        self, run: str, method: str, args: Mapping[str, Any], buffers: Sequence[memoryview]
    ) -> Answer:
        """Answer a call of a kernel.

        Args:
            run: the run.
            method: ``run`` or ``fetch``.
            args: the fields of :class:`~mplang_spu.requests.Run` or of
                :class:`~mplang_spu.requests.Fetch`.
            buffers: the code, if it is sent, and the data of the operands.

        Returns:
            For ``run`` the storage of each result, how many chunks of it are sent, and these; or
            that the code is unknown. For ``fetch`` the chunks of the share.

        Raises:
            MPLangError: the request is wrong, or libspu fails.
        """
        if self._run not in (None, run):
            raise RunError(
                f"SPU's service got a call of the run {run} amid the run {self._run}", code="R015"
            )
        try:
            if method == "run":
                self._run = run  # not by a late fetch: the next run would be refused
                return self._compute(Run(**args), list(buffers))
            if method == "fetch":
                return self._fetch(Fetch(**args))
        except MPLangError:
            raise
        except Exception as error:
            raise RunError(
                f"libspu failed: {type(error).__name__}: {error}", code="R015"
            ) from error
        raise RunError(f"SPU's service has the methods run and fetch, got {method!r}", code="R015")

    def end_run(self) -> None:
        """Drop the shares of the run."""
        for held in self._held.values():
            held.drop()
        self._held.clear()
        self._run = None

    def _fetch(self, request: Fetch) -> Answer:
        return {}, self._get(request.share).share().share_chunks

    def _get(self, number: int) -> _Held:
        try:
            return self._held[number]
        except KeyError:
            raise RunError(
                f"SPU's service holds no share {number} of this run: it was dropped, as are all "
                "at the end of their run",
                code="R015",
            ) from None

    def _compute(self, request: Run, buffers: list[memoryview]) -> Answer:
        if not request.key.startswith(f"{self._run}/"):
            raise RunError(f"SPU's service got the op {request.key} of another run", code="R015")
        like, code = request.like(), self._code(request, buffers)
        if code is None:
            return UNKNOWN_CODE
        for number in request.drop:
            self._get(number).drop()
            del self._held[number]
        self._check_numbers(request)
        operands = list(self._operands(request.operands, buffers, like))
        if buffers:
            raise RunError(f"SPU's service got {len(buffers)} buffers too many", code="R015")
        storages = [None if isinstance(x, np.ndarray) else x.storage for x in operands]
        public = [x for x in operands if isinstance(x, np.ndarray)]
        settings = {"protocol": like.protocol, "field": like.field}
        comparisons = comparisons_of(code, settings)
        content = request.code, storages, public, comparisons
        job = Job(request.key, request.members, request.config, *content)
        with acquire_engine(self._party, job) as runtime:
            pairs = zip(request.operands, operands, strict=True)
            ins = [self._place(runtime, request, *pair, f"in{i}") for i, pair in enumerate(pairs)]
            del operands
            outs = [f"share{result.share}" for result in request.results]
            runtime.run_on_variables(code, ins, outs)
            runtime.drop(name for name in ins if name.startswith("in"))
            for result, name in zip(request.results, outs, strict=True):
                storage = conversion.settle_variable(runtime, name, _share_type(result, like))
                self._held[result.share] = _Held(runtime, name, storage)
        return self._made(request)

    def _made(self, request: Run) -> Answer:
        """Return what the service tells of results: their storages, and the data of small ones."""
        made = [self._held[result.share] for result in request.results]
        sent = [
            held.share().share_chunks if result.sent else []
            for result, held in zip(request.results, made, strict=True)
        ]
        told = Made(storages=tuple(held.storage for held in made), chunks=tuple(map(len, sent)))
        return told.model_dump(), list(itertools.chain.from_iterable(sent))

    def _code(self, request: Run, buffers: list[memoryview]) -> bytes | None:
        """Return the code of a request, ``None`` if it is unknown; keep those last used."""
        if request.has_code:
            code = bytes(_next(buffers))
            if hashlib.sha256(code).hexdigest() != request.code:
                raise RunError(
                    "SPU's service got code of another digest than the request says", code="R015"
                )
            self._codes[request.code] = code
        if request.code not in self._codes:
            return None
        self._codes.move_to_end(request.code)
        if len(self._codes) > engine.CACHED:
            self._codes.popitem(last=False)
        return self._codes[request.code]

    def _check_numbers(self, request: Run) -> None:
        given = [each.share for each in request.operands if isinstance(each, Data)]
        numbers = [*given, *(result.share for result in request.results)]
        if len(set(numbers)) < len(numbers) or not self._held.keys().isdisjoint(numbers):
            raise RunError(
                f"SPU's service got numbers of shares that are used: {numbers}", code="R015"
            )

    def _operands(
        self, operands: Sequence[Operand], buffers: list[memoryview], like: ShareType
    ) -> Iterator[_Held | SpuShare | np.ndarray[Any, Any]]:
        given: dict[int, SpuShare] = {}
        for operand in operands:
            if isinstance(operand, Public):
                yield _array(operand, _next(buffers))
            elif isinstance(operand, Data):
                given[operand.share] = _share(operand, buffers, like)
                yield given[operand.share]
            else:
                yield given.get(operand.share) or self._get(operand.share)

    def _place(
        self, runtime: engine.Engine, request: Run, operand: Operand, value: Any, name: str
    ) -> str:
        """Return the variable of an operand; set the named one where nothing holds it."""
        if isinstance(operand, Public):
            rank = self._party.rank
            return runtime.set(name, public_share(value, request.members, request.config, rank))
        if isinstance(operand, Data):
            runtime.set(f"share{operand.share}", conversion.to_libspu(value))
            self._held[operand.share] = _Held(runtime, f"share{operand.share}", value.storage)
        held = self._held[operand.share]
        return held.name if held.engine is runtime else runtime.set(name, held.share())


def _next(buffers: list[memoryview]) -> memoryview:
    if not buffers:
        raise RunError("SPU's service got fewer buffers than the request says", code="R015")
    return buffers.pop(0)


def _share_type(plain: Result | Data, like: ShareType) -> ShareType:
    try:
        return _type_like(plain.dtype, plain.shape, like)
    except ValueError as error:
        raise RunError(f"SPU's service got a value of no type: {error}", code="R015") from error


@functools.lru_cache(maxsize=1024)
def _type_like(dtype: str, shape: tuple[int, ...], like: ShareType) -> ShareType:
    return ShareType(TensorType(dtype, shape), *like.params()[1:])


def _share(operand: Data, buffers: list[memoryview], like: ShareType) -> SpuShare:
    chunks = tuple(bytes(_next(buffers)) for _ in range(operand.chunks))
    share = SpuShare(_share_type(operand, like), operand.storage, chunks)
    try:
        check_share(share)
    except ValueError as error:
        raise RunError(
            f"SPU's service got no share of {share.type.plain}: {error}", code="R015"
        ) from error
    return share


def _array(operand: Public, buffer: memoryview) -> np.ndarray[Any, Any]:
    kind = operand.tensor()
    dtype = np.dtype(kind.dtype.numpy)
    if buffer.nbytes != kind.size * dtype.itemsize:
        raise RunError(f"SPU's service got {buffer.nbytes} bytes for {kind}", code="R015")
    return np.frombuffer(buffer, dtype).reshape(kind.shape)
