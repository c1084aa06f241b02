"""TLS before forks: what OpenSSL loads at its first handshake, in time and memory, they share."""

from __future__ import annotations

import contextlib
import datetime
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mplang_worker.base.config import Timeouts
from mplang_worker.link.handshake import Handshake
from mplang_worker.tls.credentials import LinkEnd


def preload_tls() -> None:
    """Shake hands with oneself, with keys that nobody uses again."""
    names = "client", "server"
    ends = [Handshake(name, name, Timeouts(), tls=True) for name in names]
    told = [
        LinkEnd(name, name, _certificate(name, end.public_key or ""))
        for name, end in zip(names, ends, strict=True)
    ]
    for end in ends:
        end.introduce(told)
    client = ends[0].context(ssl.PROTOCOL_TLS_CLIENT)
    server = ends[1].context(ssl.PROTOCOL_TLS_SERVER)
    assert client is not None
    assert server is not None
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(back, there, server_hostname="server"),
        server.wrap_bio(there, back, server_side=True),
    )
    for side in (*sides, *sides):
        with contextlib.suppress(ssl.SSLWantReadError):  # until the other side has answered
            side.do_handshake()


def _certificate(name: str, public_key: str) -> str:
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    called = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(called)
        .issuer_name(called)
        .public_key(serialization.load_pem_public_key(public_key.encode()))  # type: ignore[arg-type]
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()
