"""Enclaves for mplang: device kind ``TEE``, and providers of attestation."""

from mplang_tee.config import TeeConfig
from mplang_tee.provider import Evidence, Expectations, Provider, find_provider, provider_names

__all__ = ["Evidence", "Expectations", "Provider", "TeeConfig", "find_provider", "provider_names"]
