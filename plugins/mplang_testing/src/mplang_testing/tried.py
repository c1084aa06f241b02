"""Which suites of the kit try what a distribution brings, and which are missing in a test file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TypeAlias

from hypothesis import HealthCheck, find, settings, strategies as st
from hypothesis.errors import NoSuchExample

from mplang_core.ext import type_classes
from mplang_testing.attributes import AttributeSuite
from mplang_testing.suite import Suite

Brought: TypeAlias = Mapping[str, Iterable[str]]
"""Names of what a distribution brings, by registry or group of entry points."""

LOCAL_KERNELS = "kernel of one party"
BY_FAMILY = {"feop": "FeopSuite", LOCAL_KERNELS: "KernelSuite"}
BY_NAME = {
    "device kind": "DeviceSuite",
    "mplang.passes": "PassSuite",
    "mplang.analyses": "AnalysisSuite",
    "mplang.admission": "AdmissionSuite",
    "mplang.sources": "SourceSuite",
    "mplang.native": "NativeSuite",
}
ANY_OF_IT = {"backend": "BackendSuite"}
NAMES = ("family", "kind", "name")
"""Attributes of suites that name what they try."""
SEARCH = settings(max_examples=200, database=None, suppress_health_check=list(HealthCheck))


def suites_of(module: ModuleType) -> set[tuple[str, str]]:
    """Return the suites of the kit that a test file has, each with what it tries."""
    return {
        (base.__name__, next((getattr(item, each) for each in NAMES if hasattr(item, each)), ""))
        for item in _suites(module)
        for base in item.__mro__[1:]
    }


def untried(brought: Brought, module: ModuleType) -> Iterator[str]:
    """Yield what a distribution brings and no suite of a test file tries.

    Args:
        brought: what it brings.
        module: the test file.
    """
    tried = suites_of(module)
    for what, suite in BY_FAMILY.items():
        families = {name.partition(".")[0] for name in brought.get(what, ())}
        for family in sorted(families - _of(suite, tried)):
            yield f"the family {family} has a {what}: no {suite}"
    for what, suite in BY_NAME.items():
        for name in sorted({*brought.get(what, ())} - _of(suite, tried)):
            yield f"the {what.removeprefix('mplang.')} {name}: no {suite}"
    for what, suite in ANY_OF_IT.items():
        if [*brought.get(what, ())] and not _of(suite, tried):
            yield f"the {what}: no {suite}"
    for name in _types(brought.get("type", ()), module):
        yield f"the type {name}: no TypeSuite, or AttributeSuite, draws one"


def _of(suite: str, tried: set[tuple[str, str]]) -> set[str]:
    return {name for base, name in tried if base == suite}


def _types(names: Iterable[str], module: ModuleType) -> Iterator[str]:
    """Yield types and attributes of which no suite draws one."""
    suites = [item for item in _suites(module) if issubclass(item, AttributeSuite)]
    kinds = [item().kinds for item in suites if hasattr(item, "kinds")]
    for name in names:
        cls = type_classes.get(name)
        if cls is None or not any(_draws(each, cls) for each in kinds):
            yield name


def _draws(kinds: st.SearchStrategy[object], cls: type) -> bool:
    try:
        find(kinds, lambda kind: type(kind) is cls, settings=SEARCH)
    except NoSuchExample:
        return False
    return True


def _suites(module: ModuleType) -> Sequence[type[Suite]]:
    classes = (item for item in vars(module).values() if isinstance(item, type))
    return [item for item in classes if issubclass(item, Suite)]
