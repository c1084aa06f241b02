"""View of an owner on the gate of a worker that runs: rules, approvals, and their revocation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mplang_core.ext import ConfigError
from mplang_policy.approval import Approval
from mplang_policy.approvals import Approvals
from mplang_policy.envelope import Signed
from mplang_policy.gate_log import GateLog
from mplang_policy.names import Names
from mplang_policy.package_versions import Packages
from mplang_policy.record import shortened_fields
from mplang_policy.rules import Rules
from mplang_policy.standing import Standing

Row = dict[str, str | int | list[str]]
REVOKED = "revoked"


class RulesInForce(NamedTuple):
    """Gate configuration in force.

    Attributes:
        approvals: the approvals.
        rules: returns the rules; raises a :class:`ConfigError` if they are wrong.
        names: what they may name.
    """

    approvals: Approvals
    rules: Callable[[], Rules]
    names: Names


class OwnerView:
    """View of an owner on a gate. Safe for threads, as its ledger is.

    Its methods raise an ``AdmissionError`` if the ledger cannot be used.

    Args:
        log: the log of the gate.
        packages: what is installed.
        configured: returns what counts now.
    """

    def __init__(
        self, log: GateLog, packages: Packages, configured: Callable[[], RulesInForce]
    ) -> None:
        self._log, self._packages, self._configured = log, packages, configured

    def rules(self) -> list[Row]:
        """Return the files of the rules that count, with their texts; or why there are none."""
        try:
            rules = self._configured().rules()
        except ConfigError as error:
            return [{"file": "", "rules": "", "text": f"nothing runs: {error}"}]
        return [
            {"file": name, "rules": rules.digest[:12], "text": text} for name, text in rules.texts
        ]

    def approvals(self) -> list[Row]:
        """Return the approvals of the folder, and whether they count, whatever the program is."""
        kept, rules, names = self._configured()
        with self._log.using():
            standing = Standing.of(self._log.ledger, self._packages)
        rows = []
        for signed in kept.read():
            state, why = state_of(kept, standing, signed)
            if state == COUNTS:
                why = refusal_of_worker(signed.approval, self._log.party, names, rules)
                state = "refused" if why else state
            rows.append(approval_row(signed, standing, state, why))
        return rows

    def revoke(self, approval: str, by: str) -> None:
        """Revoke an approval, at once and for good; that is on record once.

        Args:
            approval: its name.
            by: who wants it.
        """
        with self._log.recording("", always=True) as writing:
            if writing.revoke(approval):
                writing.add(REVOKED, shortened_fields({"approval": approval, "by": by}))


COUNTS = "counts"


def state_of(kept: Approvals, standing: Standing, signed: Signed) -> tuple[str, str]:
    """Return what an approval is in a word or two, and why it does not count by itself.

    Args:
        kept: the approvals of the worker.
        standing: what log, packages and time say.
        signed: the approval.
    """
    if not kept.counts(signed):
        return f"{len(signed.signers)} of {kept.threshold} signatures", ""
    refused = standing.refusal(signed.approval)
    if refused is None:
        return COUNTS, ""
    state, why = refused
    return state, why if state == "other versions" else ""


def refusal_of_worker(
    approval: Approval, party: str, names: Names, rules: Callable[[], object]
) -> str:
    """Return what of a worker is not so any more as an approval says; empty if all is.

    Args:
        approval: the approval.
        party: name of the party.
        names: what its rules may name.
        rules: returns them; raises a :class:`ConfigError` if they are wrong.
    """
    if approval.party != party:
        return f"it is of {approval.party}"
    if not set(approval.coordinators) & names.known.get("Coordinator", frozenset()):
        return f"{' and '.join(approval.coordinators)} is not a coordinator here"
    gone = [name for name in approval.data_sets if names.unknown("DataSet", name)]
    if gone:
        return f"it reads data set {gone[0]}, which is not here"
    try:
        rules()
    except ConfigError as error:
        return f"nothing runs, as there are no valid rules: {error}"
    return ""


def approval_row(signed: Signed, standing: Standing, state: str, why: str) -> Row:
    """Return an approval as it is listed.

    Args:
        signed: the approval.
        standing: what log, packages and time say.
        state: what it is, in a word or two.
        why: why it does not count.
    """
    approval = signed.approval
    return {
        "approval": approval.id,
        "program": approval.name,
        "digest": approval.program,
        "for": list(approval.coordinators),
        "used": standing.used.get(approval.id, 0),
        "uses": approval.uses,
        "expires": f"{approval.expires:%Y-%m-%d %H:%M} UTC",
        "signed by": list(signed.signers),
        "state": state,
        "why": why,
    }
