"""Credentials of a session: a key for its links, which a party's certificate vouches for.

An engine runs a coordinator's programs, and an MPC process reads what peers send, so they do not
get the key of their party. Each makes a key of its own, and the front issues a certificate for it
with the party's key: for this session, these parties in this order and this role, for a week at
most. The coordinator passes the certificates on; each front verifies those of the peers, and each
process links to whoever has their keys, and nobody else.

Without TLS there are no certificates, and a link is told by its name, which is secret.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from mplang_http.ext import TlsFiles
from msgspec import Meta

from mplang_core.ext import AdmissionError, ConfigError
from mplang_worker.base.digests import sha256
from mplang_worker.tls.trust import Trust

LIFETIME = datetime.timedelta(days=7)
SKEW = datetime.timedelta(hours=1)  # by which clocks of parties may differ
MAX_CERTIFICATES = 5
PEM = Annotated[str, Meta(max_length=16 << 10)]

Role = Literal["engine", "mpc"]
"""Process of a session that has links: its engine, or an MPC process."""

PublicKey = ec.EllipticCurvePublicKey
_SIGNING = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey)


class Credential(msgspec.Struct, frozen=True):
    """Credential of one party of a session.

    Attributes:
        link: name of its end of the links, as DNS name of the certificate.
        certificates: in PEM: that of the session's key, that of the party, and intermediates;
            none without TLS.
        gate: public key of the party's gate, in hex, which the certificate of the session's key
            names as well; empty without a gate.
    """

    link: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}$(?!\n)")]
    certificates: Annotated[list[PEM], Meta(max_length=MAX_CERTIFICATES)] = []
    gate: Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$(?!\n)")] = ""


class LinkEnd(msgspec.Struct, frozen=True):
    """End of the links of one party, as its engine and those of its peers know it.

    Attributes:
        name: name of the party.
        link: name of the end.
        certificate: of the session's key, in PEM; empty without TLS.
        fingerprint: SHA-256 of the certificate of the party, in hex; empty without TLS.
        expires: when the first of the two certificates does, in seconds since 1970; 0 without TLS.
        gate: public key of the party's gate, in hex; empty without one.
    """

    name: str
    link: str
    certificate: str = ""
    fingerprint: str = ""
    expires: float = 0.0
    gate: str = ""


def session_statement(
    coordinator: str, session: str, parties: Sequence[str], role: Role, service: str = ""
) -> str:
    """Return what the certificate of a session's key states, as a URI.

    Args:
        coordinator: name of the coordinator.
        session: name of the session.
        parties: names of the parties, in order.
        role: which process has the key, so that none can stand in for one of the other role.
        service: of an MPC process its native service, so that none can stand in for another one's.
    """
    of_service = [service] if role == "mpc" else []
    return f"urn:mplang:{role}:{sha256([coordinator, session, list(parties), *of_service])}"


class Authority:
    """Issues credentials, with the certificate and key of one party.

    Args:
        files: the files of the party.
        chain: its certificate, and intermediates.

    Raises:
        ConfigError: the key cannot be read, or cannot sign certificates.
    """

    def __init__(self, files: TlsFiles, chain: Sequence[x509.Certificate]) -> None:
        try:
            self._key = serialization.load_pem_private_key(Path(files.key).read_bytes(), None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ConfigError(f"cannot use the key {files.key}: {error}", code="C004") from None
        if not isinstance(self._key, _SIGNING):
            raise ConfigError(
                f"the key {files.key} is neither RSA nor of an elliptic curve", code="C004"
            )
        self._chain = chain

    def issue(self, link: str, key: str, statement: str, gate: str = "") -> Credential:
        """Return the credential of a session's key.

        Args:
            link: name of the end of the session's links.
            key: public key of the session in PEM.
            statement: what the certificate states; see :func:`session_statement`.
            gate: public key of the party's gate, in hex; empty without one.

        Raises:
            ConfigError: the certificate of the party is not valid now.
            AdmissionError: it is not such a key.
        """
        now, mine = datetime.datetime.now(datetime.UTC), self._chain[0]
        if not mine.not_valid_before_utc <= now <= mine.not_valid_after_utc:
            raise ConfigError(
                f"the certificate of this worker is valid from {mine.not_valid_before_utc} to "
                f"{mine.not_valid_after_utc}, and it is {now}",
                code="C004",
            )
        public = _public_key(key)
        stated = map(x509.UniformResourceIdentifier, _statements(statement, gate))
        names = [x509.DNSName(link), *stated]
        assert isinstance(self._key, _SIGNING)
        made = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, link)]))
            .issuer_name(mine.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(max(mine.not_valid_before_utc, now - SKEW))
            .not_valid_after(min(mine.not_valid_after_utc, now + LIFETIME))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        return Credential(link, [_pem(each) for each in (made, *self._chain)], gate)


def verify_credential(trust: Trust, name: str, credential: Credential, statement: str) -> LinkEnd:
    """Return the end of a party's links.

    Args:
        trust: whom this party believes.
        name: name of the party.
        credential: its credential, as the coordinator passes it on.
        statement: what the certificate of the session's key has to state.

    Raises:
        AdmissionError: the credential is not of that party, not for that session and those
            parties, has expired, or nobody that is trusted here vouches for it.
    """
    try:
        made, *chain = [
            x509.load_pem_x509_certificate(each.encode()) for each in credential.certificates
        ]
        found = trust.verify(chain)
        if found.name != name:
            raise ValueError(f"it is of {found.name[:100]}")
        _check_session(made, chain[0], credential, statement)
    except Exception as error:  # whatever a certificate of an unusual form makes of it
        reason = str(error) or type(error).__name__
        raise AdmissionError(
            f"the credential of {name} for this session is refused: {reason[:500]}", code="A008"
        ) from None
    expires = min(made.not_valid_after_utc, found.expires).timestamp()
    fingerprint = chain[0].fingerprint(hashes.SHA256()).hex()
    return LinkEnd(name, credential.link, _pem(made), fingerprint, expires, credential.gate)


def _check_session(
    made: x509.Certificate, party: x509.Certificate, credential: Credential, statement: str
) -> None:
    """Check the certificate of a session's key, which that of its party has issued."""
    made.verify_directly_issued_by(party)
    now = datetime.datetime.now(datetime.UTC)
    if not made.not_valid_before_utc <= now <= made.not_valid_after_utc:
        raise ValueError(
            f"it is valid from {made.not_valid_before_utc} to {made.not_valid_after_utc}, and "
            f"it is {now} by the clock here"
        )
    if not isinstance(made.public_key(), PublicKey):
        raise ValueError("the key of a session is one of an elliptic curve")
    stated = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    uris = stated.get_values_for_type(x509.UniformResourceIdentifier)
    if stated.get_values_for_type(x509.DNSName) != [credential.link] or uris != _statements(
        statement, credential.gate
    ):
        raise ValueError("it is for another session, other parties, or another process")


def _statements(statement: str, gate: str) -> list[str]:
    """Return what the certificate of a session's key states, as URIs."""
    return [statement, *([f"urn:mplang:gate:{gate}"] if gate else [])]


def _public_key(pem: str) -> PublicKey:
    try:
        found = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise AdmissionError(f"no key of a session: {error}", code="A008") from None
    if not isinstance(found, PublicKey):
        raise AdmissionError("the key of a session is one of an elliptic curve", code="A008")
    return found


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
