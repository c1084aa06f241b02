"""Provider ``simulated``: signs by a key that stands here, and proves nothing."""

from __future__ import annotations

from typing import Any

from mplang_tee.provider import AttestationEvidence, AttestationProvider

SEED = b"mplang: this key proves nothing."


class Simulated(AttestationProvider):
    """Signs by a key that everyone knows."""

    name = "simulated"
    doc = "simulated: everyone has its key"

    def is_insecure(self, expected: Any) -> bool:
        """Return that it proves nothing."""
        return True

    def quote(self, maker: Any, report: bytes) -> bytes:
        """Sign report data."""
        signature: bytes = _key().sign(report)
        return signature

    def verify(
        self, expected: Any, quote: bytes, report: bytes, seconds: int
    ) -> AttestationEvidence:
        """Verify the signature.

        Raises:
            ValueError: it is not over the report data.
        """
        from cryptography.exceptions import InvalidSignature

        try:
            _key().public_key().verify(quote, report)
        except InvalidSignature:
            raise ValueError("the quote is not over this session") from None
        return AttestationEvidence("simulated")


def _key() -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(SEED)


SIMULATED = Simulated()
