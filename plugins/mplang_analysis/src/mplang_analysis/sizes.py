"""Sizes of messages that their receivers cannot read, and whose types do not tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mplang_analysis.event import Event
from mplang_analysis.labels import Label
from mplang_analysis.type_size import bytes_of
from mplang_analysis.words import What


def with_sizes(events: Iterable[Event], read: Callable[[Event], Label | None]) -> Iterator[Event]:
    """Yield events, and after a message what its size tells its receiver.

    The type of a tensor tells the bytes of a message, so they tell nothing; that of a table does
    not. Who can read the table learns no more by its size.

    Args:
        events: of a whole program.
        read: returns what the receiver of an event reads; ``None`` if it cannot.
    """
    for event in events:
        yield event
        if (
            not event.sent
            or not isinstance(event.receiver, int)
            or bytes_of(event.type) is not None
        ):
            continue
        known = read(event)
        told = Label(event.label.sources - (frozenset() if known is None else known.sources))
        if told.news_to(event.receiver):
            yield event._replace(what=What.SIZE, label=told, sent=False)
