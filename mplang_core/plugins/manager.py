"""Plugin manager: discovery by entry points, loading on demand, isolation of failures."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from typing import Any, Literal, TypeAlias

import pluggy
from importlib_metadata import EntryPoint, entry_points, version

from mplang_core.device import (
    DeviceKind,
    JointRun,
    Transfer,
    add_kind,
    add_transfer,
    device_kinds,
    joint_runs,
    transfers,
)
from mplang_core.display import Displayed
from mplang_core.errors import PluginConflictError, PluginError, PluginLoadError, PluginVersionError
from mplang_core.feop import is_feop, registry
from mplang_core.ir import op_defs
from mplang_core.ir.source_line import skip_package
from mplang_core.namespace import Namespace
from mplang_core.plugins import hookspecs
from mplang_core.runtime import add_kernel, codecs, host_kernels, native_ops, worker_kernels
from mplang_core.simp.backend import BackendSpec, backends
from mplang_core.simp.diagnostics import diagnostics
from mplang_core.simp.passes import passes
from mplang_core.suggest import CORE, FAILED
from mplang_core.types import type_classes

DISABLE, STRICT = "MPLANG_DISABLE_PLUGINS", "MPLANG_STRICT_PLUGINS"
FRONTENDS, KERNELS, BACKENDS = "mplang.frontends", "mplang.kernels", "mplang.backends"
COMMANDS, API, PASSES, SOURCES = "mplang.commands", "mplang.api", "mplang.passes", "mplang.sources"
ANALYSES, ADMISSION, NATIVE = "mplang.analyses", "mplang.admission", "mplang.native"
DIAGNOSTICS, WORDS, WORKERS = "mplang.diagnostics", "mplang.words", "mplang.workers"
SECTIONS, CONTROL, DISPLAYS = "mplang.sections", "mplang.control", "mplang.displays"
COMPATIBLE = "mplang.compatible"  # its names are versions: nothing is loaded
PASS_VERSION = "mplang.pass_version"  # its names are numbers: nothing is loaded
_OF_WORKERS = (SECTIONS, CONTROL, ADMISSION, NATIVE)
PLAIN = (API, COMMANDS, SOURCES, ANALYSES, DIAGNOSTICS, WORDS, DISPLAYS, *_OF_WORKERS)
HOOKED = (BACKENDS, FRONTENDS, KERNELS, PASSES, WORKERS)
"""Groups whose entry points name a module with hooks; those of others name an object."""
FURTHER = "mplang.groups"  # its names are those of groups of packages, after "mplang."


def groups_of(installed: Iterable[EntryPoint]) -> set[str]:
    """Return all groups that mplang looks for: its own, and those that packages name.

    Args:
        installed: the entry points.
    """
    return {
        *PLAIN,
        *HOOKED,
        *(f"mplang.{each.name}" for each in installed if each.group == FURTHER),
    }


@dataclass(slots=True)
class PluginRecord:
    """Record of one entry point and its status.

    Attributes:
        group: its group, such as ``mplang.frontends``.
        name: its name: a feop family, an opcode prefix, a backend, or a command.
        module: the module or object that it refers to.
        distribution: its package.
        version: the version of the package.
        requires_core: the version specifier of the core that the package requires.
        status: ``known`` (not loaded yet), ``loaded``, ``disabled`` or ``failed``.
        error: the error of a failed load; else ``None``.
        disabled_by: what disables it; else empty.
    """

    group: str
    name: str
    module: str
    distribution: str
    version: str
    requires_core: str = ""
    status: Literal["known", "loaded", "disabled", "failed"] = "known"
    error: BaseException | None = None
    disabled_by: str = ""

    @property
    def reason(self) -> str:
        """Reason why it is disabled or failed, in one line; else empty."""
        if self.status == "disabled":
            return self.disabled_by
        if self.error is None:
            return ""
        own = isinstance(self.error, PluginError)
        return f"{'' if own else type(self.error).__name__ + ': '}{self.error}"


class PluginManager:
    """Manager of the installed plugins; loads each at the first look-up of its name.

    ``MPLANG_DISABLE_PLUGINS`` lists distributions or entry points to ignore, separated by
    commas. With ``MPLANG_STRICT_PLUGINS=1``, :meth:`load_all` raises if a plugin fails.
    """

    def __init__(self) -> None:
        self._hooks = pluggy.PluginManager(hookspecs.PROJECT)
        self._hooks.add_hookspecs(hookspecs.Hooks)
        self._lock = threading.RLock()
        self._all_loaded = False
        self._found: list[tuple[EntryPoint, PluginRecord]] | None = None

    def records(self) -> list[PluginRecord]:
        """Return a record per entry point, sorted by group and name; import nothing."""
        return [record for _, record in self._index()]

    def _index(self) -> list[tuple[EntryPoint, PluginRecord]]:
        with self._lock:
            if self._found is None:
                found = {}
                there = entry_points()  # at once: each look reads the files of all packages
                groups = groups_of(there)
                for entry in there:
                    if entry.group in groups:
                        record = _record(entry)
                        found[astuple(record)[:4]] = entry, record  # one per distribution
                self._found = [found[key] for key in sorted(found)]
            return self._found

    def load(self, name: str, *groups: str) -> None:
        """Load the plugins of a name in some groups; do nothing if there are none.

        Args:
            name: the name of the entry points.
            *groups: the groups.

        Raises:
            PluginLoadError: a plugin failed; the message has distribution, reason and remedy.
            PluginConflictError: two distributions have that name; the message names both.
        """
        for group in groups:
            named = self._named(group, name)
            providers = sorted({f"{r.distribution} {r.version}" for _, r in named})
            if len(providers) > 1:
                error = PluginConflictError(
                    f"two plugins are named {name!r} in {group}: {' and '.join(providers)}; "
                    f"uninstall one of them, or name it in {DISABLE}"
                )
                for _, record in named:
                    record.status, record.error = "failed", error
                raise error
            for entry, record in named:
                self._load(entry, record)

    def load_all(self) -> None:
        """Load all frontends; record failures and continue.

        Raises:
            PluginError: a plugin failed, and ``MPLANG_STRICT_PLUGINS`` is set.
        """
        if self._all_loaded:
            return
        for name in sorted({r.name for r in self.records() if r.group == FRONTENDS}):
            try:
                self.load(name, FRONTENDS)
            except PluginError:
                if os.environ.get(STRICT, "") not in ("", "0"):
                    raise
        self._all_loaded = True

    def names(self, group: str) -> list[str]:
        """Return the names of a group's entry points that are not disabled; import nothing."""
        return sorted(
            {r.name for r in self.records() if r.group == group and r.status != "disabled"}
        )

    def entry(self, group: str, name: str) -> Any:
        """Return the object of an entry point: a command, or a name of ``mp``.

        Args:
            group: ``mplang.commands`` (functions with parameters for typer), ``mplang.api``,
                ``mplang.sources`` (kinds of sources of data sets), ``mplang.analyses``,
                ``mplang.admission`` (checks of programs at a worker), ``mplang.diagnostics`` (what
                goes wrong in a program), ``mplang.words``, ``mplang.native``,
                ``mplang.sections`` (of a worker's configuration), ``mplang.displays``, or one of a
                package's own.
            name: the name of the entry point.

        Returns:
            The object; ``None`` if there is no such entry point.

        Raises:
            PluginLoadError: its plugin failed.
            PluginConflictError: two distributions have that name.
        """
        self.load(name, group)
        named = self._named(group, name)
        return named[0][0].load() if named else None

    def _named(self, group: str, name: str) -> list[tuple[EntryPoint, PluginRecord]]:
        return [
            (entry, record)
            for entry, record in self._index()
            if record.name == name and record.group == group and record.status != "disabled"
        ]

    def _load(self, entry: EntryPoint, record: PluginRecord) -> None:
        with self._lock:
            if record.status == "known":
                record.status = "loaded"  # set first: a plugin may look up its own names
                mine = {record.distribution, entry.module.partition(".")[0]}
                before = [(space, space.provided_by(mine)) for space in NAMESPACES]
                try:
                    _check_version(record)
                    found = entry.load()
                    if record.group in HOOKED:
                        self._register(found, record)
                    elif record.group == COMMANDS and not callable(found):
                        raise PluginLoadError(f"a command is a function, got {found!r}")
                except Exception as error:
                    record.status, record.error = "failed", error
                    FAILED[record.name] = f"{record.distribution} did not load: {record.reason}"
                    for space, names in before:
                        for name in space.provided_by(mine) - names:
                            space.remove(name)
        if record.status == "failed":
            raise PluginLoadError(
                f"the plugin {record.name!r} of {record.distribution} {record.version} did not "
                f"load: {record.reason}. Try: pip install --upgrade {record.distribution}",
                code=record.error.code if isinstance(record.error, PluginError) else "",
            ) from record.error

    def _register(self, module: Any, record: PluginRecord) -> None:
        if self._hooks.is_registered(module):
            return
        skip_package(module.__name__)
        self._hooks.register(module, f"{record.distribution}:{module.__name__}")
        try:
            self._check_hooks(module)
            contributed = {hook: self._call(hook, module) for hook in _HOOKS}
            self._add(contributed, record)
        except BaseException:
            self._hooks.unregister(module)
            raise

    def _check_hooks(self, module: Any) -> None:
        """Check the names of hooks; pluggy accepts misspelt ones."""
        try:
            self._hooks.check_pending()
        except pluggy.PluginValidationError as error:
            known = ", ".join([*_HOOKS, *(f"mplang_{name}" for name in ASKED)])
            raise PluginLoadError(f"{error}; the hooks are {known}") from error

    def _call(self, hook: str, module: Any) -> list[Any]:
        others = [plugin for plugin in self._hooks.get_plugins() if plugin is not module]
        takes = _HOOKS[hook]
        found: list[Any] = []
        for result in self._hooks.subset_hook_caller(hook, others)():
            if not isinstance(result, list | tuple):
                raise PluginLoadError(f"{hook} returns a list, got a {type(result).__name__}")
            for item in result:
                if not takes.accepts(item):
                    raise PluginLoadError(
                        f"{hook} returns a list of {takes.what}, got a {type(item).__name__} in it"
                    )
            found += result
        return found

    def modules(self) -> list[tuple[str, Any]]:
        """Return the loaded modules with hooks as ``(distribution, module)``."""
        return [(name.partition(":")[0], each) for name, each in self._hooks.list_name_plugin()]

    def _add(self, contributed: dict[str, list[Any]], record: PluginRecord) -> None:
        families = {r.name for r in self.records() if r.distribution == record.distribution}
        for hook, items in contributed.items():
            for name in (name for item in items for name in _HOOKS[hook].names(item)):
                if name.partition(".")[0] not in families:
                    raise PluginConflictError(
                        f"{record.distribution} brings {name!r} by {hook}; its entry points are "
                        f"{', '.join(sorted(families))}: a plugin adds to its own families only"
                    )
        for hook, items in contributed.items():
            for item in items:
                _HOOKS[hook].add(item, record.distribution)

    def connect(self) -> None:
        """Connect all registries to plugin loading by name."""

        def by_prefix(name: str) -> None:
            self.load(name.partition(".")[0], FRONTENDS, KERNELS)

        Displayed.display_of = staticmethod(functools.partial(self.entry, DISPLAYS))
        registry.connect(by_prefix, self.load_all)
        for namespace in _BY_PREFIX:
            namespace.set_resolver(by_prefix)
        for namespace in (device_kinds, transfers, joint_runs):  # no prefix tells who brings one
            namespace.set_resolver(lambda name: self.load_all())
        backends.set_resolver(lambda name: self.load(name, BACKENDS), lambda: self.names(BACKENDS))
        passes.set_resolver(lambda name: self.load(name, PASSES), lambda: self.names(PASSES))

        def diagnostic(name: str) -> None:
            records = [record for _, record in self._named(DIAGNOSTICS, name)]
            for record in records:
                found = self.entry(DIAGNOSTICS, name)
                diagnostics.add(name, found, provider=record.distribution)

        diagnostics.set_resolver(diagnostic, lambda: self.names(DIAGNOSTICS))


ASKED = ("settings", "configure", "preload", "doctor")
"""Hooks that are called by who needs them, not when a plugin is loaded."""

_BY_PREFIX: list[Namespace[Any]] = [op_defs, type_classes, codecs, host_kernels, worker_kernels]
"""Registries whose names begin with that of a plugin's entry point."""

_BY_NAME = (device_kinds, transfers, joint_runs, backends, passes, diagnostics, native_ops)
NAMESPACES = (registry.feops, *_BY_PREFIX, *_BY_NAME)
"""All registries that plugins extend."""


def _add_dialect(dialect: hookspecs.Dialect, provider: str) -> None:
    for op in dialect.ops:
        op_defs.add(op.name, op, provider=provider)
    for cls in (*dialect.types, *dialect.attributes):
        type_classes.add(cls.name, cls, provider=provider)
    for name, codec in dialect.codecs.items():
        codecs.add(name, codec, provider=provider)


def _add_kernel(spec: hookspecs.KernelSpec, provider: str) -> None:
    for opcode in spec.opcodes:
        add_kernel(opcode, spec.kernel, provider=provider, role=spec.role, native=spec.native)


_Add: TypeAlias = Callable[[Any, str], None]
_Names: TypeAlias = Callable[[Any], Iterable[str]]


@dataclass(frozen=True, slots=True)
class _Hook:
    """Item type of a hook, the function that registers an item: ``add(item, provider)``, and the
    names in families that an item brings: ``names(item)``.
    """

    what: str
    accepts: Callable[[Any], bool]
    add: _Add
    names: _Names = lambda item: ()


def _of(kind: type, add: _Add, names: _Names = lambda item: ()) -> _Hook:
    return _Hook(kind.__name__, lambda item: isinstance(item, kind), add, names)


def _names_in(dialect: hookspecs.Dialect) -> list[str]:
    named: list[Any] = [*dialect.ops, *dialect.types, *dialect.attributes]
    return [*(each.name for each in named), *dialect.codecs]


_HOOKS = {
    "mplang_feops": _Hook(
        "feops",
        is_feop,
        lambda op, provider: registry.register(op, provider=provider),
        lambda op: [op.__feop_meta__.name],
    ),
    "mplang_dialects": _of(hookspecs.Dialect, _add_dialect, _names_in),
    "mplang_kernels": _of(hookspecs.KernelSpec, _add_kernel, lambda spec: spec.opcodes),
    "mplang_devices": _of(DeviceKind, add_kind),
    "mplang_transfers": _of(Transfer, add_transfer),
    "mplang_joint_runs": _of(
        JointRun, lambda each, by: joint_runs.add(each.name, each, provider=by)
    ),
    "mplang_backends": _of(
        BackendSpec, lambda each, by: backends.add(each.name, each, provider=by)
    ),
    "mplang_passes": _Hook(
        "functions", callable, lambda each, by: passes.add(each.__name__, each, provider=by)
    ),
}


def _record(entry: EntryPoint) -> PluginRecord:
    dist: Any = entry.dist  # whose protocol does not say that it is hashable
    told = ("unknown", "?", "") if dist is None else _told(dist)
    record = PluginRecord(entry.group, entry.name, entry.value, *told)
    left_alone = {part.strip() for part in os.environ.get(DISABLE, "").split(",")}
    if left_alone & {record.distribution, entry.name}:
        record.status, record.disabled_by = "disabled", f"named in {DISABLE}"
    return record


@functools.lru_cache(maxsize=64)  # of all its entry points
def _told(dist: Any) -> tuple[str, str, str]:
    """Return name, version, and the versions of the core that it requires, apart from extras."""
    from packaging.requirements import InvalidRequirement, Requirement  # slow to import

    asked, metadata = [], dist.metadata  # which each property of it would parse anew
    for text in metadata.get_all("Requires-Dist") or dist.requires or ():
        with contextlib.suppress(InvalidRequirement):
            found = Requirement(text)
            if found.name == CORE and (not found.marker or found.marker.evaluate({"extra": ""})):
                asked.append(str(found.specifier))
    return metadata["Name"], metadata["Version"], ",".join(asked)


def _check_version(record: PluginRecord) -> None:
    """Check the core version that a package requires, before any import of it."""
    from packaging.specifiers import SpecifierSet

    mine = _own_version()
    if not SpecifierSet(record.requires_core).contains(mine, prereleases=True):
        raise PluginVersionError(
            f"{record.distribution} {record.version} needs mplang-core {record.requires_core}, "
            f"this is {mine}; pip install --upgrade mplang-core {record.distribution}"
        )


@functools.cache  # it reads a file each time
def _own_version() -> str:
    return version(CORE)


plugin_manager = PluginManager()
"""The plugins of this process."""
