"""Standing of an approval: whether it counts, whatever the program that is asked about."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from typing import NamedTuple

from mplang_policy.approval import Approval
from mplang_policy.ledger import Ledger
from mplang_policy.package_versions import INSTALLED, Packages


class Standing(NamedTuple):
    """Validity of approvals by log, packages and time; gate and commands share it.

    Attributes:
        used: how often each was used.
        revoked: those that were revoked.
        now: the time.
        packages: what is installed.
    """

    used: Mapping[str, int]
    revoked: Collection[str]
    now: datetime.datetime
    packages: Packages = INSTALLED

    @classmethod
    def of(cls, ledger: Ledger, packages: Packages = INSTALLED) -> Standing:
        """Return what a log says.

        Raises:
            LedgerError: it cannot be read, or the clock is not right.
        """
        now = datetime.datetime.fromtimestamp(ledger.now(), datetime.UTC)
        return cls(ledger.uses(), ledger.revoked(), now, packages)

    def refusal(self, approval: Approval) -> tuple[str, str] | None:
        """Return what an approval is, in a word or two, and why it does not count; or nothing."""
        if approval.id in self.revoked:
            return "revoked", "it was revoked"
        if approval.expires <= self.now:
            return "expired", f"it expired on {approval.expires:%Y-%m-%d %H:%M} UTC"
        others = self.other_versions(approval)
        if others:
            return "other versions", others[0]
        if self.used.get(approval.id, 0) >= approval.uses:
            return "used up", f"its {approval.uses} uses are used up"
        return None

    def other_versions(self, approval: Approval) -> list[str]:
        """Return the packages that may run a program otherwise than when it was approved."""
        here = self.packages
        return [
            f"it was made with {name} {version}, and here is {here.version(name) or 'none'}"
            for name, version in approval.versions.items()
            if not here.mean_the_same(name, version)
        ]
