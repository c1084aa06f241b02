"""Displays of the core's objects in notebooks, drawn by installed packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

DISPLAYS = "mplang.displays"
"""Group of entry points: by the name of a class, a function of an object that returns HTML."""


class Displayed:
    """Base class of objects that notebooks show by an entry point of the name of their class."""

    __slots__ = ()
    find_display: ClassVar[Callable[[str], Any]] = staticmethod(lambda name: None)

    def _repr_html_(self) -> str | None:
        names = (each.__name__ for each in type(self).__mro__)
        draw = next(filter(None, map(Displayed.find_display, names)), None)
        return None if draw is None else draw(self)
