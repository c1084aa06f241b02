"""Worker processes of the HTTP backend: what the host fetches is compared, with real randomness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from mplang_analysis import Holding, Memory
from mplang_http import LocalCluster
from mplang_http.driver import SimpHttpDriver
from mplang_tables import from_tensor

import mplang_core as mp

from .generator import CLUSTER
from .lab import Setting


class Live(SimpHttpDriver):
    """Host of workers in processes of their own; the numbers that they keep do not change.

    Args:
        workers: as many as the parties of generated programs.
    """

    def __init__(self, workers: LocalCluster) -> None:
        addresses: Sequence[str] = [node.address for node in workers.spec.nodes]
        super().__init__(CLUSTER, addresses=addresses, timeout=60.0)
        self.setting = Setting(())

    def begin(self, setting: Setting) -> None:
        """Begin a run of an experiment."""
        self.setting, self._memory = setting, Memory()

    @property
    def held(self) -> Mapping[int, Holding]:
        """Per party what it has of shares and keys."""
        return self._memory.held

    def given(self, rank: int, value: Any) -> Any:
        """Return a reference to a value that is uploaded to a party."""
        if isinstance(value, pa.Table):
            return self._table(rank, value)
        return self.lift(value, mp.Mask.of(rank)).values[rank]

    def _table(self, rank: int, table: pa.Table) -> Any:
        rows = np.stack([table[name].to_numpy() for name in table.column_names], axis=1)
        kind = mp.MPType(mp.TensorType.of(rows), mp.Mask.of(rank))
        uploaded = mp.InterpVar(self, kind, self.lift(rows, mp.Mask.of(rank)))
        columns = tuple(table.column_names)
        made = mp.simp.pcall_static([rank], from_tensor, uploaded, columns=columns)
        return made.value.values[rank]
