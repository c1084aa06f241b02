"""State of a gate on record: rules, approvals and configuration, each when it is another one."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mplang_policy.approval import Approval
from mplang_policy.ledger import Body, Writing, canonical, digest_of
from mplang_policy.rules import Rules

RULES = "rules"
CONFIGURATION = "configuration"


def record_change(writing: Writing, subject: str, kind: str, body: Body) -> bool:
    """Add an entry if it says something else of a subject than the last one; return whether.

    Args:
        writing: the transaction.
        subject: what it is about.
        kind: kind of the entry.
        body: plain data.
    """
    digest = digest_of(body)
    if writing.recorded(subject) == digest:
        return False
    writing.set_recorded(subject, digest)
    writing.add(kind, body)
    return True


def record_rules(writing: Writing, rules: Rules) -> str:
    """Return version and SHA-256 of rules, for the entry of what they have decided.

    Rules that are new get the next version and an entry, with their text as its detail.

    Args:
        writing: the transaction.
        rules: the rules.
    """
    version, _, before = (writing.recorded(RULES) or "0:").partition(":")
    if before == rules.digest:
        return f"{version}:{before}"
    used = writing.used  # no coordinator causes what follows
    digest = writing.add_detail(rules.texts)
    name = f"{int(version) + 1}:{digest}"
    writing.set_recorded(RULES, name)
    writing.add(RULES, {"version": int(version) + 1, "rows": digest, "files": list(rules.files)})
    writing.used = used
    return name


def record_approval(
    writing: Writing, approval: Approval, signers: Sequence[str], passed_on_by: str = ""
) -> bool:
    """Add an entry of an approval that has come, or has other signatures; return whether.

    Args:
        writing: the transaction.
        approval: the approval.
        signers: who has signed it.
        passed_on_by: the coordinator that has passed it on; empty if it lies in the folder.
    """
    body = {
        "approval": approval.id,
        "name": approval.name,
        "program": approval.program,
        "for": list(approval.coordinators),
        "signers": sorted(signers),
    }
    subject = f"approval {approval.id}"
    if writing.recorded(subject) == digest_of(body):
        return False
    writing.set_recorded(subject, digest_of(body))
    by = {"coordinator": passed_on_by} if passed_on_by else {}
    writing.add("approval", {**body, **by})
    return True


def record_configuration(writing: Writing, fields: Body) -> None:
    """Add an entry of a worker's configuration if it has changed, with the fields that have.

    Args:
        writing: the transaction.
        fields: the configuration, as plain data, of which nothing but hashes is kept.
    """
    now = {name: digest_of(value) for name, value in fields.items()}
    before = json.loads(writing.recorded(CONFIGURATION) or "{}")
    changed = sorted(
        name for name in now.keys() | before.keys() if now.get(name) != before.get(name)
    )
    if changed:
        writing.set_recorded(CONFIGURATION, canonical(now))
        writing.add(CONFIGURATION, {"changed": changed, "sha256": digest_of(fields)})
