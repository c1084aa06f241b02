"""TLS 1.3 with mutual authentication."""

from __future__ import annotations

import os
import ssl

from mplang_core.ext import ConfigError
from mplang_http.tls.files import TlsFiles


def server_context(files: TlsFiles, *protocols: str) -> ssl.SSLContext:
    """Return a server context that requires client certificates.

    Args:
        files: certificate, key and authority.
        *protocols: ALPN protocols.

    Raises:
        ConfigError: a file cannot be read.
    """
    return _context(ssl.PROTOCOL_TLS_SERVER, files, protocols)


def client_context(files: TlsFiles, *protocols: str) -> ssl.SSLContext:
    """Return a client context that checks the server's name, and the revocation lists if any.

    Args:
        files: certificate, key and authority.
        *protocols: ALPN protocols.

    Raises:
        ConfigError: a file cannot be read.
    """
    context = _context(ssl.PROTOCOL_TLS_CLIENT, files, protocols)
    if files.crl is not None:
        try:
            context.load_verify_locations(files.crl)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"cannot use the revocation lists {files.crl}: {error}", code="C004"
            ) from None
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
    return context


def check_key(file: str) -> None:
    """Check that a private key, if it is there, is its owner's alone.

    Raises:
        ConfigError: others may read it.
    """
    try:
        mode = os.stat(file).st_mode & 0o777
    except OSError:  # who loads it tells
        return
    if mode & 0o077:
        raise ConfigError(
            f"the key {file} may be read or written by others (mode {mode:o}); chmod 600 {file}",
            code="C004",
        )


def _context(role: int, files: TlsFiles, protocols: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(role)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    check_key(files.key)
    try:
        context.load_cert_chain(files.cert, files.key)
        context.load_verify_locations(files.ca)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"cannot use the certificates {files.cert}, {files.key}, {files.ca}: {error}",
            code="C004",
        ) from None
    if role == ssl.PROTOCOL_TLS_SERVER:
        # a ticket would make a connection readable, which a client takes for the response
        context.num_tickets = 0
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context
