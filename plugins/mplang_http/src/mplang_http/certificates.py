"""Certificates of a worker: read again when their files change, and told of before they expire."""

from __future__ import annotations

import asyncio
import datetime
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from cryptography import x509

from mplang_core.ext import ConfigError
from mplang_http.config import TlsFiles, WorkerConfig
from mplang_http.credentials import Authority
from mplang_http.tls import server_context
from mplang_http.trust import Trust, read_certificates

INTERVAL = 1.0  # seconds between two looks at the files
WARN, ALARM = datetime.timedelta(days=30), datetime.timedelta(days=7)  # before it expires
DAY = datetime.timedelta(days=1)
log = logging.getLogger("mplang.http.front")


class Certificates:
    """Certificate and key of a worker, and whom it believes.

    Args:
        name: name of the party.
        files: its files.
        authorities: file of the authority of some names; see :class:`WorkerConfig`.

    Attributes:
        context: TLS context for those who connect; probes need no certificate.
        trust: verifies certificates of others.
        authority: issues and verifies credentials of sessions.
        expires: when the first certificate of its own chain expires.

    Raises:
        ConfigError: a file cannot be used, or the certificate is another's, or not valid now.
    """

    def __init__(self, name: str, files: TlsFiles, authorities: Mapping[str, str]) -> None:
        self._name = name
        self._files = files
        self._authorities = dict(authorities)
        self._seen = self._stamps()
        self._read()

    @classmethod
    def of(cls, config: WorkerConfig) -> Certificates | None:
        """Return those of a configuration; ``None`` without TLS.

        Raises:
            ConfigError: see above.
        """
        if config.tls is None:
            return None
        try:
            return cls(config.name, config.tls, config.authorities)
        except (ConfigError, OSError, ssl.SSLError) as error:
            raise ConfigError(f"WorkerConfig {config.name}: field 'tls': {error}") from None

    def _read(self) -> None:
        """Read all files; nothing changes if one cannot be used."""
        files = self._files
        context = server_context(files, "http/1.1")
        context.verify_mode = ssl.CERT_OPTIONAL  # probes have no certificate
        for file in self._authorities.values():
            context.load_verify_locations(file)
        chain = read_certificates(files.cert)
        names = [
            str(each.value)
            for each in chain[0].subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        ]
        if names != [self._name]:
            raise ConfigError(
                f"{files.cert} is of {', '.join(map(repr, names)) or 'nobody'}, so nobody would "
                f"take this worker for {self._name}"
            )
        now = datetime.datetime.now(datetime.UTC)
        begin = max(each.not_valid_before_utc for each in chain)
        end = min(each.not_valid_after_utc for each in chain)
        if not begin <= now <= end:
            raise ConfigError(f"{files.cert} is valid from {begin} to {end}, and it is {now}")
        trust = Trust(files, self._authorities)
        authority = Authority(files, chain, trust)
        self.context, self.trust, self.authority, self.expires = context, trust, authority, end

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        files = self._files
        every = [files.cert, files.key, files.ca, files.crl, *self._authorities.values()]
        return [_stamp(file) for file in every if file is not None]

    def renew(self) -> bool:
        """Read the files again if they have changed; keep what was read if they cannot be used.

        Returns:
            Whether other certificates are used from now on.
        """
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        self._seen = stamps
        try:
            self._read()
        except (ConfigError, OSError, ssl.SSLError) as error:
            log.error("the certificates changed, and those before are kept: %s", error)
            return False
        log.info("the certificates were read again; this worker's expires on %s", self.expires)
        return True

    async def watch(self, look: Callable[[bool], None]) -> None:
        """Read them again whenever they change, and warn before they expire, until cancelled.

        Args:
            look: called every second, with whether they have changed.
        """
        told: datetime.datetime | None = None
        while True:
            try:
                changed = self.renew()
                now = datetime.datetime.now(datetime.UTC)
                if changed or told is None or now - told >= DAY:
                    told = now
                    self._warn(now)
                look(changed)
            except Exception:  # it goes on with those it has
                log.exception("the certificates cannot be looked at")
            await asyncio.sleep(INTERVAL)

    def _warn(self, now: datetime.datetime) -> None:
        left = self.expires - now
        if left < WARN:
            log.log(
                logging.ERROR if left < ALARM else logging.WARNING,
                "the certificate of this worker expires in %s, on %s; put a new one at %s, which "
                "is read without a restart",
                days(left), self.expires, self._files.cert,
            )  # fmt: skip


def peer_certificates(connection: Any) -> list[x509.Certificate]:
    """Return the certificates that the other side of a TLS connection has sent, its own first.

    Args:
        connection: an :class:`ssl.SSLObject`; Python 3.13 has a public method for it.
    """
    mine = connection.getpeercert(binary_form=True)
    if mine is None:
        return []
    chain = connection._sslobj.get_unverified_chain() or ()
    sent = [ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in chain]
    return [x509.load_der_x509_certificate(each) for each in dict.fromkeys([mine, *sent])]


def days(left: datetime.timedelta) -> str:
    """Return a time in days, or in hours if it is less than one.

    Example:
        >>> days(datetime.timedelta(days=29, hours=5)), days(datetime.timedelta(minutes=90))
        ('29 days', '1 h')
    """
    return f"{left.days} days" if left >= DAY else f"{left // datetime.timedelta(hours=1)} h"


def _stamp(file: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
