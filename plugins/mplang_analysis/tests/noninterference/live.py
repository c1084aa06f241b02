"""Worker processes of the HTTP backend: what their hosts and peers see, with real randomness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mplang_analysis import Holding, Memory
from mplang_http import LocalCluster
from mplang_http.base.natives import needed_natives
from mplang_http.coordinator.client import RefusedError
from mplang_http.coordinator.driver import SimpHttpDriver
from mplang_trace import Span, SpanRecorder

import mplang_core as mp

from .functions import multiply
from .generator import CLUSTER
from .lab import Setting
from .link_logs import Frames, LinkLogs

TIMES = ("run", "begun", "ended", "now")  # the name of a run has its number


class Live(SimpHttpDriver):
    """Host of workers in processes of their own; the numbers that they keep do not change.

    Args:
        workers: as many as the parties of generated programs.
        cluster: the parties and devices.
        logs: logs of workers that import ``recorded_links``; ``None`` if they do not.
    """

    def __init__(
        self, workers: LocalCluster, cluster: mp.ClusterSpec = CLUSTER, logs: LinkLogs | None = None
    ) -> None:
        addresses: Sequence[str] = [node.address for node in workers.spec.nodes]
        self._logs, self._run, self._is_warm = logs, "", False
        super().__init__(cluster, addresses=addresses, timeout=60.0, tls=workers.tls)
        self.setting = Setting(())
        self._recorders: list[SpanRecorder] = []
        self.observe = self._observe

    def _observe(self, rank: int | None, run: str) -> SpanRecorder:
        self._recorders.append(SpanRecorder(rank, run))
        return self._recorders[-1]

    def begin(self, setting: Setting) -> None:
        """Begin a run of an experiment."""
        self.setting, self._memory = setting, Memory()
        if self._logs is not None and not self._is_warm:
            mp.evaluate(self, mp.compile(_warm_up, cluster_spec=self.cluster_spec))
            self._is_warm, self._memory = True, Memory()
        self._recorders = []

    @property
    def held(self) -> Mapping[int, Holding]:
        """Per party what it has of shares and keys."""
        return self._memory.held

    def given(self, rank: int, value: Any) -> Any:
        """Return a reference to a value that is uploaded to a party."""
        return self.lift(value, mp.Mask.of(rank)).values[rank]

    # -- what is seen

    def _begin(self, run: str) -> None:
        self._run = run
        super()._begin(run)

    def frames(self, program: mp.Program, *, failed: bool) -> Frames:
        """Return the messages of the last run, which was of a program.

        Args:
            program: the program.
            failed: whether it has failed; then SPU begins anew in the next one.
        """
        if self._logs is None:
            return {}
        self._is_warm = self._is_warm and not failed
        roles = ["engine", "mpc"] if needed_natives(program) else ["engine"]
        return self._logs.frames(self._run, roles)

    def told(self) -> list[Any]:
        """Return what the workers tell the host: how their jobs ended, and their crashes."""
        found = []
        for worker in self._workers:
            try:
                job = worker.client.request(
                    "GET", "v1", "sessions", self.session, "jobs", self._run
                )
            except RefusedError:  # an op of standard mode runs at its parties alone
                job = {}
            health = worker.client.request("GET", "health")
            found.append(({k: v for k, v in job.items() if k not in TIMES}, health["crashes"]))
        return found

    def log(self) -> list[Any]:
        """Return what the host recorded since the last call, of all parties: without times."""
        taken, self._recorders = self._recorders, []
        found = [
            (span.name, span.kind, span.party, _lasting(span))
            for recorder in taken
            for span in recorder.spans
        ]
        return sorted(found, key=repr)


def _lasting(span: Span) -> list[tuple[str, Any]]:
    """Return facts of a span without times; a result's size is compared as that of its bytes."""
    left_out = (*TIMES, "bytes") if span.kind == "fetch" else TIMES
    return sorted((key, value) for key, value in span.facts.items() if key not in left_out)


def _warm_up() -> Any:
    """Have each SPU set up its links, which it does once."""
    found = []
    for device in ("SP0", "SP1"):
        secret = mp.seal(mp.put("P0", np.int64(3)), to=device)
        found.append(mp.reveal(mp.device(device)(multiply)(secret, secret), to="P0"))
    return found
