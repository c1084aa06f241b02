"""Interface of providers of attestation: who signs that an enclave is what it says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mplang_core.ext import RunError, StrictModel, plugin_manager

ATTESTATION = "mplang.attestation"
"""Entry points that name the :class:`AttestationProvider` of a package, by its name."""

REPORT_BYTES = 64
"""Bytes of report data, over which a quote is."""


@dataclass(frozen=True, slots=True)
class AttestationEvidence:
    """Facts proved by a verified quote.

    Attributes:
        status: state of the platform in the provider's words; ``verified`` if it has none.
        advisories: security advisories that hold for the platform.
        registers: what was measured, in hexadecimal digits.
    """

    status: str = "verified"
    advisories: tuple[str, ...] = ()
    registers: Mapping[str, str] = field(default_factory=dict)


class Expectations(StrictModel):
    """Expected state of an enclave, set by an owner; a provider adds its registers."""


class AttestationProvider(ABC):
    """Provider of attestation: makes quotes in enclaves, or verifies them, or both.

    Attributes:
        name: its name in programs and configurations, a word.
        doc: what its quotes prove, in a line, and what they do not.
        expects: model of what an owner takes for such an enclave.
        makes: model of what making quotes needs; ``None`` if it only verifies.
    """

    name: ClassVar[str]
    doc: ClassVar[str]
    expects: ClassVar[type[Expectations]] = Expectations
    makes: ClassVar[type[StrictModel] | None] = None

    def is_insecure(self, expected: Any) -> bool:
        """Return whether a worker takes it only where it is ``insecure: true``.

        Args:
            expected: of the class :attr:`expects`.
        """
        return False

    def quote(self, maker: Any, report: bytes) -> bytes:
        """Make a quote, in a process of its own that serves all sessions of a worker.

        Args:
            maker: of the class :attr:`makes`.
            report: 64 bytes that the quote is over.

        Raises:
            ValueError: it cannot be made here.
        """
        raise ValueError(f"{self.name} makes no quotes here; it verifies those of others")

    @abstractmethod
    def verify(
        self, expected: Any, quote: bytes, report: bytes, seconds: int
    ) -> AttestationEvidence:
        """Verify a quote.

        Args:
            expected: of the class :attr:`expects`.
            quote: from a peer, hostile until it is verified.
            report: 64 bytes that it has to be over.
            seconds: the time of the owner's clock, since 1970.

        Raises:
            ValueError: it is not over that, not signed as it has to be, of another enclave, or of
                a state that the owner has not named. The text names the first that is wrong.
        """


def find_provider(name: str) -> AttestationProvider:
    """Return the provider of a name.

    Raises:
        RunError: there is none here.
        PluginLoadError: its package did not load.

    Example:
        >>> find_provider("tdx").name
        'tdx'
    """
    provider = plugin_manager.entry(ATTESTATION, name)
    if not isinstance(provider, AttestationProvider):
        there = ", ".join(provider_names()) or "none"
        raise RunError(
            f"no provider of attestation {name!r} is installed; there are {there}", code="P002"
        )
    return provider


def provider_names() -> Sequence[str]:
    """Return the names of the providers that are installed; imports none."""
    return sorted(plugin_manager.names(ATTESTATION))
