"""Required packages of programs, by ops, types and devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from importlib_metadata import version
from mplang_analysis.ext import quoted
from packaging.version import InvalidVersion, Version

from mplang_cli.artifact.data import Data
from mplang_core import BaseType, MPType, Program, registry
from mplang_core.ext import (
    CORE,
    KNOWN,
    AnyType,
    Graph,
    PluginLoadError,
    device_kinds,
    op_defs,
    plugin_manager,
    type_classes,
)


class Requirement(Data, frozen=True):
    """A package that a program needs.

    Attributes:
        distribution: its name.
        version: the one that the program was made with.
        brings: what of it the program has: ops, types, kinds of devices.
    """

    distribution: str
    version: str
    brings: tuple[str, ...]

    @property
    def here(self) -> str | None:
        """The version that is installed here, if one is, and not disabled."""
        return _installed().get(self.distribution)

    @property
    def status(self) -> str:
        """``ok``, ``other version`` or ``missing``."""
        if self.here is None:
            return "missing"
        return "ok" if self.here == self.version else "other version"

    def __str__(self) -> str:
        brings = ", ".join(map(quoted, self.brings))
        return f"{quoted(self.distribution)} {quoted(self.version)} ({brings})"


def requirements_of(program: Program, kinds: Iterable[str]) -> tuple[Requirement, ...]:
    """Return what a program needs.

    Args:
        program: the program.
        kinds: the kinds of the devices that its results are on.

    Raises:
        PluginLoadError: something comes from no package that can be installed.
    """
    brought: dict[str, set[str]] = {CORE: set()}
    for name, provider in _providers(program, kinds):
        package = _distribution(provider)
        if package is None:
            raise PluginLoadError(
                f"{name} is declared in {provider!r}, which is not a plugin that can be installed, "
                f"so an artifact would not run elsewhere; make it one: mplang new-plugin"
            )
        brought.setdefault(package, set()).add(name)
    versions = _installed()
    return tuple(Requirement(p, versions[p], tuple(sorted(brought[p]))) for p in sorted(brought))


def ask_for(requirements: Iterable[Requirement], name: str) -> None:
    """Check that all is installed, in whatever version.

    Raises:
        PluginLoadError: names each package that is missing, and what of it is used.
    """
    missing = [each for each in requirements if each.here is None]
    if not missing:
        return
    disabled = [r.distribution for r in plugin_manager.records() if r.status == "disabled"]
    known = [known_requirement(each.distribution, each.version) for each in missing]
    advice = [f"pip install {' '.join(filter(None, known))}"] if any(known) else []
    if any(each.distribution in disabled for each in missing):
        advice.insert(0, "take it out of MPLANG_DISABLE_PLUGINS")
    if not all(known):
        advice.append("ask its author for packages that are not mplang's")
    needed = ", ".join(map(str, missing))
    raise PluginLoadError(f"{quoted(name)} needs {needed}, not here; {', or '.join(advice)}")


def _installed() -> dict[str, str]:
    records = (r for r in plugin_manager.records() if r.status != "disabled")
    return {CORE: version(CORE), **{r.distribution: r.version for r in records}}


def _providers(program: Program, kinds: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield what a program has in it, each with who provides it."""
    for op in program.graph.walk():
        provider = registry.feops.provider(op.opcode) or op_defs.provider(op.opcode)
        yield op.opcode, provider or "nothing"
    for name in {name for type in _types(program.graph) for name in _names(type)}:
        yield name, type_classes.provider(name) or "nothing"
    for kind in kinds:
        yield kind, device_kinds.provider(kind) or "nothing"


def _types(graph: Graph) -> Iterator[AnyType]:
    yield from (value.type for value in graph.inputs)
    for op in graph.ops:
        yield from (value.type for value in op.outputs)
        yield from (value for value in op.attrs.values() if isinstance(value, BaseType))
        for region in op.regions.values():
            yield from _types(region)


def _names(type: Any) -> Iterator[str]:
    base = type.base if isinstance(type, MPType) else type
    if isinstance(base, BaseType):
        yield base.name
        for param in base.params():
            yield from _names(param)
    elif isinstance(base, tuple):
        for part in base:
            yield from _names(part)


def _distribution(provider: str) -> str | None:
    """Return the package of a provider, which is noted by package or by module."""
    if provider in (CORE, "mplang_core"):
        return CORE
    for record in plugin_manager.records():
        if provider in (record.distribution, record.module.partition(":")[0].partition(".")[0]):
            return record.distribution
    return None


def known_requirement(distribution: str, version: str) -> str | None:
    """Return how pip is asked for a version of a package of mplang, or ``None`` for any other.

    A name that stands in an artifact or a message may be anybody's: nobody is told to install it.

    Example:
        >>> known_requirement("mplang-jax", "0.1.0")
        "'mplang-jax==0.1.0'"
        >>> known_requirement("mplang-jaxx; rm -r ~", "1.0") is None
        True
    """
    if distribution not in (CORE, *KNOWN.values()):
        return None
    try:
        return f"'{distribution}=={Version(version)}'"
    except InvalidVersion:
        return None
