"""Main module of the process that runs matchers for a party of a simulator."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections import defaultdict
from dataclasses import dataclass
from multiprocessing.connection import Connection

from mplang_core.ext import CommError, Communicator, Failure
from mplang_match.pipe import Message, Pipe, PipeEndedError
from mplang_match.service import MatchRequest, run_matcher

FOREVER = 1e6  # seconds: the party's own communicator has the deadline


class PipeCommunicator(Communicator):
    """Communicator through that of the party.

    Args:
        pipe: to the party.
        rank: of the party.
    """

    def __init__(self, pipe: Pipe, rank: int) -> None:
        self.rank = rank
        self._pipe = pipe
        self._arrived = defaultdict[str, queue.SimpleQueue[bytes | None]](queue.SimpleQueue)

    def send(self, to_rank: int, key: str, data: bytes) -> None:
        """Send a message to the other party."""
        self._pipe.send({"what": "send", "key": key}, data)

    def recv(self, from_rank: int, key: str) -> bytes:
        """Wait for a message of the other party."""
        arrived = self._arrived[key]
        self._pipe.send({"what": "receive", "key": key})
        data = arrived.get()
        del self._arrived[key]
        if data is None:
            raise CommError(f"party {self.rank} gets no message of party {from_rank}")
        return data

    def deliver(self, message: Message, data: bytes) -> None:
        """Take what has arrived at the party, or that nothing will."""
        self._arrived[message["key"]].put(data if message["what"] == "received" else None)

    def open(self, run: str) -> None:
        """Do nothing: the party's communicator has it open."""

    def close(self, run: str) -> None:
        """Do nothing: the party closes it."""

    def abort(self, run: str, reason: str) -> None:
        """Do nothing: the party does, as it is told of the failure."""


@dataclass(slots=True)
class _Party:
    communicator: PipeCommunicator
    folder: str
    timeout: float = FOREVER


def _run(pipe: Pipe, request: MatchRequest, party: _Party, tokens: bytes) -> None:
    try:
        common = run_matcher(request, party, memoryview(tokens))
    except BaseException as error:
        failure = Failure.of(error)
        pipe.send({"what": "failed", "kind": failure.kind, "text": failure.text})
        os._exit(0)
    pipe.send({"what": "done"}, common[0] if common else b"")


def main(number: int) -> None:
    """Run what is asked for, until the party has gone."""
    pipe = Pipe(Connection(number))
    party: _Party | None = None
    while True:
        try:
            message, data = pipe.receive()
        except PipeEndedError:
            os._exit(0)
        if "what" in message and party is not None:
            party.communicator.deliver(message, data)
            continue
        party = _Party(PipeCommunicator(pipe, message.pop("rank")), os.getcwd())
        job = (pipe, MatchRequest(**message), party, data)
        threading.Thread(target=_run, args=job, daemon=True).start()


if __name__ == "__main__":
    main(int(sys.argv[1]))
