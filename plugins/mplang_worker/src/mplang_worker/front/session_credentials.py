"""Credentials of a worker's sessions: issued, verified, and held against certificates later."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence

from cryptography.x509 import Certificate

from mplang_core import MPLangError
from mplang_worker.base.errors import RequestError
from mplang_worker.front.session import FrontSession
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

    def issue(self, session: FrontSession, role: Role, link: str, key: str | None) -> Credential:
        """Return the credential of the key of a session's process.

        Args:
            session: the session.
            role: which process has it.
            link: name of its end of the links.
            key: its public key in PEM; ``None`` without TLS.

        Raises:
            ConfigError: the certificate of the worker is not valid now.
            AdmissionError: it is no such key.
        """
        gate = self.gate if role == "engine" else ""
        if self._certificates is None or key is None:
            return Credential(link, gate=gate)
        return self._certificates.authority.issue(link, key, session.statement(role), gate)

    def verify(
        self, session: FrontSession, role: Role, link: str, credentials: Sequence[Credential]
    ) -> list[LinkEnd]:
        """Return the ends of the links of all parties' processes of one role.

        Args:
            session: the session.
            role: the role.
            link: name of this party's end.
            credentials: the parties' credentials, by rank.

        Raises:
            AdmissionError: one is refused.
            RequestError: that of this party is another one.
        """
        ends, statement = [], session.statement(role)
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
        native: Sequence[Credential] = (),
    ) -> None:
        """Verify the credentials of all parties, and keep them with their session.

        Where one is refused, the session keeps those that it has.

        Args:
            session: the session.
            credentials: of the engines; see :meth:`verify`.
            native: of the MPC processes, if the session has any.

        Raises:
            AdmissionError: one is refused.
            RequestError: that of this party is another one.
        """
        mpc = session.mpc

        def verify() -> tuple[list[LinkEnd], list[LinkEnd]]:
            engines = self.verify(session, "engine", session.link, credentials)
            return engines, self.verify(session, "mpc", mpc.link, native) if native else []

        ends, mpc_ends = await asyncio.get_running_loop().run_in_executor(None, verify)
        before = session.credentials, session.ends, mpc.credentials, mpc.ends
        session.credentials, session.ends = credentials, ends
        mpc.credentials, mpc.ends = native, mpc_ends
        try:
            verify()  # again, as others may be believed by now
        except BaseException:
            session.credentials, session.ends, mpc.credentials, mpc.ends = before
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
                if session.mpc.credentials:
                    self.verify(session, "mpc", session.mpc.link, session.mpc.credentials)
                if chain:
                    self._certificates.trust.verify(chain)
            except MPLangError as error:
                return f"a certificate is refused: {error}"
        return session.expired(now)
