"""Whom a party believes: the authorities that may name each party, and what they revoked."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
)
from mplang_http.ext import TlsFiles

from mplang_core.ext import AdmissionError, ConfigError

MAX_KNOWN = 4096  # chains that are known to be valid
_BEGIN, _END = b"-----BEGIN X509 CRL-----", b"-----END X509 CRL-----"
_CRL = re.compile(_BEGIN + b".+?" + _END, re.DOTALL)
_SIGNING = (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey,
            ed448.Ed448PublicKey)  # fmt: skip


def read_certificates(file: str) -> list[x509.Certificate]:
    """Return the certificates of a PEM file.

    Raises:
        ConfigError: the file cannot be read, or has none.
    """
    try:
        return x509.load_pem_x509_certificates(Path(file).read_bytes())
    except Exception as error:  # of a version that there is not, among others
        raise ConfigError(f"cannot use the certificates {file}: {error}", code="C004") from None


@dataclass(frozen=True, slots=True)
class Party:
    """A party whose certificate was verified.

    Attributes:
        name: its name.
        expires: when the first certificate of its chain does.
    """

    name: str
    expires: datetime.datetime


class Trust:
    """Verifies certificates of other parties.

    Args:
        files: the files of the party; with ``crl``, each authority has a revocation list in it.
        authorities: file of the authority by name of a party or coordinator; nobody else may
            name it, and the authority names nobody else. That of ``files`` names all others.

    Attributes:
        next_update: when the first of the revocation lists expires; ``None`` without lists.

    Raises:
        ConfigError: a file cannot be used, or an authority stands in two of them.

    References:
        Paths are validated as by RFC 5280, by :mod:`cryptography.x509.verification`, complete
        revocation lists as by its section 6.3.
    """

    def __init__(self, files: TlsFiles, authorities: Mapping[str, str]) -> None:
        believed = read_certificates(files.ca)
        self._default = Store(believed)
        self._stores = {}
        for name, file in authorities.items():
            found = read_certificates(file)
            if {_key_of(each) for each in found} & {_key_of(each) for each in believed}:
                raise ConfigError(
                    f"the authority of {name} in {file} stands in {files.ca}, too, so it could "
                    "name anybody; take it out there",
                    code="C004",
                )
            self._stores[name] = Store(found)
        self._lists = None if files.crl is None else _read_lists(files.crl)
        newest = {each.issuer: each for each in sorted(self._lists or (), key=_begin)}
        updates = [each.next_update for each in newest.values() if each.next_update is not None]
        self.next_update = min(updates, default=None)
        self._known: dict[bytes, Party] = {}

    def verify(self, chain: Sequence[x509.Certificate]) -> Party:
        """Return the party of a certificate.

        Args:
            chain: the certificate, and intermediates that came with it.

        Raises:
            AdmissionError: nobody that may vouch for this name does, the certificate is not valid
                now, or it is revoked.
        """
        now = datetime.datetime.now(datetime.UTC)
        try:
            key = b"".join(each.fingerprint(hashes.SHA256()) for each in chain)
            found = self._known.get(key)
            stale = self.next_update is not None and self.next_update < now
            if found is None or found.expires < now or stale:
                found = self._verify(chain, now)
                if len(self._known) >= MAX_KNOWN:
                    self._known.clear()
                self._known[key] = found
        except Exception as error:  # whatever a certificate of an unusual form makes of it
            raise AdmissionError((str(error) or type(error).__name__)[:500], code="A008") from None
        return found

    def _verify(self, chain: Sequence[x509.Certificate], now: datetime.datetime) -> Party:
        party, *others = chain
        name = _name_of(party)
        policy = PolicyBuilder().store(self._stores.get(name, self._default)).time(now)
        policy = policy.extension_policies(ee_policy=_ANYBODY, ca_policy=_AUTHORITY)
        found = policy.build_client_verifier().verify(party, others)
        if self._lists is not None:
            for certificate, issuer in itertools.pairwise(found.chain):
                _check_revocation(self._lists, certificate, issuer, now)
        return Party(name, min(each.not_valid_after_utc for each in found.chain))


def _name_of(party: x509.Certificate) -> str:
    """Return the common name of a certificate, which is a DNS name of it, too.

    DNS names are what the constraints of an intermediate authority are about.
    """
    names = [each.value for each in party.subject.get_attributes_for_oid(_COMMON_NAME)]
    if len(names) != 1 or not isinstance(names[0], str):
        raise ValueError(f"a certificate has one common name, got {len(names)}")
    stated = party.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    if names[0] not in stated.get_values_for_type(x509.DNSName):
        raise ValueError(f"the common name {names[0][:100]!r} is not a DNS name of the certificate")
    return names[0]


def _key_of(certificate: x509.Certificate) -> bytes:
    """Return the public key of a certificate as bytes."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return certificate.public_key().public_bytes(serialization.Encoding.DER, form)


def _may_sign(policy: Policy, certificate: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("it is issued by a key that is not for certificates")


_COMMON_NAME = x509.NameOID.COMMON_NAME
_ANYBODY = ExtensionPolicy.permit_all()
_AUTHORITY = (
    ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, None)
    .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _may_sign)
)


# -- revocation lists


class RevocationList:
    """Complete revocation list of one authority.

    Args:
        made: the list.

    Attributes:
        issuer: name of the authority.
        begins: when it was made.
        next_update: when it expires, if it does.

    Raises:
        ValueError: it is not complete, or has something critical that is not understood.
    """

    def __init__(self, made: x509.CertificateRevocationList) -> None:
        for extension in made.extensions:
            partial = isinstance(
                extension.value, x509.DeltaCRLIndicator | x509.IssuingDistributionPoint
            )
            if partial or (extension.critical and not isinstance(extension.value, x509.CRLNumber)):
                raise ValueError(f"a list that is not complete ({extension.oid._name}) is not used")
        self.issuer = made.issuer
        self.begins = made.last_update_utc
        self.next_update = made.next_update_utc
        self._made = made
        self._serials = {each.serial_number for each in made}
        self._by: dict[bytes, bool] = {}  # whether a key has signed it

    def is_of(self, issuer: x509.Certificate) -> bool:
        """Return whether an authority has signed it."""
        if self.issuer != issuer.subject:
            return False
        key, known = issuer.public_key(), _key_of(issuer)
        if known not in self._by:
            signs = isinstance(key, _SIGNING) and self._made.is_signature_valid(key)
            self._by[known] = signs
        return self._by[known]

    def revokes(self, certificate: x509.Certificate) -> bool:
        """Return whether a certificate of its authority is revoked."""
        return certificate.serial_number in self._serials


def _begin(made: RevocationList) -> datetime.datetime:
    return made.begins


def _check_revocation(
    lists: Sequence[RevocationList],
    certificate: x509.Certificate,
    issuer: x509.Certificate,
    now: datetime.datetime,
) -> None:
    title = issuer.subject.rfc4514_string()[:100]
    mine = [each for each in lists if each.begins <= now and each.is_of(issuer)]
    if not mine:
        raise ValueError(f"there is no revocation list of {title}")
    newest = max(mine, key=_begin)
    if newest.next_update is not None and newest.next_update < now:
        raise ValueError(f"the revocation list of {title} has expired")
    if newest.revokes(certificate):
        raise ValueError("it is revoked")


def _read_lists(file: str) -> list[RevocationList]:
    try:
        data = Path(file).read_bytes()
        if data.count(_BEGIN) != data.count(_END):
            raise ValueError("a list has no end")
        lists = [RevocationList(x509.load_pem_x509_crl(each)) for each in _CRL.findall(data)]
    except Exception as error:
        raise ConfigError(f"cannot use the revocation lists {file}: {error}", code="C004") from None
    if not lists:
        raise ConfigError(f"{file} has no revocation list in PEM", code="C004")
    return lists


def parse_chain(sent: Sequence[bytes]) -> list[x509.Certificate]:
    """Return certificates that came in DER, each once.

    Raises:
        AdmissionError: one is malformed.
    """
    try:
        return [x509.load_der_x509_certificate(each) for each in dict.fromkeys(sent)]
    except Exception as error:
        raise AdmissionError(f"a malformed certificate: {error}"[:500], code="A008") from None
