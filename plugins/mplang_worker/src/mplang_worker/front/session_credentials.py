"""Credentials of a worker's sessions: issued, verified, and held against certificates later."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence

from cryptography.x509 import Certificate

from mplang_core import MPLangError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.front.section_reload import nothing
from mplang_worker.front.session import FrontSession, SessionMpc
from mplang_worker.tls.certificates import Certificates
from mplang_worker.tls.credentials import Credential, LinkEnd, Role, verify_credential


class SessionCredentials:
    """Credentials of the sessions of a worker. No other part of the front signs.

    Args:
        certificates: certificates of the worker; ``None`` without TLS.

    Attributes:
        gate: public key of the worker's gate, in hex; empty without one.
    """

    def __init__(self, certificates: Certificates | None) -> None:
        self.gate = ""
        self._certificates = certificates
        self._met: dict[str, tuple[Sequence[Certificate], float]] = {}  # by coordinator

    @property
    def expires(self) -> str | None:
        """When the certificate of the worker expires, as ISO 8601; ``None`` without TLS."""
        return None if self._certificates is None else self._certificates.expires.isoformat()

    def prepare(self, after: WorkerConfig) -> Callable[[], None]:
        """Return what makes other authorities count; see `LiveConfig`."""
        mine = self._certificates
        return nothing if mine is None else mine.prepare(after.authorities)

    def issue(
        self, session: FrontSession, role: Role, link: str, key: str | None, service: str = ""
    ) -> Credential:
        """Return the credential of the key of a session's process.

        Args:
            session: the session.
            role: which process has it.
            link: name of its end of the links.
            key: its public key in PEM; ``None`` without TLS.
            service: of an MPC process its native service.

        Raises:
            ConfigError: the certificate of the worker is not valid now.
            AdmissionError: it is not such a key.
        """
        gate = self.gate if role == "engine" else ""
        if self._certificates is None or key is None:
            return Credential(link, gate=gate)
        statement = session.statement(role, service)
        return self._certificates.authority.issue(link, key, statement, gate)

    def verify(
        self,
        session: FrontSession,
        role: Role,
        link: str,
        credentials: Sequence[Credential],
        service: str = "",
    ) -> list[LinkEnd]:
        """Return the ends of the links of all parties' processes of one role.

        Args:
            session: the session.
            role: the role.
            link: name of this party's end.
            credentials: the parties' credentials, by rank.
            service: of MPC processes their native service.

        Raises:
            AdmissionError: one is refused.
            RequestError: that of this party is another one.
        """
        ends, statement = [], session.statement(role, service)
        for name, credential in zip(session.parties, credentials, strict=True):
            if self._certificates is None:
                ends.append(LinkEnd(name, credential.link, gate=credential.gate))
            else:
                trust = self._certificates.trust
                ends.append(verify_credential(trust, name, credential, statement))
        if ends[session.request.rank].link != link:
            raise RequestError(422, "parties", "the credential of this party is another one")
        return ends

    async def take(
        self,
        session: FrontSession,
        credentials: Sequence[Credential],
        native: Mapping[str, Sequence[Credential]] = {},
    ) -> None:
        """Verify the credentials of all parties, and keep them with their session.

        Where one is refused, the session keeps those that it has.

        Args:
            session: the session.
            credentials: of the engines; see :meth:`verify`.
            native: of the MPC processes that have links, by native service.

        Raises:
            AdmissionError: one is refused.
            RequestError: that of this party is another one.
        """
        apart = [(session.natives[service], theirs) for service, theirs in native.items()]

        def verify() -> tuple[list[LinkEnd], list[list[LinkEnd]]]:
            engines = self.verify(session, "engine", session.link, credentials)
            return engines, [
                self.verify(session, "mpc", mpc.link, theirs, mpc.service) for mpc, theirs in apart
            ]

        ends, ends_apart = await asyncio.get_running_loop().run_in_executor(None, verify)
        processes: list[FrontSession | SessionMpc] = [session, *(mpc for mpc, _ in apart)]
        before = [(each.credentials, each.ends) for each in processes]
        session.credentials, session.ends = credentials, ends
        for (mpc, theirs), its_ends in zip(apart, ends_apart, strict=True):
            mpc.credentials, mpc.ends = theirs, its_ends
        try:
            verify()  # again, as others may be believed by now
        except BaseException:
            for each, kept in zip(processes, before, strict=True):
                each.credentials, each.ends = kept
            raise

    def met(self, coordinator: str, chain: Sequence[Certificate], expires: float) -> None:
        """Record the certificate that a coordinator has connected with last.

        Args:
            coordinator: its name.
            chain: the certificate, and intermediates.
            expires: when the first of the chain does, in seconds since 1970.
        """
        self._met[coordinator] = chain, expires

    def refusal(self, session: FrontSession, *, again: bool) -> str:
        """Return why a session may not go on; empty if it may.

        Args:
            session: the session.
            again: whether to verify its certificates again, as others are believed now.
        """
        now, coordinator = time.time(), session.key[0]
        chain, expires = self._met.get(coordinator, ((), math.inf))
        if expires < now:
            return f"the certificate of its coordinator {coordinator} has expired"
        if again and self._certificates is not None:
            try:
                if session.credentials:
                    self.verify(session, "engine", session.link, session.credentials)
                for mpc in session.natives.values():
                    if mpc.credentials:
                        self.verify(session, "mpc", mpc.link, mpc.credentials, mpc.service)
                if chain:
                    self._certificates.trust.verify(chain)
            except MPLangError as error:
                return f"a certificate is refused: {error}"
        return session.expired(now)
