"""Requests of a coordinator: decoding and validation against the worker's configuration.

Fields that a newer host adds within one version of the wire are ignored: it gets on without them.
What a worker may not ignore has another version, and is refused by that.
"""

from __future__ import annotations

from typing import Annotated, Protocol, TypeAlias, TypeVar

import msgspec
from mplang_analysis import PUBLIC, differences
from mplang_http.ext import (
    Buffer,
    Input,
    JobRequest,
    Name,
    Public,
    Stored,
    Uploaded,
    Versions,
    misfits,
    own_versions,
    read_plain,
    split_address,
)
from msgspec import Meta

from mplang_core.ext import type_of
from mplang_worker.base.config import WorkerConfig, is_loopback
from mplang_worker.base.errors import RequestError
from mplang_worker.tls.credentials import Credential
from mplang_worker.wire.stored_value import StoredValue, check_name

T = TypeVar("T")
Service: TypeAlias = Annotated[str, Meta(max_length=64)]
Credentials: TypeAlias = Annotated[list[Credential], Meta(min_length=1, max_length=1024)]


class Party(msgspec.Struct, frozen=True):
    """Party of a session: its name, and the address at which the coordinator reaches its worker.

    With TLS a party is who its certificate says, and peers reach it at the address that their own
    configuration has, which may be another one.
    """

    name: Name
    address: Annotated[str, Meta(max_length=300)]


class _Versioned(msgspec.Struct, frozen=True):
    """Versions of a request to open a session, whatever else it has."""

    versions: dict[str, str] = {}
    compatible: dict[str, str] = {}
    pass_versions: dict[str, str] = {}

    def check(self) -> None:
        """Refuse versions that do not fit those of this worker.

        Raises:
            RequestError: they do not.
        """
        here = own_versions()
        there = Versions(self.versions, self.compatible, here.may_differ, self.pass_versions)
        wrong = misfits([there, here])
        if wrong:
            rows = {"coordinator": self.versions, "here": here.there}
            shown = {who: {n: v for n, v in has.items() if n in wrong} for who, has in rows.items()}
            raise RequestError(409, "versions", f"versions differ:\n{differences(shown)}")


class SessionRequest(msgspec.Struct, frozen=True):
    """Request to open a session; JSON.

    Attributes:
        rank: rank of this worker.
        parties: all parties, by rank.
        versions: versions at the coordinator, which have to fit those of this worker.
        compatible: the oldest versions that the coordinator's packages declare to fit.
        pass_versions: the numbers of their passes.
        timeout: seconds that a party waits for a message, up to the worker's limit.
        native: names of the native services that its programs need, each in an MPC process.
    """

    rank: Annotated[int, Meta(ge=0)]
    parties: Annotated[list[Party], Meta(min_length=1, max_length=1024)]
    versions: dict[str, str] = {}
    compatible: dict[str, str] = {}
    pass_versions: dict[str, str] = {}
    timeout: Annotated[float, Meta(gt=0)] | None = None
    native: Annotated[list[Service], Meta(max_length=16)] = []

    @classmethod
    def read(cls, data: Buffer, config: WorkerConfig) -> SessionRequest:
        """Decode and validate a request.

        Args:
            data: the request in JSON.
            config: configuration of the worker.

        Raises:
            RequestError: the request is malformed, for another worker, or names a party
                that is not a peer.
        """
        try:
            request = _decode(_session_decoder, data)
        except RequestError:
            _decode(_versions_decoder, data).check()  # which may be why it is not understood
            raise
        names = [party.name for party in request.parties]
        if len(set(names)) != len(names):
            raise RequestError(422, "parties", "each party needs its own worker")
        if request.rank >= len(names) or names[request.rank] != config.name:
            raise RequestError(421, "another-worker", f"this is worker {config.name}")
        for party in request.parties:
            request._check_peer(party, config)
        _Versioned(request.versions, request.compatible, request.pass_versions).check()
        return request

    def _check_peer(self, party: Party, config: WorkerConfig) -> None:
        if party.name == config.name:
            return
        host, _ = split_address(party.address)
        if config.tls is None and not is_loopback(host):
            raise RequestError(
                403, "no-peer", f"without tls, peers must be on loopback; got {host}"
            )
        if config.peers is None and party.name in config.coordinators:
            raise RequestError(403, "no-peer", f"{party.name} is a coordinator here, and no worker")
        known = None if config.peers is None else config.peers.get(party.name)
        if config.tls is not None:
            if known is None:
                raise RequestError(403, "no-peer", f"{party.name} is not a peer of {config.name}")
        elif config.peers is not None and known != party.address:
            raise RequestError(
                403,
                "no-peer",
                f"{party.name} at {party.address} is not a peer of {config.name}; without tls only "
                "the address identifies it",
            )


class LinkRequest(msgspec.Struct, frozen=True):
    """Request to link a session to its parties, and to start its next generation; JSON.

    Attributes:
        credentials: credentials of all parties, by rank, as they gave them when it was opened.
        native: those of their MPC processes that have links, likewise, by native service.
        generation: number that grows after each failure.
        receipt: what this worker's gate has signed of its log for the coordinator last, if it has.
    """

    credentials: Credentials
    native: Annotated[dict[Service, Credentials], Meta(max_length=16)] = {}
    generation: Annotated[int, Meta(ge=0, le=2**53)] = 0
    receipt: Annotated[str, Meta(max_length=512)] = ""

    @classmethod
    def read(cls, data: Buffer) -> LinkRequest:
        """Decode a request.

        Raises:
            RequestError: the request is malformed.
        """
        return _decode(_link_decoder, data)


class InputValues(Protocol):
    """Values of a session, among which a request's inputs are found."""

    def get(self, name: str) -> StoredValue:
        """Return a value that was put, or a result.

        Raises:
            RequestError: there is no such value.
        """

    def public_input(self, digest: str) -> StoredValue:
        """Return a public input by the SHA-256 of its bytes.

        Raises:
            RequestError: it was not uploaded.
        """


# built at import: msgspec crashes if two threads are the first to use a type
_session_decoder = msgspec.json.Decoder(SessionRequest)
_versions_decoder = msgspec.json.Decoder(_Versioned)
_link_decoder = msgspec.json.Decoder(LinkRequest)
_job_decoder = msgspec.msgpack.Decoder(JobRequest)
_names_decoder = msgspec.json.Decoder(list[str])


def read_job(data: Buffer) -> JobRequest:
    """Decode the request to run a program.

    Raises:
        RequestError: the request is malformed, or a value has the name of a public input.
    """
    request = _decode(_job_decoder, data)
    for each in request.inputs:
        for name in each.names if isinstance(each, Stored) else ():
            check_name(name or "")
    return request


def input_of(request: Input, rank: int, values: InputValues) -> StoredValue | None:
    """Return the value of an input at a party; ``None`` if it has none.

    Args:
        request: the input.
        rank: the party.
        values: values of the session.

    Raises:
        RequestError: there is no value of that name, or it was not uploaded.
        WireError: the value is malformed.
    """
    match request:
        case Public():
            value = read_plain(request.value)
            return StoredValue(type_of(value), value, PUBLIC)
        case Uploaded():
            return values.public_input(request.digest)
        case Stored():
            name = request.names[rank] if rank < len(request.names) else None
            return None if name is None else values.get(name)


def read_names(data: Buffer) -> list[str]:
    """Decode the names of values; JSON.

    Raises:
        RequestError: the list is malformed.
    """
    return _decode(_names_decoder, data)


def _decode(decoder: msgspec.json.Decoder[T] | msgspec.msgpack.Decoder[T], data: Buffer) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        kind = getattr(decoder.type, "__name__", "list")
        raise RequestError(400, "damaged", f"no {kind}: {error}") from None
