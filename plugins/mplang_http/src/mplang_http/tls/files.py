"""Paths of a party's certificate files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mplang_core.ext import StrictModel


class TlsFiles(StrictModel):
    """Paths of the PEM files of one party.

    Attributes:
        cert: certificate; its common name is the name of the party.
        key: private key of the certificate.
        ca: certificate of the authority that signed those of all parties.
        crl: revocation lists of the authorities, one of each; nothing is revoked if ``None``.
    """

    cert: str
    key: str
    ca: str
    crl: str | None = None

    @classmethod
    def of(cls, given: TlsFiles | Mapping[str, str] | str | None) -> TlsFiles | None:
        """Return the TLS files that a path stands for, in the layout of mplang keygen.

        Example:
            >>> TlsFiles.of("certs/alice").key
            'certs/alice.key'
        """
        if given is None or isinstance(given, TlsFiles):
            return given
        if isinstance(given, str):
            folder = Path(given).parent
            return cls(cert=f"{given}.pem", key=f"{given}.key", ca=str(folder / "ca.pem"))
        return cls(**given)
