"""Protocols of retention: sections whose data expires by a rule of the owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

Note: TypeAlias = Callable[[Mapping[str, object]], None]
"""Records what expires, with ``what``, ``rule`` and ``count``, before it is deleted; raises if it
cannot be recorded.
"""


class Expiring(NamedTuple):
    """Items that will expire.

    Attributes:
        rule: name of the rule, as :meth:`RetentionSection.retention` returns it.
        what: what it is, in words.
        time: when, in seconds since 1970.
    """

    rule: str
    what: str
    time: float


@runtime_checkable
class Retaining(Protocol):
    """Provider or gate that deletes what has expired."""

    def expire(self, now: float, note: Note) -> None:
        """Delete what has expired; called in a thread when the worker starts, and every hour.

        A process that ends between record and deletion leaves the rest to the next call.

        Args:
            now: the time, in seconds since 1970.
            note: records what expires. The same as the last time is not recorded again.

        Raises:
            Exception: something cannot be deleted or recorded; it is tried again later.
        """


@runtime_checkable
class RetentionSection(Protocol):
    """Section that tells its rules, and what will expire by them, without its worker."""

    def retention(self, fields: Mapping[str, object]) -> Mapping[str, str]:
        """Return the rules in force: by the name of each how long it keeps something.

        Args:
            fields: the section, as :meth:`mplang_worker.ext.Section.read` returns it.
        """

    def expiring(self, fields: Mapping[str, object]) -> Iterable[tuple[str, str, float]]:
        """Yield what will expire, as an :class:`Expiring`; changes nothing.

        Args:
            fields: the section, as :meth:`mplang_worker.ext.Section.read` returns it.
        """
