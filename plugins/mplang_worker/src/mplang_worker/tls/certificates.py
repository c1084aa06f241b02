"""Certificates of a worker: read again when their files change, and told of before they expire."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from mplang_http.ext import DAY, WARN, TlsFiles, days, server_context

from mplang_core.ext import AdmissionError, ConfigError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.tls.credentials import Authority
from mplang_worker.tls.trust import Trust, parse_chain, read_certificates

INTERVAL = 1.0  # seconds between two looks at the files
RETRY = 10.0  # seconds until files that could not be used are read again
ALARM = datetime.timedelta(days=7)  # before it expires
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
        authority: issues credentials of sessions.
        expires: when the first certificate of its own chain expires.
        chain: that chain.

    Raises:
        ConfigError: a file cannot be used, or the certificate is another's, or not valid now.
    """

    context: ssl.SSLContext
    authority: Authority
    expires: datetime.datetime
    chain: list[x509.Certificate]

    def __init__(self, name: str, files: TlsFiles, authorities: Mapping[str, str]) -> None:
        self._name = name
        self._files = files
        self._authorities = dict(authorities)
        self._stamps = self._look()
        self._failure = ""  # why the files are not used
        self._retry = 0.0  # when they are read again in any case
        self._lock = threading.Lock()  # of what others read: files are read without it
        self.trust = Trust(files, authorities)
        self._use(_OwnCertificate.read(name, files, self._authorities))

    def _use(self, own: Certificates | _OwnCertificate) -> None:
        self.context, self.authority = own.context, own.authority
        self.expires, self.chain = own.expires, own.chain

    def prepare(self, authorities: Mapping[str, str]) -> Callable[[], None]:
        """Return what makes other authorities count.

        Args:
            authorities: file of the authority of some names; see :class:`WorkerConfig`.

        Raises:
            ConfigError: one cannot be used.
        """
        if authorities == self._authorities:
            return lambda: None
        made = Certificates(self._name, self._files, authorities)

        def commit() -> None:
            with self._lock:
                self._authorities = made._authorities
                self._stamps = []  # so that all that is open is looked at again
                self.trust = made.trust
                self._use(made)

        return commit

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
            raise ConfigError(
                f"WorkerConfig {config.name}: the certificates of 'tls' and 'authorities': {error}",
                code="C004",
            ) from None

    def _look(self) -> list[tuple[int, ...] | None]:
        files = self._files
        every = [files.cert, files.key, files.ca, files.crl, *self._authorities.values()]
        return [_stamp(file) for file in every if file is not None]

    def digests(self) -> dict[str, str]:
        """Return SHA-256 of the files of certificates, without the key, by what they are."""
        files = {"cert": self._files.cert, "ca": self._files.ca, "crl": self._files.crl}
        named = {**files, **self._authorities}
        return {name: _digest(file) for name, file in named.items() if file is not None}

    def renew(self) -> bool:
        """Read the files again if they have changed; keep what was read if they cannot be used.

        Whom this worker believes does not depend on its own certificate and key: a certificate
        that is revoked is so in any case.

        Returns:
            Whether others are believed from now on, or may be.
        """
        stamps, now = self._look(), time.monotonic()
        changed = stamps != self._stamps
        if not changed and (not self._failure or now < self._retry):
            return False
        self._stamps, self._retry, failure = stamps, now + RETRY, ""
        authorities, trust, own = self._authorities, self.trust, None
        try:
            trust = Trust(self._files, authorities)
        except ConfigError as error:
            failure = str(error)
        try:
            own = _OwnCertificate.read(self._name, self._files, authorities)
        except (ConfigError, OSError, ssl.SSLError) as error:
            failure = failure or str(error)
        with self._lock:
            if authorities is not self._authorities:  # others count since a reload meanwhile
                self._stamps = []  # so that the files are read again
                return True
            self.trust = trust
            if own is not None:
                self._use(own)
        if failure and failure != self._failure:
            log.error("the certificates changed, and those before are kept: %s", failure)
        elif not failure:
            log.info("the certificates were read again; this worker's expires on %s", self.expires)
        changed, self._failure = changed or failure != self._failure, failure
        return changed

    async def watch(self, look: Callable[[bool], None]) -> None:
        """Read them again whenever they change, and warn before they expire, until cancelled.

        Args:
            look: called every second, with whether they have changed.
        """
        loop = asyncio.get_running_loop()
        told: datetime.datetime | None = None
        expired: Trust | None = None  # whose revocation lists have expired
        again = False
        while True:
            try:
                again |= await loop.run_in_executor(None, self.renew)  # a list may be long
                now = datetime.datetime.now(datetime.UTC)
                update = self.trust.next_update
                if update is not None and update < now and expired is not self.trust:
                    expired, again = self.trust, True
                if again or told is None or abs(now - told) >= DAY:
                    told = now
                    self._warn(now)
                look(again)
                again = False
            except Exception:  # it goes on with those it has
                log.exception("the certificates cannot be looked at")
            await asyncio.sleep(INTERVAL)

    def _warn(self, now: datetime.datetime) -> None:
        if self._failure:
            log.error("the certificates on disk are not used: %s", self._failure)
        left = self.expires - now
        if left < WARN:
            log.log(
                logging.ERROR if left < ALARM else logging.WARNING,
                "the certificate of this worker expires in %s, on %s; put a new one at %s, which "
                "is read without a restart",
                days(left), self.expires, self._files.cert,
            )  # fmt: skip
        update = self.trust.next_update
        if update is not None and update - now < DAY:
            log.error(
                "a revocation list in %s expires on %s, and then all that its authority has "
                "issued is refused",
                self._files.crl, update,
            )  # fmt: skip
        try:
            self.trust.verify(self.chain)
        except AdmissionError as error:
            log.warning("this worker would not believe its own certificate: %s", error)


class _OwnCertificate(NamedTuple):
    """Certificate and key of a worker, as they were read.

    See :class:`Certificates` for the fields.
    """

    context: ssl.SSLContext
    authority: Authority
    expires: datetime.datetime
    chain: list[x509.Certificate]

    @classmethod
    def read(cls, name: str, files: TlsFiles, authorities: Mapping[str, str]) -> _OwnCertificate:
        """Read certificate and key.

        Args:
            name: name of the party.
            files: its files.
            authorities: file of the authority of some names.

        Raises:
            ConfigError, OSError, SSLError: one cannot be used.
        """
        chain = read_certificates(files.cert)
        names = [
            str(each.value)
            for each in chain[0].subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        ]
        if names != [name]:
            raise ConfigError(
                f"{files.cert} is of {', '.join(map(repr, names)) or 'nobody'}, so peers would not "
                f"accept this worker as {name}",
                code="C004",
            )
        now = datetime.datetime.now(datetime.UTC)
        begin = max(each.not_valid_before_utc for each in chain)
        end = min(each.not_valid_after_utc for each in chain)
        if not begin <= now <= end:
            raise ConfigError(
                f"{files.cert} is valid from {begin} to {end}, and it is {now}", code="C004"
            )
        context = server_context(files, "http/1.1")
        context.verify_mode = ssl.CERT_OPTIONAL  # probes have no certificate
        for file in authorities.values():
            context.load_verify_locations(file)
        return cls(context, Authority(files, chain), end, chain)


def peer_certificates(connection: Any) -> list[x509.Certificate]:
    """Return the certificates that the other side of a TLS connection has sent, its own first.

    Args:
        connection: an :class:`ssl.SSLObject`; Python 3.13 has a public method for it.

    Raises:
        AdmissionError: one is malformed.
    """
    mine = connection.getpeercert(binary_form=True)
    if mine is None:
        return []
    sent = connection._sslobj.get_unverified_chain() or ()
    return parse_chain([mine, *(ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in sent)])


def _digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""


def _stamp(file: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode
