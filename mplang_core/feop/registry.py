"""Registry of feops by name and family."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mplang_core.errors import FeConfigError, PluginLoadError
from mplang_core.namespace import Namespace
from mplang_core.suggest import install_hint

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import FeMeta, Feop


class Registry:
    """Registry of the feops of a process; loads the plugin of a family on demand.

    Attributes:
        feops: the loaded feops by name.
    """

    def __init__(self) -> None:
        self.feops: Namespace[Feop] = Namespace("feop")
        self._load_all: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        return f"<Registry of {len(self.feops.names())} feops; mp.introspect.list_ops() lists them>"

    def connect(self, load: Callable[[str], None], load_all: Callable[[], None]) -> None:
        """Set the functions that load the plugin of a name, and all plugins."""
        self.feops.set_resolver(load)
        self._load_all = load_all

    def load_all(self) -> int:
        """Load all frontend plugins.

        Returns:
            A number that changes whenever a feop is added or removed.
        """
        self._load_all()
        return self.feops.version

    def register(self, op: Feop, *, provider: str | None = None) -> None:
        """Add a feop, or replace one that the same code defined.

        Args:
            op: a callable with ``__feop_meta__``.
            provider: its distribution; the package of its module by default.

        Raises:
            FeConfigError: the callable is not a feop.
            PluginConflictError: another feop has that name; the message names both providers.
        """
        if not getattr(op, "__feop__", False):
            raise FeConfigError(f"{op!r} is not a feop; decorate it with @feop or @simple_op")
        meta = op.__feop_meta__
        home = getattr(op, "__module__", type(op).__module__)
        known = self.feops.peek(meta.name)
        redefined = known is not None and _place(known) == _place(op)
        self.feops.add(
            meta.name, op, provider=provider or home.partition(".")[0], override=redefined
        )

    def unregister(self, name: str) -> None:
        """Remove a feop; do nothing if there is none of that name."""
        self.feops.remove(name)

    def get(self, name: str) -> Feop:
        """Return the feop of a name; load its plugin if necessary.

        Raises:
            PluginLoadError: no installed plugin provides it, or its plugin did not load.
        """
        if (op := self.feops.get(name)) is None:
            family = name.partition(".")[0]
            families = {known.partition(".")[0] for known in self.feops.names()}
            hint = install_hint(name, self.feops.names())
            if family not in families:
                hint = install_hint(family, families)
                hint = f"no plugin for the family {family!r} is installed; {hint}"
            raise PluginLoadError(f"no feop {name!r}: {hint}")
        return op

    def list_ops(self, family: str | None = None) -> list[FeMeta]:
        """Return the metadata of all feops, or of one family, sorted by name."""
        return [op.__feop_meta__ for op in self.find(family)]

    def find(
        self, family: str | None = None, predicate: Callable[[FeMeta], bool] | None = None
    ) -> list[Feop]:
        """Return the feops whose metadata satisfies a predicate, sorted by name.

        Args:
            family: the family; all by default.
            predicate: returns whether to include a feop; all by default.
        """
        self.load_all()
        found = [(op, op.__feop_meta__) for _, op in self.feops]
        wanted = [each for each in found if family is None or each[1].family == family]
        return [op for op, meta in wanted if predicate is None or predicate(meta)]

    def capabilities(self, op: Feop | str) -> dict[str, Any]:
        """Return the capabilities of a feop as plain data."""
        return self._meta(op).capabilities.model_dump()

    def config_schema(self, op: Feop | str) -> type | None:
        """Return the model of a feop's configuration, ``None`` if it has none."""
        return self._meta(op).config_schema

    def _meta(self, op: Feop | str) -> FeMeta:
        return (self.get(op) if isinstance(op, str) else op).__feop_meta__


def _place(op: Any) -> tuple[str, str]:
    named = op if hasattr(op, "__qualname__") else type(op)
    return named.__module__, named.__qualname__


registry = Registry()
"""The registry of this process."""
