"""Test certificates: a certificate authority, and one certificate per name."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from mplang_http.ext import TlsFiles

from mplang_core.ext import ConfigError
from mplang_worker.base.config import NAME

DAY = datetime.timedelta(days=1)
Key = ec.EllipticCurvePrivateKey


def make_certificates(
    folder: Path, names: Iterable[str], *, days: float = 90, replace: bool = False
) -> dict[str, TlsFiles]:
    """Create a certificate authority, and a certificate and key per name, as PEM files.

    The key of the authority is not stored, so nobody can issue further certificates.

    Args:
        folder: directory of the files.
        names: common names of the certificates.
        days: validity in days from now; negative for expired certificates.
        replace: whether files that are there are removed first.

    Returns:
        The files by name.

    Raises:
        ConfigError: a name is malformed, the folder has certificates of other names, or one of
            the files is there already.
    """
    names = list(names)
    for name in names:
        if not re.fullmatch(NAME, name):
            raise ConfigError(
                f"a name is of letters, digits, _, . and -, got {name!r}", code="C004"
            )
    existing = {path.name for path in folder.glob("*.pem")} | {
        path.name for path in folder.glob("*.key")
    }
    if existing - {"ca.pem"} - {f"{name}.{kind}" for name in names for kind in ("pem", "key")}:
        raise ConfigError(
            f"in {folder} are certificates of others, which a new authority would not vouch for; "
            "name all who need one, or take another folder",
            code="C004",
        )
    folder.mkdir(parents=True, exist_ok=True)
    for found in [folder / file for file in sorted(existing)]:
        if not replace:
            raise ConfigError(
                f"{found} exists already, and a key is not overwritten; remove it, or take "
                "another folder",
                code="C004",
            )
        found.unlink()
    now = datetime.datetime.now(datetime.UTC)
    begin, end = now - 2 * DAY, now + days * DAY
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("mplang test authority")
    ca = (
        _builder(ca_name, ca_name, ca_key, now - 2 * DAY, now + max(days, 1) * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    ca_file = _write(folder / "ca.pem", ca.public_bytes(serialization.Encoding.PEM))
    made = {}
    for name in names:
        key = ec.generate_private_key(ec.SECP256R1())
        cert = (
            _builder(_name(name), ca_name, key, begin, end)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
            .sign(ca_key, hashes.SHA256())
        )
        made[name] = TlsFiles(
            cert=_write(folder / f"{name}.pem", cert.public_bytes(serialization.Encoding.PEM)),
            key=_write(folder / f"{name}.key", _private(key)),
            ca=ca_file,
        )
    return made


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: Key,
    begin: datetime.datetime,
    end: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, data: bytes) -> str:
    """Write a new file with mode 0600; a link that somebody has put there is not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(path, flags, 0o600), "wb") as out:
        out.write(data)
    return str(path)
