"""Records of a report: plain data that shows as a table."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from mplang_analysis.rows import Rows

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
        return repr(self._rows())

    def _repr_html_(self) -> str:
        return self._rows()._repr_html_()

    def _rows(self) -> Rows:
        names = [each.name for each in _fields(self[0])] if self else []
        return Rows({name: _short(getattr(each, name)) for name in names} for each in self)


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _fields(record: Any) -> list[Any]:
    return [each for each in fields(record) if each.repr]
