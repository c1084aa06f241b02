"""Enclaves for mplang: device kind ``TEE``, and providers of attestation."""

from mplang_tee.config import TeeConfig
from mplang_tee.provider import (
    AttestationEvidence,
    AttestationProvider,
    Expectations,
    find_provider,
    provider_names,
)

__all__ = [
    "AttestationEvidence",
    "AttestationProvider",
    "Expectations",
    "TeeConfig",
    "find_provider",
    "provider_names",
]


def __dir__() -> list[str]:
    """Return the names that are for users."""
    return sorted(__all__)
