"""Renewal of all approvals that count no more since packages have other versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from mplang_analysis.ext import quoted

from mplang_core.ext import ConfigError
from mplang_policy.approval import Approval
from mplang_policy.approvals import Approvals
from mplang_policy.approving import versions_told, write
from mplang_policy.envelope import Signed, open_envelope, sign
from mplang_policy.ledger import Ledger
from mplang_policy.owner import Owner
from mplang_policy.standing import Standing


def renew_all(owner: Owner, key: Ed25519PrivateKey) -> Iterator[str]:
    """Sign all approvals anew that lack nothing but the versions of this worker's packages.

    A renewal has the name of what it renews, so it has its uses, those that were used up included,
    and its expiry; it can be revoked by that name. It takes the place of the old file once enough
    have signed it; until then it lies beside, hidden.

    Args:
        owner: whose approvals they are.
        key: the private key of one who signs.

    Yields:
        A line for each.

    Raises:
        ConfigError: a file cannot be written, or the key is of nobody who signs here.
    """
    kept = Approvals(owner.gate)
    public = key.public_key()
    if public not in kept.keys.values():
        raise ConfigError(
            "the key is not among gate.approvers, so its signature would not count", code="C011"
        )
    ledger = Ledger(owner.gate.log, read_only=True)
    try:
        standing = Standing.of(ledger)
    finally:
        ledger.close()
    for path, signed in kept.files():
        refused = standing.refusal(signed.approval)
        if refused is None or refused[0] != "other versions" or not kept.counts(signed):
            continue
        done = _renew(path, signed, standing, kept, key)
        yield f"{quoted(signed.approval.name)} {signed.id}: {done}"


def _renew(
    path: Path, signed: Signed, standing: Standing, kept: Approvals, key: Ed25519PrivateKey
) -> str:
    """Sign one anew, and return what has come of it."""
    old = signed.approval
    here = {name: standing.packages.version(name) or "" for name in old.versions}
    missing = [name for name, version in here.items() if not version]
    if missing:
        return f"not renewed: {missing[0]} is not installed"
    new = old.model_copy(update={"versions": here})
    if standing.refusal(new) is not None:
        return f"not renewed: {standing.refusal(new)}"
    beside = path.with_name(f".{path.name}.renewal")
    data = sign(new, key, _signatures(beside, new))
    signers = open_envelope(data, kept.keys).signers
    done = f"{versions_told(old, new)}; signed by {', '.join(signers)}"
    if len(signers) < kept.threshold:
        write(beside, data)
        return f"{done}: {len(signers)} of {kept.threshold} signatures"
    write(path, data)
    beside.unlink(missing_ok=True)
    return f"{done}, used {standing.used.get(old.id, 0)} of {old.uses} times, and counts"


def _signatures(path: Path, approval: Approval) -> bytes | None:
    """Return the envelope of a renewal that others have signed; ``None`` if there is none."""
    try:
        data = path.read_bytes()
        beside = open_envelope(data, {}).approval
    except (OSError, ConfigError):
        return None
    return data if beside.to_bytes() == approval.to_bytes() else None
