"""Configuration of a worker's gate."""

from __future__ import annotations

import os

from pydantic import Field, model_validator

from mplang_core.ext import StrictModel
from mplang_policy.budgets import Budget
from mplang_policy.retention import Retention


class GateConfig(StrictModel):
    """Files and settings by which the owner's gate decides.

    Attributes:
        policy: a Cedar file, or a folder of files ``*.cedar``.
        log: the SQLite file of log and ledger; made if it is not there.
        approvals: the folder of files ``*.approval`` of ``mplang approve``; none if ``None``.
        approvers: PEM files of the public keys whose signatures count, by the name of who signs.
        threshold: how many of them have to sign an approval.
        budgets: by data set what differentially private ops may use up of it.
        tried: by data set how many keys each other party may try on it in a day (UTC), by matching;
            any number by default.
        entries: how many entries of the log each coordinator may cause in a day.
        bytes: how many bytes of the log each coordinator may cause in a day.
        retention: how long details and bodies of the log are kept; for good by default.

    Example:
        >>> GateConfig(policy="policy", log="gate.db").at("/etc/mplang").log
        '/etc/mplang/gate.db'
    """

    policy: str
    log: str
    approvals: str | None = None
    approvers: dict[str, str] = Field(default_factory=dict)
    threshold: int = Field(default=1, gt=0)
    budgets: dict[str, Budget] = Field(default_factory=dict)
    tried: dict[str, int] = Field(default_factory=dict)
    entries: int = Field(default=100_000, gt=0)
    bytes: int = Field(default=64 << 20, gt=0)
    retention: Retention = Field(default_factory=Retention)

    @model_validator(mode="after")
    def _check(self) -> GateConfig:
        if self.approvals is not None and len(self.approvers) < self.threshold:
            raise ValueError(
                f"approvers names the public keys of those who sign, at least {self.threshold}"
            )
        return self

    def at(self, folder: str) -> GateConfig:
        """Return it with paths that do not depend on the working directory.

        Args:
            folder: the folder of the file that names it.
        """
        fields = {"policy": self.policy, "log": self.log, "approvals": self.approvals}
        base = os.path.abspath(folder)
        placed = {name: path and os.path.join(base, path) for name, path in fields.items()}
        keys = {name: os.path.join(base, path) for name, path in self.approvers.items()}
        return self.model_copy(update={**placed, "approvers": keys})
