"""Native service of matching: matchers, in a process that has tokens and no key of rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mplang_core.ext import Answer, Communicator, MPLangError, NativeParty, RunError, StrictModel
from mplang_match.lines import check_text
from mplang_match.matcher import LEFT, MatchLink, find_matcher
from mplang_match.own_log import leave_out_output


class MatchRequest(StrictModel):
    """Request for a matching, as the other side gets it.

    Attributes:
        protocol: name of the matcher.
        key: the key of the op, ``run/position``.
        peer: rank of the other party.
        learns: whether this party gets to know what is in common.
    """

    protocol: str
    key: str
    peer: int
    learns: bool


class Party(Protocol):
    """Party that matches: that of a native service, or of a simulator."""

    @property
    def communicator(self) -> Communicator:
        """The transport to the other party."""

    @property
    def timeout(self) -> float:
        """Seconds that a link waits for a message."""

    @property
    def folder(self) -> str:
        """The folder of this process; empty if it has none."""


class MatchService:
    """Native service of matching for one party.

    Args:
        party: this party.
    """

    def __init__(self, party: NativeParty) -> None:
        self._party = party
        if party.folder:
            leave_out_output()

    def call(
        self, run: str, method: str, args: Mapping[str, Any], buffers: Sequence[memoryview]
    ) -> Answer:
        """Match tokens.

        Args:
            run: the run.
            method: ``match``.
            args: the fields of :class:`MatchRequest`.
            buffers: the tokens, as lines of text.

        Returns:
            The lines in common, or nothing where this party does not learn them.

        Raises:
            MPLangError: the request is wrong, the other party has failed, or the matcher has.
        """
        if method != "match" or len(buffers) != 1:
            raise RunError(
                f"the service of matching matches one set of tokens, got {method!r}", code="R017"
            )
        request = MatchRequest(**args)
        if not request.key.startswith(f"{run}/"):
            raise RunError(
                f"the service of matching got the op {request.key} of another run", code="R017"
            )
        check_text(buffers[0])
        return {}, run_matcher(request, self._party, buffers[0])

    def end_run(self) -> None:
        """End this process if a matching hangs, whose link has failed: another takes its place."""
        if self._party.folder and any(each.name == LEFT for each in threading.enumerate()):
            os._exit(0)


def run_matcher(request: MatchRequest, party: Party, tokens: memoryview) -> Sequence[memoryview]:
    """Run the matcher that is asked for.

    Args:
        request: what it is to do.
        party: this party.
        tokens: the tokens, as lines of text.

    Raises:
        MPLangError: it fails.
    """
    link = MatchLink(party.communicator, request.peer, request.key, party.timeout, party.folder)
    try:
        common = find_matcher(request.protocol).match(link, tokens, learns=request.learns)
    except MPLangError:
        raise
    except Exception as error:
        raise RunError(
            f"the matcher {request.protocol} failed: {type(error).__name__}: {error}", code="R017"
        ) from error
    party.communicator.forget(request.key)
    return () if common is None else (common,)
