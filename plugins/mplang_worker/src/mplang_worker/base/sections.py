"""Sections of a worker's configuration: look-up of the packages that bring them."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from mplang_core.ext import SECTIONS, ConfigError, PluginError, plugin_manager, similar
from mplang_worker.base.section_protocols import Section, StoreSection

DATA, SINK, GATE = "data", "sink", "gate"
PACKAGES = {
    DATA: ("data sets and sinks", "mplang-data"),
    SINK: ("data sets and sinks", "mplang-data"),
    GATE: ("rules", "mplang-policy"),
}
"""Sections of mplang's own packages: what comes with them, and the package."""

NO_STORE = "this party stores no results; its owner names a folder as `sink` of the worker"


def section_names() -> list[str]:
    """Return the names of the sections that installed packages bring; import nothing."""
    return plugin_manager.names(SECTIONS)


def section_packages() -> dict[str, str]:
    """Return the packages that bring sections, by the section's name; import nothing."""
    records = plugin_manager.records()
    return {each.name: each.distribution for each in records if each.group == SECTIONS}


def section_of(name: str) -> Section:
    """Return a section, and import its package.

    Raises:
        ConfigError: no installed package has it, or that does not load.
    """
    try:
        found = plugin_manager.entry(SECTIONS, name)
    except PluginError as error:
        raise ConfigError(f"field {name!r}: {error}", code="C003") from None
    if found is None and name in PACKAGES:
        what, package = PACKAGES[name]
        raise ConfigError(
            f"field {name!r}: {what} come with another package; try: pip install {package}",
            code="C003",
        )
    if found is None:
        raise ConfigError(no_section(name), code="C003")
    if not isinstance(found, Section):
        package = section_packages()[name]
        raise ConfigError(
            f"field {name!r}: the section of {package} is not an mplang_worker.ext.Section, but a "
            f"{type(found).__name__}",
            code="C003",
        )
    return found


def store_section() -> StoreSection:
    """Return the section ``sink``.

    Raises:
        ConfigError: no installed package has it.
    """
    return cast(StoreSection, section_of(SINK))


def no_section(name: str, fields: Collection[str] = ()) -> str:
    """Return the text of an error: no installed package has a section of a name.

    Args:
        name: the name.
        fields: the fields of the worker, which it may be a slip of the pen for.
    """
    sections = section_names()
    there = f"there are {', '.join(sections) or 'none'}"
    slip = similar(name, [*fields, *sections]) or there
    return f"field {name!r}: no installed package has a section {name!r}; {slip}"
