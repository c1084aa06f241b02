"""What the engine and the MPC process of a session are started with."""

from __future__ import annotations

from typing import Any

import msgspec


class EngineArgument(msgspec.Struct, frozen=True):
    """What a process of a session is started with.

    Attributes:
        config: the part of the worker's configuration that engines know.
        coordinator: name of the coordinator.
        session: name of the session.
        rank: rank of this party.
        parties: names of the parties, by rank.
        timeout: seconds that a party waits for a message.
        link: name of its end of the links.
        tls: whether links are encrypted.
        cores: the cores that it may use; all if there are none.
        gated: whether the front is asked before a run begins; an engine's alone.
    """

    config: dict[str, Any]
    coordinator: str
    session: str
    rank: int
    parties: list[str]
    timeout: float
    link: str
    tls: bool
    cores: list[int] = []
    gated: bool = False
