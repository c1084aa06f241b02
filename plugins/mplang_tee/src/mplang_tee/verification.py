"""Verification of an enclave by what its owner takes it for."""

from __future__ import annotations

from mplang_core.ext import KernelError
from mplang_tee.provider import AttestationEvidence, find_provider
from mplang_tee.settings import TeeSettings

SIMULATED = "simulated"
"""Provider that proves nothing: its key stands in its source."""


def verify(
    settings: TeeSettings,
    enclave: str,
    provider: str,
    files: bytes,
    report: bytes,
    quote: bytes,
    *,
    seconds: int,
    insecure: bool,
) -> AttestationEvidence:
    """Verify the quote of an enclave.

    Args:
        settings: the owner's.
        enclave: name of the party whose enclave it is.
        provider: name of the provider.
        files: SHA-256 that it states of its configuration and what is installed there.
        report: what the quote has to be over.
        quote: from the enclave, hostile until it is verified.
        seconds: time of the owner's clock, since 1970.
        insecure: whether the owner's worker takes what proves nothing.

    Raises:
        KernelError: the owner has named no such enclave, or another one; the text has what it
            expected and what it got.
    """
    by = find_provider(provider)
    known = settings.enclaves.get(enclave)
    if known is None and provider != SIMULATED:
        raise KernelError(
            f"this party has not said what it takes for the enclave of {enclave}: name it under "
            "plugins.mplang-tee.settings.enclaves of its worker",
            code="R013",
        )
    expected = by.expects() if known is None else known.accepted.get(provider)
    if known is not None and expected is None:
        raise KernelError(
            f"this party takes no {provider} for the enclave of {enclave}, but "
            f"{', '.join(sorted(known.accepted))}",
            code="R013",
        )
    if by.is_insecure(expected) and not insecure:
        raise KernelError(
            f"the quote of {enclave} proves nothing ({by.doc}), which a worker takes where it is "
            "insecure: true",
            code="R013",
        )
    if known is not None and files.hex() not in known.files:
        raise KernelError(
            f"{_differs(enclave)}: its files and configuration have SHA-256 {files.hex()}, "
            f"expected {' or '.join(known.files) or 'none'}",
            code="R013",
        )
    try:
        return by.verify(expected, quote, report, seconds)
    except ValueError as error:
        raise KernelError(f"{_differs(enclave)}: {error}", code="R013") from None


def _differs(enclave: str) -> str:
    return f"the enclave of {enclave} is not what this party takes it for"
