"""Certificate authority of a test: issues certificates for any time, renews and revokes them."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from mplang_http.tls.files import TlsFiles

NOW = datetime.timedelta()
HOUR, DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class TestAuthority:
    """Authority, whose files are in a folder: ``ca.pem``, ``crl.pem``, ``alice.pem`` and so on."""

    __test__ = False

    def __init__(self, folder: Path, name: str = "an authority") -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._name = folder, _subject(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._revoked: list[int] = []
        made = self._builder(name, self._key, 3650 * DAY).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self._write("ca.pem", made.sign(self._key, hashes.SHA256()))
        self.revoke()

    def _builder(self, name, key, lasts, begins=NOW) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(_subject(name))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins - HOUR)
            .not_valid_after(now + lasts)
        )

    def issue(
        self,
        name: str,
        lasts: datetime.timedelta = 365 * DAY,
        *,
        begins=NOW,
        crl: bool = False,
        dns: str | None = None,
    ) -> TlsFiles:
        """Write a certificate and key, in place of those that are there; ``dns`` differs in one."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        made = (
            self._builder(name, key, lasts, begins)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(dns or name)]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        files = TlsFiles.of(str(self._folder / name))
        self._replace(files.key, private)
        self._write(f"{name}.pem", made)
        lists = str(self._folder / "crl.pem") if crl else None
        return files.model_copy(update={"crl": lists})

    def revoke(self, *files: TlsFiles, lasts: datetime.timedelta = 2 * DAY, also=None) -> None:
        """Write the revocation list, with these certificates on it, and perhaps an extension."""
        self._revoked += [serial_of(each) for each in files]
        now = datetime.datetime.now(datetime.UTC)
        made = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        made = made.last_update(now - DAY).next_update(now + lasts)
        if also is not None:
            made = made.add_extension(also, critical=True)
        for serial in self._revoked:
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
            made = made.add_revoked_certificate(entry.build())
        self._write("crl.pem", made.sign(self._key, hashes.SHA256()))

    def _write(self, name: str, made) -> None:
        self._replace(str(self._folder / name), made.public_bytes(serialization.Encoding.PEM))

    def _replace(self, file: str, data: bytes) -> None:
        with open(os.open(f"{file}.new", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
            out.write(data)
        os.replace(f"{file}.new", file)


def serial_of(files: TlsFiles) -> int:
    """Return the serial number of a certificate."""
    return x509.load_pem_x509_certificate(Path(files.cert).read_bytes()).serial_number
