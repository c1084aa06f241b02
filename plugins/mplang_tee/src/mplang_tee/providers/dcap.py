"""Base of quotes by Intel's DCAP: collateral, states of the platform, advisories.

References:
    Intel TDX DCAP Quoting Library API; Intel SGX ECDSA QuoteLibReference DCAP API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from pydantic import Field, field_validator

from mplang_tee.fields import FileContent
from mplang_tee.provider import AttestationEvidence, AttestationProvider, Expectations

TcbStatus: TypeAlias = Literal[
    "UpToDate",
    "SWHardeningNeeded",
    "ConfigurationNeeded",
    "ConfigurationAndSWHardeningNeeded",
    "OutOfDate",
    "OutOfDateConfigurationNeeded",
]
"""States of a platform; ``Revoked`` is none that can be taken."""


class DcapExpectations(Expectations):
    """Expected platform of Intel.

    Attributes:
        collateral: file of the collateral, as ``dcap-qvl`` writes it: certificates, revocation
            lists, states. It holds for a month, by the owner's clock.
        statuses: states of the platform that are taken.
        advisories: security advisories that are taken; a platform with another one is refused.
        root: file of a root certificate in DER instead of Intel's, for tests; a worker takes it
            where it is ``insecure: true``.
    """

    collateral: FileContent
    statuses: tuple[TcbStatus, ...] = Field(default=("UpToDate",), min_length=1)
    advisories: tuple[str, ...] = ()
    root: FileContent | None = None

    @field_validator("collateral")
    @classmethod
    def _is_collateral(cls, data: bytes) -> bytes:
        from dcap_qvl import QuoteCollateralV3

        QuoteCollateralV3.from_json(data.decode())
        return data


class DcapProvider(AttestationProvider):
    """Provider whose quotes are those of DCAP."""

    def is_insecure(self, expected: DcapExpectations) -> bool:
        """Return whether another root than Intel's is named."""
        return expected.root is not None


def verified_report(
    expected: DcapExpectations, quote: bytes, report: bytes, seconds: int, kind: str
) -> tuple[Any, AttestationEvidence]:
    """Verify the signatures of a quote, and the state of its platform.

    Args:
        expected: by the owner.
        quote: from a peer.
        report: what it has to be over.
        seconds: time of the owner's clock.
        kind: ``TDX`` or ``SGX``.

    Returns:
        Its report, and the evidence without registers.

    Raises:
        ValueError: it is not signed, stale, of another platform or over something else.
    """
    import dcap_qvl

    collateral = dcap_qvl.QuoteCollateralV3.from_json(expected.collateral.decode())
    try:
        if expected.root is None:
            verified = dcap_qvl.verify(quote, collateral, seconds)
        else:
            verified = dcap_qvl.verify_with_root_ca(quote, collateral, expected.root, seconds)
    except ValueError as error:
        raise ValueError(" ".join(str(error).split())) from None
    parsed = dcap_qvl.Quote.parse(quote)
    if parsed.quote_type() != kind:
        raise ValueError(f"it is a quote of {parsed.quote_type()}, not of {kind}")
    body = parsed.report
    if verified.status not in expected.statuses:
        raise ValueError(
            f"its platform is {verified.status}, and this party takes "
            f"{' or '.join(expected.statuses)}"
        )
    more = sorted(set(verified.advisory_ids) - set(expected.advisories))
    if more:
        raise ValueError(
            f"the advisories {', '.join(more)} hold for its platform, and this party takes "
            f"{', '.join(expected.advisories) or 'none'}"
        )
    if body.report_data != report:
        raise ValueError("the quote is not over this session")
    return body, AttestationEvidence(verified.status, tuple(sorted(verified.advisory_ids)))


def check_registers(registers: Mapping[str, str], expected: Mapping[str, Sequence[str]]) -> None:
    """Compare registers with what is expected.

    Raises:
        ValueError: one is another; names it.
    """
    for name, wanted in expected.items():
        if registers[name] not in wanted:
            raise ValueError(f"{name} is {registers[name]}, expected {' or '.join(wanted)}")
