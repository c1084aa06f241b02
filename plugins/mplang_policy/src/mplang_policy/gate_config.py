"""Configuration of a worker's gate."""

from __future__ import annotations

import os

from mplang_core.ext import StrictModel


class GateConfig(StrictModel):
    """Where the gate of a worker has what its owner decides by.

    Attributes:
        policy: a Cedar file, or a folder of files ``*.cedar``.
        log: the SQLite file of log and ledger; made if it is not there.

    Example:
        >>> GateConfig(policy="policy", log="gate.db").at("/etc/mplang").log
        '/etc/mplang/gate.db'
    """

    policy: str
    log: str

    def at(self, folder: str) -> GateConfig:
        """Return it with paths that do not depend on the working directory.

        Args:
            folder: the folder of the file that names it.
        """
        fields = {name: os.path.join(folder, getattr(self, name)) for name in ("policy", "log")}
        return self.model_copy(update=fields)
