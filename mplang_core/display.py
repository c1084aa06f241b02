"""Displays of the core's objects in notebooks, drawn by installed packages."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import ClassVar, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


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


class ShownFunction(Generic[P, R]):
    """Function that shows itself by a text, and has no address.

    Args:
        fn: the function.
        text: what stands for it at a prompt.
    """

    def __init__(self, fn: Callable[P, R], text: str) -> None:
        functools.update_wrapper(self, fn)
        self._fn, self._text = fn, text

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self._fn(*args, **kwargs)

    def __get__(self, owner: object, _: object = None) -> object:
        """Return the function as a method of its owner, as functions do."""
        return self if owner is None else types.MethodType(self, owner)

    def __repr__(self) -> str:
        return self._text
