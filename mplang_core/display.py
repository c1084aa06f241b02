"""Displays of the core's objects in notebooks, drawn by installed packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class Displayed:
    """Base class of objects that notebooks show as HTML.

    It is drawn by an entry point of the group ``mplang.displays`` that has the name of the class
    or of a base class: a function of the object, which returns the HTML.
    """

    __slots__ = ()
    display_of: ClassVar[Callable[[str], Callable[..., str] | None]] = staticmethod(lambda _: None)

    def _repr_html_(self) -> str | None:
        draws = (Displayed.display_of(each.__name__) for each in type(self).__mro__)
        return next((draw(self) for draw in draws if draw is not None), None)
