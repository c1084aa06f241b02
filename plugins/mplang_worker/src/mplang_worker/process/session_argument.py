"""Start arguments of the processes of a session."""

from __future__ import annotations

import msgspec


class SessionArgument(msgspec.Struct, frozen=True, kw_only=True):
    """Start argument of each process of a session, and the only one of a checker.

    Attributes:
        config: the part of the worker's configuration that engines know, in JSON.
        coordinator: name of the coordinator.
        session: name of the session.
        rank: rank of this party.
        parties: names of the parties, by rank.
        cores: the cores that it may use; all if there are none.
    """

    config: bytes
    coordinator: str
    session: str
    rank: int
    parties: list[str]
    cores: list[int] = []


class EngineArgument(SessionArgument, frozen=True, kw_only=True):
    """Start argument of a process with links: an engine, or an MPC process.

    Attributes:
        timeout: seconds that a party waits for a message.
        link: name of its end of the links.
        tls: whether links are encrypted.
        service: name of the native service that it runs; an MPC process's alone.
        folder: path of the folder that it may make for itself, if the service needs one; likewise.
        gated: whether the front is asked before a run begins; an engine's alone.
        sections: names of the sections of the configuration that it may ask about; likewise.
    """

    timeout: float
    link: str
    tls: bool
    service: str = ""
    folder: str = ""
    gated: bool = False
    sections: list[str] = []
