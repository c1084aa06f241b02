"""Whom a party believes: the authorities that may name each party, and what they revoked."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from mplang_core.ext import AdmissionError, ConfigError
from mplang_http.config import TlsFiles

_CRL = re.compile(rb"-----BEGIN X509 CRL-----.+?-----END X509 CRL-----", re.DOTALL)
_SIGNING = (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey,
            ed448.Ed448PublicKey)  # fmt: skip


def read_certificates(file: str) -> list[x509.Certificate]:
    """Return the certificates of a PEM file.

    Raises:
        ConfigError: the file cannot be read, or has none.
    """
    try:
        return x509.load_pem_x509_certificates(Path(file).read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot use the certificates {file}: {error}") from None


class Trust:
    """Verifies certificates of other parties.

    Args:
        files: the files of the party; with ``crl``, each authority has a revocation list in it.
        authorities: file of the authority by name of a party or coordinator; nobody else may
            name it, and the authority names nobody else. That of ``files`` names all others.

    Raises:
        ConfigError: a file cannot be read.

    References:
        Paths and lists are validated as by RFC 5280, by :mod:`cryptography.x509`.
    """

    def __init__(self, files: TlsFiles, authorities: Mapping[str, str]) -> None:
        self._default = Store(read_certificates(files.ca))
        self._stores = {name: Store(read_certificates(file)) for name, file in authorities.items()}
        self._lists = None if files.crl is None else _read_lists(files.crl)

    def verify(self, party: x509.Certificate, others: Sequence[x509.Certificate]) -> str:
        """Return the name of a party, by its certificate.

        Args:
            party: the certificate.
            others: intermediates that came with it.

        Raises:
            AdmissionError: nobody that may vouch for this name does, the certificate is not valid
                now, or it is revoked.
        """
        names = [
            str(each.value)
            for each in party.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        ]
        if len(names) != 1:
            raise AdmissionError(f"a certificate has one common name, got {len(names)}")
        now = datetime.datetime.now(datetime.UTC)
        policy = PolicyBuilder().store(self._stores.get(names[0], self._default)).time(now)
        policy = policy.extension_policies(ee_policy=_ANYBODY, ca_policy=_AUTHORITY)
        try:
            found = policy.build_client_verifier().verify(party, list(others))
            self._check_lists(found.chain, now)
        except (VerificationError, ValueError, TypeError) as error:
            raise AdmissionError(str(error) or type(error).__name__) from None
        return names[0]

    def _check_lists(self, chain: Sequence[x509.Certificate], now: datetime.datetime) -> None:
        if self._lists is None:
            return
        for certificate, issuer in itertools.pairwise(chain):
            key = issuer.public_key()
            lists = [
                each
                for each in self._lists
                if each.issuer == issuer.subject
                and isinstance(key, _SIGNING)
                and each.is_signature_valid(key)
            ]
            title = issuer.subject.rfc4514_string()[:100]
            if not lists:
                raise ValueError(f"there is no revocation list of {title}")
            for each in lists:
                if each.next_update_utc is not None and each.next_update_utc < now:
                    raise ValueError(f"the revocation list of {title} has expired")
                if each.get_revoked_certificate_by_serial_number(certificate.serial_number):
                    raise ValueError("it is revoked")


_ANYBODY = ExtensionPolicy.permit_all()
_AUTHORITY = ExtensionPolicy.permit_all().require_present(
    x509.BasicConstraints, Criticality.AGNOSTIC, None
)


def _read_lists(file: str) -> list[x509.CertificateRevocationList]:
    try:
        found = _CRL.findall(Path(file).read_bytes())
        lists = [x509.load_pem_x509_crl(each) for each in found]
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot use the revocation lists {file}: {error}") from None
    if not lists:
        raise ConfigError(f"{file} has no revocation list in PEM")
    return lists
