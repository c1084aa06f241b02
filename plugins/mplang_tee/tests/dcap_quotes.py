"""Quotes of TDX and SGX over any report data, under a root of the tests' own.

Fields of the platform are those of the samples of dcap-qvl; keys and certificates are new.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

SAMPLES = Path(__file__).parent / "samples"
NOW = 1_751_000_000  # when the samples' collateral holds
SGX_EXTENSIONS = x509.ObjectIdentifier("1.2.840.113741.1.13.1")
DAY = datetime.timedelta(days=1)
TODAY = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
HEADER, SGX_REPORT, TD_REPORT, SIGNATURE, KEY = 48, 384, 584, 64, 64
REPORT_DATA = {"tdx": HEADER + 520, "sgx": HEADER + 320}
SIZES = {"tdx": HEADER + TD_REPORT, "sgx": HEADER + SGX_REPORT}


@lru_cache
def sample(kind: str) -> bytes:
    return (SAMPLES / f"{kind}_quote").read_bytes()


@lru_cache
def sample_collateral(kind: str) -> dict[str, str]:
    return json.loads((SAMPLES / f"{kind}_quote_collateral.json").read_text())


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def raw_signature(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def raw_public(key: ec.EllipticCurvePrivateKey) -> bytes:
    numbers = key.public_key().public_numbers()
    return numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")


def pem(*certificates: x509.Certificate) -> str:
    return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in certificates)


@dataclass
class Issued:
    """A key with its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def issue(name: str, by: Issued | None, extension: bytes | None = None, is_ca: bool = True):
    key = new_key()
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    usage = dict.fromkeys(
        ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
         "key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"), False,
    )  # fmt: skip
    usage |= {"key_cert_sign": True, "crl_sign": True} if is_ca else {"digital_signature": True}
    signer = key if by is None else by.key
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else by.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(TODAY - 1000 * DAY)
        .not_valid_after(TODAY + 10_000 * DAY)
        .add_extension(x509.BasicConstraints(is_ca, None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False
        )
    )
    if extension is not None:
        made = made.add_extension(x509.UnrecognizedExtension(SGX_EXTENSIONS, extension), False)
    return Issued(key, made.sign(signer, hashes.SHA256()))


def crl(by: Issued, *revoked: int, until: int = 30) -> bytes:
    made = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(by.certificate.subject)
        .last_update(TODAY - DAY)
        .next_update(TODAY + until * DAY)
        .add_extension(x509.CRLNumber(1), False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(by.key.public_key()), False
        )
    )
    for number in revoked:
        entry = x509.RevokedCertificateBuilder().serial_number(number)
        made = made.add_revoked_certificate(entry.revocation_date(TODAY - 2 * DAY).build())
    return made.sign(by.key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@dataclass
class Platform:
    """A platform of TDX or SGX, with keys and certificates of its own."""

    kind: str
    root: Issued = field(default_factory=lambda: issue("Root", None))

    def __post_init__(self) -> None:
        self.platform_ca = issue("PCK Platform CA", self.root)
        self.tcb_signing = issue("TCB Signing", self.root, is_ca=False)
        self.pck = issue("PCK", self.platform_ca, self._extension, is_ca=False)
        self.attesting = new_key()

    @cached_property
    def _extension(self) -> bytes:
        data = sample(self.kind)
        start = data.index(b"-----BEGIN CERTIFICATE-----")
        leaf = x509.load_pem_x509_certificates(data[start:].rstrip(b"\0"))[0]
        found = leaf.extensions.get_extension_for_oid(SGX_EXTENSIONS).value
        assert isinstance(found, x509.UnrecognizedExtension)
        return found.value

    @property
    def root_der(self) -> bytes:
        return self.root.certificate.public_bytes(serialization.Encoding.DER)

    def collateral(self, *revoked: int, **changes: str) -> str:
        """Return collateral whose states are those of the sample."""
        made = {**sample_collateral(self.kind), **changes}
        issuers = pem(self.tcb_signing.certificate, self.root.certificate)
        signed = {
            name: raw_signature(self.tcb_signing.key, made[name].encode()).hex()
            for name in ("tcb_info", "qe_identity")
        }
        return json.dumps({
            "pck_crl_issuer_chain": pem(self.platform_ca.certificate, self.root.certificate),
            "root_ca_crl": crl(self.root).hex(),
            "pck_crl": crl(self.platform_ca, *revoked).hex(),
            "tcb_info_issuer_chain": issuers,
            "tcb_info": made["tcb_info"],
            "tcb_info_signature": signed["tcb_info"],
            "qe_identity_issuer_chain": issuers,
            "qe_identity": made["qe_identity"],
            "qe_identity_signature": signed["qe_identity"],
        })  # fmt: skip

    def quote(self, report: bytes, changes: dict[int, bytes] | None = None) -> bytes:
        """Return a quote over report data; ``changes`` are bytes of it by their offsets."""
        data, size = bytearray(sample(self.kind)), SIZES[self.kind]
        signed = data[:size]
        for at, new in {REPORT_DATA[self.kind]: report, **(changes or {})}.items():
            signed[at : at + len(new)] = new
        rest = data[size + 4 + SIGNATURE + KEY :]
        nested = 6 if self.kind == "tdx" else 0  # type and size of the certification data around
        rest = rest[nested:]
        qe_report = rest[:SGX_REPORT]
        at = SGX_REPORT + SIGNATURE
        auth = rest[at + 2 : at + 2 + int.from_bytes(rest[at : at + 2], "little")]
        public = raw_public(self.attesting)
        digest = hashlib.sha256(public + auth).digest()
        qe_report[320:384] = digest + bytes(32)
        chain = pem(self.pck.certificate, self.platform_ca.certificate, self.root.certificate)
        certified = b"".join([
            qe_report, raw_signature(self.pck.key, bytes(qe_report)),
            len(auth).to_bytes(2, "little"), auth,
            (5).to_bytes(2, "little"), len(chain).to_bytes(4, "little"), chain.encode(),
        ])  # fmt: skip
        if nested:
            certified = (6).to_bytes(2, "little") + len(certified).to_bytes(4, "little") + certified
        signature = raw_signature(self.attesting, bytes(signed))
        return b"".join([
            signed, (len(certified) + SIGNATURE + KEY).to_bytes(4, "little"),
            signature, public, certified,
        ])  # fmt: skip
