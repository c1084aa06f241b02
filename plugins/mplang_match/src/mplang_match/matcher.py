"""Interface of matchers: protocols that tell which tokens two parties have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mplang_core.ext import Communicator, RunError, plugin_manager

MATCHERS = "mplang.matchers"
"""Entry points that name the :class:`Matcher` of a package, by the protocol's name."""

LEFT = "mplang-match-left"
"""Name of a thread that a matcher leaves, of which it waits for nothing any more."""


@dataclass(frozen=True, slots=True)
class MatchLink:
    """Link between the matchers of two parties, for one matching.

    Attributes:
        communicator: to the processes of the other parties.
        peer: rank of the other party.
        key: prefix of the keys of its messages, which no other matching has.
        timeout: seconds that it waits for a message.
        folder: the folder of this process, in which all files of a matching are, and nothing else
            is; empty for that of temporary files.
    """

    communicator: Communicator
    peer: int
    key: str
    timeout: float
    folder: str = ""

    @property
    def is_first(self) -> bool:
        """Whether this party has the lower rank of both."""
        return self.communicator.rank < self.peer


@runtime_checkable
class Matcher(Protocol):
    """Protocol of two parties, secure against one that follows it.

    It runs in a process of its own, which has no key of rows and no file but those of its folder
    in memory, that is gone afterwards.
    """

    def match(self, link: MatchLink, tokens: memoryview, *, learns: bool) -> memoryview | None:
        """Match this party's tokens with those of the other one.

        Args:
            link: to the other party, which does the same.
            tokens: lines of 32 hexadecimal digits, all different, in ascending order.
            learns: whether this party gets to know what is in common; one of both does. The other
                one must get the same number and sizes of messages, whatever is.

        Returns:
            The lines in common, in any order; ``None`` unless it learns.

        Raises:
            MPLangError: the other one has failed.
        """


def find_matcher(name: str) -> Matcher:
    """Return the matcher of a name.

    Raises:
        RunError: there is none here.
        PluginLoadError: its package did not load.
    """
    matcher = plugin_manager.entry(MATCHERS, name)
    if not isinstance(matcher, Matcher):
        there = ", ".join(names()) or "none"
        raise RunError(f"no matcher {name!r} is installed here; there are {there}", code="P002")
    return matcher


def names() -> Sequence[str]:
    """Return the names of the matchers that are installed; imports none."""
    return sorted(plugin_manager.names(MATCHERS))
