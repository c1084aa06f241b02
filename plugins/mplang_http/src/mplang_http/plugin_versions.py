"""Versions of the installed plugins: which fit together, and the restriction to some of them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from importlib_metadata import entry_points, requires

from mplang_core.ext import COMPATIBLE, PluginLoadError, PluginVersionError, plugin_manager

USED = ("mplang.frontends", "mplang.kernels", "mplang.passes")
"""Groups of entry points that programs use."""

IMPORTED = (*USED, "mplang.sources", "mplang.admission")
"""Groups that a worker imports; those that are its owner's alone need not be alike."""

MAX_VERSION = 100  # characters


def installed(groups: Collection[str] = USED) -> dict[str, str]:
    """Return the versions of the packages whose plugins programs use; import nothing.

    Args:
        groups: the groups of entry points that count.
    """
    records = plugin_manager.records()
    used = [each for each in records if each.group in groups and each.status != "disabled"]
    return {record.distribution: record.version for record in used}


def compatible() -> dict[str, str]:
    """Return the oldest versions that parties may have beside those here, by package."""
    found = entry_points(group=COMPATIBLE)
    return {each.dist.name: each.name for each in found if each.dist is not None}


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions that a party has.

    Attributes:
        there: the version of each package, and what else has to be alike.
        since: the oldest version that a package declares to fit, by package.
    """

    there: Mapping[str, str]
    since: Mapping[str, str]


def misfits(parties: Collection[Versions]) -> set[str]:
    """Return the names of what parties have in versions that do not fit together.

    What a party does not have counts for nothing. Of two versions the newer one tells whether the
    older one fits; what is no version has to be equal.

    Example:
        >>> old, new = Versions({"p": "1.2.0"}, {}), Versions({"p": "1.3.0"}, {"p": "1.2.0"})
        >>> misfits([old, new]), misfits([old, Versions({"p": "1.3.0"}, {})])
        (set(), {'p'})
    """
    names = set[str]().union(*(party.there for party in parties))
    return {name for name in names if not _fit(name, [p for p in parties if name in p.there])}


def _fit(name: str, parties: Sequence[Versions]) -> bool:
    found = {(party.there[name], party.since.get(name, "")) for party in parties}
    return len({version for version, _ in found}) == 1 or all(
        _fits_beside(*one, *other) for one in found for other in found
    )


def _fits_beside(one: str, since_one: str, other: str, since_other: str) -> bool:
    """Tell whether the newer one of two versions names the older one, or one before it."""
    from packaging.version import InvalidVersion, Version  # slow to import

    if one == other:
        return True
    if max(len(text) for text in (one, other, since_one, since_other)) > MAX_VERSION:
        return False
    try:
        older, newer = sorted([(Version(one), since_one), (Version(other), since_other)])
        return Version(newer[1]) <= older[0]
    except InvalidVersion:
        return False


def check(wanted: Mapping[str, str]) -> None:
    """Check that plugins are installed in some versions; import nothing.

    Args:
        wanted: version by package.

    Raises:
        PluginLoadError: one is not installed, or needs another plugin that is not wanted.
        PluginVersionError: one is installed in another version.
    """
    found = installed(IMPORTED)
    for package, needed in wanted.items():
        if package not in found:
            known = ", ".join(f"{name} {found[name]}" for name in sorted(found))
            raise PluginLoadError(f"no plugin of {package} is installed; there are {known}")
        if found[package] != needed:
            raise PluginVersionError(f"{package} {found[package]} is installed, not {needed}")
        for name in sorted(set(_needs(package)) & found.keys() - wanted.keys()):
            raise PluginLoadError(f"{package} needs {name} {found[name]}, which is not listed")


def restrict(allowed: Mapping[str, str]) -> None:
    """Let this process load no other plugins than these from now on; import nothing.

    Args:
        allowed: version by package.

    Raises:
        PluginLoadError: one is not installed, or another one is loaded already.
        PluginVersionError: one is installed in another version.
    """
    check(allowed)
    for record in plugin_manager.records():
        if record.distribution in allowed or record.status == "disabled":
            continue
        if record.status == "known":
            record.status, record.disabled_by = "disabled", "not among the allowed plugins"
        elif record.group in IMPORTED:
            raise PluginLoadError(f"{record.distribution} is loaded already, and not allowed")


def _needs(package: str) -> Iterator[str]:
    """Yield the packages that one requires, without those of its extras; skip invalid lines."""
    from packaging.requirements import InvalidRequirement, Requirement  # slow to import

    for text in requires(package) or ():
        with contextlib.suppress(InvalidRequirement):
            found = Requirement(text)
            if found.marker is None or found.marker.evaluate({"extra": ""}):
                yield found.name
