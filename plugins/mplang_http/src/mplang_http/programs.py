"""Program cache of a worker, with admission checks."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from mplang_core import Mask, MPType, Program, TensorType
from mplang_core.ext import (
    AdmissionError,
    Graph,
    Operation,
    Value,
    from_bytes,
    participants_of,
    prepared,
)
from mplang_http.config import WorkerConfig
from mplang_http.errors import RequestError
from mplang_http.msgpack_limits import count_items
from mplang_http.values import Buffer

ALWAYS_ALLOWED = ("simp", "func")
ITEM_BYTES = 64  # estimated bytes of memory per MessagePack item


@dataclass(slots=True)
class _Cached:
    program: Program
    size: int
    admitted: set[int] = field(default_factory=set)


class Programs:
    """LRU cache of verified programs, by the SHA-256 of their bytes.

    Args:
        config: configuration of the worker.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._limits = config.limits
        self._dialects = config.dialects
        self._cache: OrderedDict[str, _Cached] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def put(self, name: str, data: Buffer) -> str:
        """Decode, verify and cache a program, with the result of the passes.

        Args:
            name: SHA-256 of the bytes, in hex.
            data: bytes of the program.

        Returns:
            The digest of the program.

        Raises:
            RequestError: the bytes do not match the name.
            MPLangError: the program is malformed, too large or not admitted.
        """
        if hashlib.sha256(data).hexdigest() != name:
            raise RequestError(400, "forged", "the name of a program is the SHA-256 of its bytes")
        size = len(data) + ITEM_BYTES * count_items(data, self._limits.items)
        program = from_bytes(bytes(data))
        self._check_ops(program)
        prepared(program)
        with self._lock:
            if name not in self._cache:
                self._cache[name] = _Cached(program, size)
                self._bytes += size
            while self._bytes > self._limits.programs and len(self._cache) > 1:
                _, dropped = self._cache.popitem(last=False)
                self._bytes -= dropped.size
        return program.digest

    def get(self, name: str, rank: int) -> Program:
        """Return a program that this worker admits as a party.

        Args:
            name: SHA-256 of the bytes, in hex.
            rank: the party.

        Raises:
            RequestError: the program is not in the cache.
            AdmissionError: this party would run what is not admitted here.
        """
        with self._lock:
            found = self._cache.get(name)
            if found is None:
                raise RequestError(404, "unknown-program", "this program is not here; put it first")
            self._cache.move_to_end(name)
        if rank not in found.admitted:
            self._admit(found.program.graph, found.program.mask, rank)
            found.admitted.add(rank)
        return found.program

    def _check_ops(self, program: Program) -> None:
        for count, _ in enumerate(program.graph.walk(), 1):
            if count > self._limits.ops:
                raise AdmissionError(f"a program has at most {self._limits.ops} ops here")

    def _admit(self, graph: Graph, world: Mask, rank: int) -> None:
        """Check the ops that a party takes part in; it does not run the others."""
        for op in graph.ops:
            if rank not in participants_of(op, world):
                continue
            for value in op.outputs:
                self._check_size(op, value)
            if self._dialects is not None and op.dialect not in (*ALWAYS_ALLOWED, *self._dialects):
                raise AdmissionError(
                    f"{op.opcode} at {op.location}: this worker runs ops of "
                    f"{', '.join(self._dialects)} only; its owner names others by dialects"
                )
            for region in op.regions.values():
                self._admit(region, world, rank)

    def _check_size(self, op: Operation, value: Value) -> None:
        kind = value.type.base if isinstance(value.type, MPType) else value.type
        if not isinstance(kind, TensorType):
            return
        size = kind.size * kind.dtype.numpy.itemsize
        if size > self._limits.value:
            raise AdmissionError(
                f"{op.opcode} at {op.location} gives {kind}: a tensor has at most "
                f"{self._limits.value} bytes here, not {size}"
            )
