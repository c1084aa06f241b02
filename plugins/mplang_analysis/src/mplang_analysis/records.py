"""Records of a report: plain data that shows as a table."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

from mplang_analysis.prompt_text import shortened
from mplang_analysis.report import TextTable

T = TypeVar("T")
LONGEST = 30  # characters of a cell; the record has all of it


class Records(tuple[T, ...]):
    """A tuple of instances of one dataclass that shows as a table of its fields.

    Example:
        >>> from mplang_analysis import LinkCost
        >>> Records([LinkCost(0, 1, 2, 80, 0, False)])
          sender  receiver  messages  bytes  unknown  per_iteration
          0       1         2         80     0        False
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def _table(self) -> TextTable:
        if not self:
            return TextTable("", ["no rows"], [])
        heads = getattr(self[0], "HEADS", None)
        if heads is not None:  # as its report shows it
            red = [i for i, each in enumerate(self) if each.alert]  # type: ignore[attr-defined]
            texts = [each.texts() for each in self]  # type: ignore[attr-defined]
            return TextTable("", heads, texts, red)
        names = [each.name for each in fields(self[0]) if each.repr]  # type: ignore[arg-type]
        rows = [[_text(getattr(each, name)) for name in names] for each in self]
        return TextTable("", names, rows)


def _text(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return shortened(text, LONGEST)
