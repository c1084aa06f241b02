"""Versions of the installed plugins, and which of them fit together."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from importlib_metadata import entry_points

from mplang_core.ext import COMPATIBLE, CORE, PASS_VERSION, PASSES, plugin_manager

if TYPE_CHECKING:
    from packaging.version import Version

USED = ("mplang.frontends", "mplang.kernels", PASSES)
"""Groups of entry points that programs use."""

OWN = ("mplang-http", "mplang-worker")
"""The packages of this backend, which bring no plugin that a program uses."""

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
    """Return the oldest versions that parties may have beside those here, by package.

    Of several declarations of a package the oldest counts; what is not a version is left out.
    """
    return dict(_declared(tuple(sys.path)))


@functools.lru_cache(maxsize=4)
def _declared(path: tuple[str, ...]) -> Mapping[str, str]:
    """Return the declarations of what is installed: that reads the files of all packages."""
    oldest: dict[str, Version] = {}
    for each in entry_points(group=COMPATIBLE):
        declared = _version(each.name)
        if each.dist is not None and declared is not None:
            oldest[each.dist.name] = min(declared, oldest.get(each.dist.name, declared))
    return {package: str(version) for package, version in oldest.items()}


def pass_versions() -> dict[str, str]:
    """Return the number of the passes of each package that declares one.

    It changes when a pass makes something else of a program than before, so packages of one number
    fit together, whatever their versions. Two numbers of one package are none.
    """
    return dict(_numbered(tuple(sys.path)))


@functools.lru_cache(maxsize=4)
def _numbered(path: tuple[str, ...]) -> Mapping[str, str]:
    """Return the numbers of what is installed: that reads the files of all packages."""
    numbers: dict[str, set[str]] = {}
    for each in entry_points(group=PASS_VERSION):
        if each.dist is not None:
            numbers.setdefault(each.dist.name, set()).add(each.name)
    return {package: names.pop() for package, names in numbers.items() if len(names) == 1}


def may_differ(plugins: Collection[tuple[str, str]]) -> frozenset[str]:
    """Return the packages of a party whose versions may differ, if the newer one declares it.

    A package with a pass is none of them: all parties have to make the same program.

    Args:
        plugins: group and package of each entry point of the party.

    Example:
        >>> pairs = [("mplang.kernels", "a"), ("mplang.kernels", "b"), ("mplang.passes", "b")]
        >>> sorted(may_differ(pairs))
        ['a', 'mplang-core', 'mplang-http', 'mplang-worker']
    """
    used = {package for group, package in plugins if group in USED}
    return frozenset({CORE, *OWN} | used) - {each for group, each in plugins if group == PASSES}


def may_differ_here() -> frozenset[str]:
    """Return what :func:`may_differ` does for this process; import nothing."""
    records = plugin_manager.records()
    return may_differ([(r.group, r.distribution) for r in records if r.status != "disabled"])


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions that a party has.

    Attributes:
        there: the version of each package, and what else has to be alike.
        since: the oldest version that a package declares to fit, by package.
        may_differ: the packages whose declarations count; what else there is has to be equal.
        passes: the number of the passes of each package that declares one.
    """

    there: Mapping[str, str]
    since: Mapping[str, str]
    may_differ: Set[str]
    passes: Mapping[str, str] = field(default_factory=dict)


def misfits(parties: Collection[Versions]) -> set[str]:
    """Return the names of what parties have in versions that do not fit together.

    What a party does not have counts for nothing. Packages with passes fit if all parties have the
    same number of them. Of two other versions the newer one tells whether the older one fits, if
    all parties let them differ; what is not a version has to be equal.

    Example:
        >>> old = Versions({"p": "1.2.0"}, {}, {"p"})
        >>> new, silent = (Versions({"p": "1.3.0"}, since, {"p"}) for since in ({"p": "1.2"}, {}))
        >>> misfits([old, new]), misfits([old, silent])
        (set(), {'p'})
        >>> one, two = (Versions({"p": f"1.{i}"}, {}, set(), {"p": "7"}) for i in range(2))
        >>> misfits([one, two])
        set()
    """
    names = _several(party.there for party in parties) | _several(p.passes for p in parties)
    return {name for name in names if not _fit(name, [p for p in parties if name in p.there])}


def _several(there: Iterable[Mapping[str, str]]) -> set[str]:
    """Return the names that have more than one text; hardly any has."""
    texts = set[tuple[str, str]]().union(*(each.items() for each in there))
    names = Counter(name for name, _ in texts)
    return {name for name, count in names.items() if count > 1}


def _fit(name: str, parties: Sequence[Versions]) -> bool:
    numbers = [party.passes[name] for party in parties if name in party.passes]
    if len(set(numbers)) > 1:
        return False
    if len({party.there[name] for party in parties}) == 1 or len(numbers) == len(parties):
        return True
    found = {(party.there[name], party.since.get(name, "")) for party in parties}
    return all(name in party.may_differ for party in parties) and all(
        _fits_beside(*one, *other) for one in found for other in found
    )


def _fits_beside(one: str, since_one: str, other: str, since_other: str) -> bool:
    """Return whether the newer of two versions names the older one, or one before it."""
    if one == other:
        return True
    first, second = _version(one), _version(other)
    if first is None or second is None:
        return False
    (older, _), (_, declared) = sorted([(first, since_one), (second, since_other)])
    since = _version(declared)
    return since is not None and since <= older


def _version(text: str) -> Version | None:
    """Return what a text says; ``None`` if it is not a version, or a very long one."""
    from packaging.version import InvalidVersion, Version  # slow to import

    try:
        return Version(text) if len(text) <= MAX_VERSION else None
    except InvalidVersion:
        return None
