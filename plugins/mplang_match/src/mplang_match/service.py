"""Native service of matching: matchers, in a process that has tokens and no key of rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.ext import Answer, MPLangError, NativeParty, RunError, StrictModel
from mplang_match.matcher import LEFT, Link, find_matcher


class Asked(StrictModel):
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


class MatchService:
    """Native service of matching for one party.

    Args:
        party: this party.
    """

    def __init__(self, party: NativeParty) -> None:
        self._party = party

    def call(
        self, run: str, method: str, args: Mapping[str, Any], buffers: Sequence[memoryview]
    ) -> Answer:
        """Match tokens.

        Args:
            run: the run.
            method: ``match``.
            args: the fields of :class:`Asked`.
            buffers: the tokens, as lines of text.

        Returns:
            The lines in common, or nothing where this party does not learn them.

        Raises:
            MPLangError: the request is wrong, the other party has failed, or the matcher has.
        """
        if method != "match" or len(buffers) != 1:
            raise RunError(f"the service of matching matches one set of tokens, got {method!r}")
        asked = Asked(**args)
        if not asked.key.startswith(f"{run}/"):
            raise RunError(f"the service of matching got the op {asked.key} of another run")
        return {}, run_matcher(asked, self._party, buffers[0])

    def end_run(self) -> None:
        """End this process if a matching hangs, whose link has failed: another takes its place."""
        if any(each.name == LEFT for each in threading.enumerate()):
            os._exit(0)


def run_matcher(asked: Asked, party: Any, tokens: memoryview) -> Sequence[memoryview]:
    """Run the matcher that is asked for, in the working directory of this process.

    Args:
        asked: the request.
        party: has ``communicator`` and ``timeout``.
        tokens: the tokens, as lines of text.

    Raises:
        MPLangError: it fails.
    """
    link = Link(party.communicator, asked.peer, asked.key, party.timeout)
    try:
        found = find_matcher(asked.protocol).match(link, tokens, learns=asked.learns)
    except MPLangError:
        raise
    except Exception as error:
        raise RunError(
            f"the matcher {asked.protocol} failed: {type(error).__name__}: {error}"
        ) from error
    party.communicator.forget(asked.key)
    return () if found is None else (found,)
