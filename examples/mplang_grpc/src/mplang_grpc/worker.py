"""One party: ``python -m mplang_grpc.worker RANK ADDRESS ADDRESS …``, or in the host's process."""

from __future__ import annotations

import argparse
import functools
import importlib
from typing import Any

from mplang_core import Program, verify
from mplang_core.ext import ObservedWorker, PartyState, RunError, check_fetchable, from_bytes
from mplang_trace import SpanRecorder, now

from mplang_grpc import wire
from mplang_grpc.comm import GrpcCommunicator
from mplang_grpc.rpc import Methods


class Party:
    """Runs programs of hosts as one party, and keeps their values.

    Args:
        rank: which party it is.
        world_size: how many there are.
        address: where it listens.
        timeout: how many seconds a message takes at most.
        insecure: whether protocols that are for debugging only may run.

    Attributes:
        comm: how it talks to the others.
    """

    def __init__(
        self, rank: int, world_size: int, address: str, timeout: float, *, insecure: bool = False
    ) -> None:
        self._insecure = insecure
        self._workers: dict[str, ObservedWorker] = {}
        self._values: dict[str, Any] = {}
        methods: Methods = {
            wire.Begin: self._begin,
            wire.Run: self._run,
            wire.End: self._end,
            wire.Fetch: self._fetch,
            wire.State: self._state,
            wire.Leave: self._leave,
        }
        self.comm = GrpcCommunicator(rank, world_size, timeout, address, methods)

    def _begin(self, request: wire.Begin) -> None:
        for name in request.dropped:
            self._values.pop(name, None)
        self.comm.open(request.run)

    def _run(self, job: wire.Run) -> wire.Ran:
        program = _read(job.program)
        host, _, _ = job.run.partition("-")
        inputs = [
            self._value(host, x) if isinstance(x, str) else wire.unpack(x) for x in job.inputs
        ]
        recorder = SpanRecorder(self.comm.rank, job.run) if job.record else None
        outs = self._worker(job).evaluate(program, inputs, job.run, recorder=recorder)
        names = [
            None if out is None else f"{job.run}.{self.comm.rank}.{i}" for i, out in enumerate(outs)
        ]
        self._values.update((name, out) for name, out in zip(names, outs, strict=True) if name)
        noted = (recorder.spans, recorder.dropped) if recorder else ([], 0)
        return wire.Ran(names, *noted, now())

    def _worker(self, job: wire.Run) -> ObservedWorker:
        host, _, _ = job.run.partition("-")
        worker = self._workers.get(host)
        if worker is None or worker.session != job.session:
            worker = self._workers[host] = ObservedWorker(
                self.comm, session=job.session, insecure=self._insecure, timeout=self.comm.timeout
            )
        return worker

    def _end(self, request: wire.End) -> None:
        self.comm.close(request.run)

    def _fetch(self, request: wire.Fetch) -> wire.Value:
        value = self._value(request.host, request.name)
        check_fetchable(value)
        return wire.pack(value)

    def _value(self, host: str, name: str) -> Any:
        """Return a value of a host; what other hosts have here is not there for it."""
        if name not in self._values or not name.startswith(f"{host}-"):
            raise RunError(f"party {self.comm.rank} has no value {name[:100]!r}")
        return self._values[name]

    def _state(self, request: wire.State) -> PartyState:
        worker = self._workers.get(request.host)
        return PartyState() if worker is None else worker.state()

    def _leave(self, request: wire.Leave) -> None:
        self._workers.pop(request.host, None)
        for name in list(self._values):
            if name.startswith(f"{request.host}-"):
                self._values.pop(name, None)


@functools.lru_cache(maxsize=256)
def _read(data: bytes) -> Program:
    """Read a program, and infer its types and masks again."""
    program = from_bytes(data)
    verify(program)
    return program


def main() -> None:
    """Run a party until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m mplang_grpc.worker", description=__doc__)
    parser.add_argument("rank", type=int)
    parser.add_argument("addresses", nargs="+", help="host:port of each party, by rank")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one message")
    parser.add_argument("--import", dest="modules", action="append", default=[], metavar="MODULE")
    parser.add_argument("--insecure", action="store_true", help="allow protocols for debugging")
    given = parser.parse_args()
    for module in given.modules:
        importlib.import_module(module)
    address, size = given.addresses[given.rank], len(given.addresses)
    party = Party(given.rank, size, address, given.timeout, insecure=given.insecure)
    party.comm.meet(given.addresses)
    print(f"party {given.rank} listens at {address}", flush=True)
    party.comm.server.wait()


if __name__ == "__main__":
    main()
