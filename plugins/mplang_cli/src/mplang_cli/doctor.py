"""Checks of the installation, with remedies: ``mplang doctor``."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Collection, Iterator

from importlib_metadata import PackageNotFoundError, entry_points, requires, version
from mplang_analysis import Rows
from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from mplang_cli import introspect
from mplang_core.ext import (
    COMMANDS,
    COMPATIBLE,
    CORE,
    FURTHER,
    KNOWN,
    PASS_VERSION,
    PASSES,
    Check,
    groups_of,
    plugin_manager,
)


def examine(config: str | None = None, commands: Collection[str] = ()) -> Rows:
    """Check versions, load every plugin and run its checks.

    Args:
        config: path of a worker's configuration to check, too.
        commands: the commands of ``mplang`` that plugins cannot replace.

    Returns:
        A row per check: ``package``, ``check``, ``status`` (``ok``, ``failed``, or ``absent``
        for a package of mplang that is not installed), and ``detail``, which says what to do.

    Example:
        >>> row = examine()[0]
        >>> row["check"], row["status"]
        ('python', 'ok')
    """
    rows = Rows()

    def tell(package: str, check: str, status: str, detail: str) -> None:
        rows.append({"package": package, "check": check, "status": status, "detail": detail})

    tell(CORE, "python", "ok", platform.python_version())
    plugins = introspect.list_plugins()
    for package in [CORE, *sorted({row["distribution"] for row in plugins})]:
        wrong = list(_wrong_versions(package))
        tell(package, "version", "failed" if wrong else "ok", "; ".join(wrong) or version(package))
    for row in plugins:
        if row["status"] in ("failed", "disabled"):
            status = "failed" if row["status"] == "failed" else "ok"
            tell(row["distribution"], f"{row['name']} in {row['group']}", status, row["reason"])
    for package, what, detail in [*_ignored(commands), *_uncounted_declarations()]:
        tell(package, what, "failed", detail)
    for package, check in plugin_checks(config):
        tell(package, check.name, "ok" if check.ok else "failed", check.detail)
    for package in sorted(set(KNOWN.values()) - {row["distribution"] for row in plugins}):
        tell(package, "installed", "absent", f"to get it: pip install {package}")
    return rows


def _ignored(commands: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield what is never looked up: entry points of unknown groups, commands with our names."""
    installed = entry_points()
    known = {*groups_of(installed), COMPATIBLE, FURTHER, PASS_VERSION}
    for entry in installed:
        if entry.group.startswith("mplang.") and entry.group not in known and entry.dist:
            there = ", ".join(sorted(known))
            detail = f"mplang looks up nothing in this group; there are {there}"
            yield entry.dist.name, f"{entry.name} in {entry.group}", detail
    for record in plugin_manager.records():
        if record.group == COMMANDS and record.name in commands:
            detail = f"mplang {record.name} is a command of mplang's own; it needs another name"
            yield record.distribution, f"{record.name} in {record.group}", detail


def _uncounted_declarations() -> Iterator[tuple[str, str, str]]:
    """Yield the declarations of versions that fit which no party counts."""
    records = plugin_manager.records()
    with_pass = {each.distribution for each in records if each.group == PASSES}
    for entry in entry_points(group=COMPATIBLE):
        package = entry.dist.name if entry.dist is not None else "unknown"
        what = f"{entry.name} in {COMPATIBLE}"
        if package in with_pass:
            detail = "it counts for no package with a pass, which fits by the number of its passes"
            yield package, what, f"{detail}; declare that in {PASS_VERSION}, and remove this"
        elif not _is_version(entry.name):
            yield package, what, f"{entry.name} is not a version; expected one such as 1.2.0"


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _wrong_versions(package: str) -> Iterator[str]:
    """Yield the requirements of a package that are missing or have another version."""
    for line in requires(package) or ():
        wanted = Requirement(line)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            found = version(wanted.name)
        except PackageNotFoundError:
            yield f"needs {wanted.name}, which is missing; pip install '{wanted}'"
            continue
        if not wanted.specifier.contains(found, prereleases=True):
            yield f"needs {wanted}, found {found}; pip install '{wanted}'"


def plugin_checks(config: str | None = None) -> Iterator[tuple[str, Check]]:
    """Yield the checks of each loaded plugin with its distribution."""
    for distribution, module in plugin_manager.modules():
        ask = getattr(module, "mplang_doctor", None)
        if ask is None:
            continue
        try:
            takes = {"config": config} if inspect.signature(ask).parameters else {}
            checks = list(ask(**takes))
            if not all(isinstance(check, Check) for check in checks):
                raise TypeError("mplang_doctor returns a list of Check")
        except Exception as error:
            checks = [Check("its checks", False, f"{type(error).__name__}: {error}")]
        yield from ((distribution, check) for check in checks)
