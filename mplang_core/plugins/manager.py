"""Finds plugins without importing them, and loads each one by itself when it is needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import pluggy
from importlib_metadata import EntryPoint, entry_points

from mplang_core.device import device_kinds, transfers
from mplang_core.errors import PluginLoadError
from mplang_core.feop import registry
from mplang_core.ir import op_defs
from mplang_core.ir.source import skip_package
from mplang_core.namespace import Namespace
from mplang_core.plugins import hookspecs
from mplang_core.runtime import codecs, host_kernels, worker_kernels
from mplang_core.simp.backend import backends
from mplang_core.types import type_classes

__all__ = ["PluginManager", "PluginRecord", "plugin_manager"]

FRONTENDS, KERNELS, BACKENDS = "mplang.frontends", "mplang.kernels", "mplang.backends"

T = TypeVar("T")


@dataclass(slots=True)
class PluginRecord:
    """One entry point, and what became of it.

    Attributes:
        group: the group that it stands in.
        name: its name: a feop family, an opcode prefix, or a backend.
        module: what it names.
        distribution: the package that it comes from.
        version: that package's version.
        status: whether it was loaded.
        error: why it was not.
    """

    group: str
    name: str
    module: str
    distribution: str
    version: str
    status: Literal["known", "loaded", "failed"] = "known"
    error: BaseException | None = None


class PluginManager:
    """The plugins that are installed, each loaded at the first look-up of its name."""

    def __init__(self) -> None:
        self._hooks = pluggy.PluginManager(hookspecs.PROJECT)
        self._hooks.add_hookspecs(hookspecs)
        self._lock = threading.RLock()
        self._found: list[tuple[EntryPoint, PluginRecord]] | None = None

    def records(self) -> list[PluginRecord]:
        """Return a record per entry point, sorted by group and name; imports nothing."""
        return [record for _, record in self._index()]

    def _index(self) -> list[tuple[EntryPoint, PluginRecord]]:
        with self._lock:
            if self._found is None:
                found = [
                    entry
                    for group in (BACKENDS, FRONTENDS, KERNELS)
                    for entry in entry_points(group=group)
                ]
                found.sort(key=lambda e: (e.group, e.name, e.value))
                self._found = [(entry, _record(entry)) for entry in found]
            return self._found

    def load(self, name: str, *groups: str) -> None:
        """Load the plugins of a name, in the groups; nothing happens where there is none.

        Raises:
            PluginLoadError: one failed; says which distribution, and why.
        """
        for entry, record in self._index():
            if entry.name == name and entry.group in groups:
                self._load(entry, record)

    def load_all(self) -> None:
        """Load all frontends; one that fails is recorded, and does not harm the others."""
        for entry, record in self._index():
            if entry.group == FRONTENDS:
                try:
                    self._load(entry, record)
                except PluginLoadError:
                    continue  # its record tells

    def _load(self, entry: EntryPoint, record: PluginRecord) -> None:
        with self._lock:
            if record.status == "known":
                record.status = "loaded"  # so that a plugin may look up its own names
                try:
                    self._register(entry.load(), record)
                except Exception as error:
                    record.status, record.error = "failed", error
        if record.status == "failed":
            raise PluginLoadError(
                f"the plugin {record.name!r} of {record.distribution} {record.version} did not "
                f"load: {type(record.error).__name__}: {record.error}. "
                f"Try: pip install --upgrade {record.distribution}"
            ) from record.error

    def _register(self, module: Any, record: PluginRecord) -> None:
        if self._hooks.is_registered(module):
            return
        skip_package(module.__name__)
        self._hooks.register(module, f"{record.distribution}:{module.__name__}")
        provider = record.distribution
        for op in self._call("mplang_feops", module):
            registry.register(op, provider=provider)
        for dialect in self._call("mplang_dialects", module):
            _add(op_defs, {op.name: op for op in dialect.ops}, provider)
            _add(type_classes, {cls.name: cls for cls in dialect.types}, provider)
            _add(codecs, dict(dialect.codecs), provider)
        for spec in self._call("mplang_kernels", module):
            table = host_kernels if spec.role == "host" else worker_kernels
            _add(table, dict.fromkeys(spec.opcodes, spec.kernel), provider)
        _add(device_kinds, {k.name: k for k in self._call("mplang_devices", module)}, provider)
        _add(backends, {b.name: b for b in self._call("mplang_backends", module)}, provider)

    def _call(self, hook: str, module: Any) -> list[Any]:
        others = [plugin for plugin in self._hooks.get_plugins() if plugin is not module]
        results = self._hooks.subset_hook_caller(hook, others)()
        return [item for result in results for item in result]

    def connect(self) -> None:
        """Have every look-up by name load the plugin that has it."""

        def by_prefix(name: str) -> None:
            self.load(name.partition(".")[0], FRONTENDS, KERNELS)

        def any_frontend(name: str) -> None:
            self.load_all()

        registry.connect(by_prefix, self.load_all)
        resolvers: list[tuple[Namespace[Any], Callable[[str], None]]] = [
            (op_defs, by_prefix),
            (type_classes, by_prefix),
            (codecs, by_prefix),
            (host_kernels, by_prefix),
            (worker_kernels, by_prefix),
            (device_kinds, any_frontend),
            (transfers, any_frontend),
            (backends, lambda name: self.load(name, BACKENDS)),
        ]
        for namespace, resolver in resolvers:
            namespace.set_resolver(resolver)


def _add(namespace: Namespace[T], items: dict[str, T], provider: str) -> None:
    for name, item in items.items():
        namespace.add(name, item, provider=provider)


def _record(entry: EntryPoint) -> PluginRecord:
    dist = entry.dist
    name, version = (dist.name, dist.version) if dist is not None else ("unknown", "?")
    return PluginRecord(entry.group, entry.name, entry.value, name, version)


plugin_manager = PluginManager()
"""The plugins of this process."""
