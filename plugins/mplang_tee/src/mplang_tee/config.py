"""Configuration of devices of kind ``TEE``."""

from __future__ import annotations

from mplang_core import Mask
from mplang_core.ext import StrictModel
from mplang_tee.provider import provider_names


class TeeConfig(StrictModel):
    """Configuration of a device of kind ``TEE``.

    Attributes:
        provider: who attests the enclave: ``tdx``, ``sgx``, ``tpm``, ``simulated``, or one of
            another package. A simulator takes every one for ``simulated``.

    Example:
        >>> TeeConfig(provider="tdx").provider
        'tdx'
    """

    provider: str


def resolve_config(config: TeeConfig, members: Mask) -> TeeConfig:
    """Return the configuration, of a provider that is installed.

    Raises:
        ValueError: it is not.
    """
    if config.provider not in provider_names():
        raise ValueError(
            f"config.provider: one of {', '.join(provider_names())}, got {config.provider!r}"
        )
    return config
