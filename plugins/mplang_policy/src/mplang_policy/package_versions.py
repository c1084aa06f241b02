"""Versions of packages that run an approved program, and whether other ones mean the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import importlib_metadata
from packaging.version import InvalidVersion, Version

from mplang_core.ext import COMPATIBLE


@functools.cache
def installed_version(name: str) -> str | None:
    """Return the version of a package that was installed when it was first asked for.

    Example:
        >>> installed_version("no-such-package") is None
        True
    """
    try:
        return importlib_metadata.version(name)
    except importlib_metadata.PackageNotFoundError:
        return None


@functools.cache
def declared_version(name: str) -> str | None:
    """Return the oldest version whose ops mean the same as those of an installed package.

    Packages declare it for parties that upgrade one by one; what declares nothing means the same as
    nothing else.
    """
    declared = [
        _version(each.name)
        for each in importlib_metadata.entry_points(group=COMPATIBLE)
        if each.dist is not None and each.dist.name == name
    ]
    oldest = min((each for each in declared if each is not None), default=None)
    return None if oldest is None else str(oldest)


class Packages(NamedTuple):
    """Packages that are installed at a party.

    Attributes:
        version: returns the version of a package.
        declared: returns the oldest version that means the same.
    """

    version: Callable[[str], str | None] = installed_version
    declared: Callable[[str], str | None] = declared_version

    def mean_the_same(self, name: str, approved: str) -> bool:
        """Return whether a package runs a program as the version does that was approved.

        Args:
            name: the package.
            approved: the version.

        Example:
            >>> here = Packages({"p": "1.3"}.get, {"p": "1.2"}.get)
            >>> [here.mean_the_same("p", each) for each in ("1.3", "1.2.5", "1.1", "1.4")]
            [True, True, False, False]
        """
        here = self.version(name)
        if here == approved:
            return True
        before, now = _version(approved), _version(here or "")
        since = _version(self.declared(name) or "")
        if before is None or now is None or since is None:
            return False
        return since <= before <= now  # what is older than the approved one does not know it


INSTALLED = Packages()


def _version(text: str) -> Version | None:
    try:
        return Version(text) if len(text) <= 100 else None
    except InvalidVersion:
        return None
