"""Scope of the taint analysis: where its walk through a program is."""

from __future__ import annotations

from typing import NamedTuple

from mplang_analysis.labels import PUBLIC, Label
from mplang_core import Mask
from mplang_core.ext import Location, Operation


class Scope(NamedTuple):
    """Position of the walk.

    Attributes:
        parties: who runs the op.
        control: under whose influence.
        location: the user's line.
        when: how often, unless it is once.
        path: the op's position: indices of ops, and names of their regions.
    """

    parties: Mask
    control: Label = PUBLIC
    location: Location | None = None
    when: tuple[str, ...] = ()
    path: str = ""

    def at(self, op: Operation, index: int) -> Scope:
        """Return the scope of an op."""
        line = op.location or self.location  # once per op, so without the slower replace
        return Scope(self.parties, self.control, line, self.when, f"{self.path}/{index}")

    def within(self, region: str) -> Scope:
        """Return the scope of a region of the op."""
        return self._replace(path=f"{self.path}/{region}")

    def among(self, parties: Mask) -> Scope:
        """Return the scope of some parties."""
        return self._replace(parties=parties)

    def under(self, control: Label, when: str) -> Scope:
        """Return the scope under a further influence, and so often."""
        scopes = self.when if when in self.when else (*self.when, when)
        return self._replace(control=self.control | control.data(), when=scopes)
