"""Program cache of a worker, with admission checks."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

from mplang_analysis import Submission, admission_checks, admit
from mplang_http.ext import Buffer

from mplang_core import MPType, Program, TensorType
from mplang_core.ext import AdmissionError, AnyType, Operation, Value, from_bytes, prepared
from mplang_worker.base.config import EngineConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.wire.msgpack_limits import count_items

ALWAYS_ALLOWED = ("simp", "func")
ITEM_BYTES = 64  # estimated bytes of memory per MessagePack item


class Programs:
    """LRU cache of verified programs, by the SHA-256 of their bytes.

    Args:
        config: configuration of the worker.
        coordinator: who sends the programs.
        rank: rank of this party.
        parties: names of the parties, by rank.

    Raises:
        ConfigError: an admission check of the configuration is not there.
    """

    def __init__(
        self, config: EngineConfig, coordinator: str, rank: int, parties: Sequence[str]
    ) -> None:
        self._limits = config.limits
        self._checks = admission_checks(config.admission)
        self._told = coordinator, rank, tuple(parties)
        self._dialects = config.dialects
        self._cache: OrderedDict[str, tuple[Program, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def put(self, name: str, data: Buffer) -> str:
        """Decode, admit, verify and cache a program, with the result of the passes.

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
        self._admit(program)
        prepared(program)
        admit(self._checks, Submission(program, *self._told))
        with self._lock:
            if name not in self._cache:
                self._cache[name] = (program, size)
                self._bytes += size
            while self._bytes > self._limits.programs and len(self._cache) > 1:
                _, (_, size) = self._cache.popitem(last=False)
                self._bytes -= size
        return program.digest

    def get(self, name: str) -> Program:
        """Return a program.

        Raises:
            RequestError: the program is not in the cache.
        """
        with self._lock:
            found = self._cache.get(name)
            if found is None:
                raise RequestError(404, "unknown-program", "this program is not here; put it first")
            self._cache.move_to_end(name)
            return found[0]

    def _admit(self, program: Program) -> None:
        checked = set[AnyType]()  # programs have few types
        for count, op in enumerate(program.graph.walk(), 1):
            if count > self._limits.ops:
                raise AdmissionError(
                    f"a program has at most {self._limits.ops} ops here", code="A003"
                )
            for value in op.outputs:
                if value.type not in checked:
                    self._check_size(op, value)
                    checked.add(value.type)
            if self._dialects is None or op.dialect in (*ALWAYS_ALLOWED, *self._dialects):
                continue
            raise AdmissionError(
                f"{op.opcode} at {op.location}: this worker runs ops of "
                f"{', '.join(self._dialects)} only; its owner names others by dialects",
                code="A004",
            )

    def _check_size(self, op: Operation, value: Value) -> None:
        kind = value.type.base if isinstance(value.type, MPType) else value.type
        if not isinstance(kind, TensorType):
            return
        size = kind.size * kind.dtype.numpy.itemsize
        if size > self._limits.value:
            raise AdmissionError(
                f"{op.opcode} at {op.location} gives {kind}: a tensor has at most "
                f"{self._limits.value} bytes here, not {size}",
                code="A003",
            )
