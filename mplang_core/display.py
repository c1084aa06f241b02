"""Displays of the core's objects in notebooks, drawn by installed packages."""

from __future__ import annotations

from typing import Any


class Displayed:
    """Base class of objects that notebooks show as HTML.

    It is drawn by an entry point of the group ``mplang.displays`` that has the name of the class
    or of a base class: a function of the object, which returns the HTML.
    """

    __slots__ = ()
    find_display: Any = staticmethod(lambda name: None)

    def _repr_html_(self) -> str | None:
        found = (Displayed.find_display(each.__name__) for each in type(self).__mro__)
        return next((draw(self) for draw in found if draw is not None), None)
