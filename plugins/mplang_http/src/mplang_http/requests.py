"""What a coordinator sends: decoded strictly, held against the worker's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from mplang_http.config import WorkerConfig
from mplang_http.facts import TOGETHER, versions
from mplang_http.refusal import Refusal
from mplang_http.values import Buffer, split_frame

if TYPE_CHECKING:
    from mplang_http.session import Session

__all__ = ["Given", "JobRequest", "Party", "SessionRequest"]

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
T = TypeVar("T")


class Party(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A party of a session: its name, and where its worker is."""

    name: Name
    address: Annotated[str, Meta(max_length=300)]


class SessionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session, or a new generation of it; JSON.

    Attributes:
        rank: which of the parties this worker is.
        parties: all of them, by rank.
        generation: grows after each failure.
        versions: the coordinator's, compared with this worker's.
        timeout: how many seconds a party waits for a message; the worker's limit counts too.
    """

    rank: Annotated[int, Meta(ge=0)]
    parties: Annotated[list[Party], Meta(min_length=1, max_length=1024)]
    generation: Annotated[int, Meta(ge=0, le=2**53)] = 0
    versions: dict[str, str] = {}
    timeout: Annotated[float, Meta(gt=0)] | None = None

    @classmethod
    def read(cls, data: Buffer, config: WorkerConfig) -> SessionRequest:
        """Read a request, and check it.

        Raises:
            Refusal: it is damaged, for another worker, or names one that is no peer.
        """
        request = _decode(_session_decoder, data)
        names = [party.name for party in request.parties]
        if len(set(names)) != len(names):
            raise Refusal(422, "parties", "each party has a worker of its own")
        if request.rank >= len(names) or names[request.rank] != config.name:
            raise Refusal(421, "another-worker", f"this is worker {config.name}")
        for party in request.parties:
            request._check_peer(party, config)
        request._check_versions()
        return request

    def _check_peer(self, party: Party, config: WorkerConfig) -> None:
        if party.name == config.name or config.peers is None:
            return
        if config.peers.get(party.name) != party.address:
            raise Refusal(
                403, "no-peer", f"{party.name} at {party.address} is no peer of {config.name}"
            )

    def _check_versions(self) -> None:
        mine = versions()
        differing = [
            f"{name}: {self.versions[name]} at the coordinator, {mine[name]} here"
            for name in TOGETHER
            if name in mine and self.versions.get(name, mine[name]) != mine[name]
        ]
        if differing:
            raise Refusal(409, "versions", "versions differ\n  " + "\n  ".join(differing))


class Given(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An input of a job: the name of a value here, a small value itself, or nothing."""

    name: str | None = None
    value: bytes | None = None

    def read(self, session: Session) -> Any:
        """Return the value.

        Raises:
            Refusal: there is none of that name.
            WireError: it is damaged.
        """
        if self.name is not None:
            return session.value(self.name).value
        return None if self.value is None else split_frame(self.value).value()


class JobRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run of a program; MessagePack.

    Attributes:
        run: its name, which begins with that of the session.
        program: the SHA-256 of the program's bytes.
        generation: that of the session.
        inputs: the inputs.
        release: names of values that are not needed any more.
    """

    run: Name
    program: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
    generation: int
    inputs: list[Given]
    release: list[str] = []

    @classmethod
    def read(cls, data: Buffer) -> JobRequest:
        """Read a request.

        Raises:
            Refusal: it is damaged.
        """
        return _decode(_job_decoder, data)


# made at import: msgspec crashes where two threads are the first to read a type
_session_decoder = msgspec.json.Decoder(SessionRequest)
_job_decoder = msgspec.msgpack.Decoder(JobRequest)


def _decode(decoder: msgspec.json.Decoder[T] | msgspec.msgpack.Decoder[T], data: Buffer) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(400, "damaged", f"no {decoder.type.__name__}: {error}") from None
