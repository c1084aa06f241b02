"""Registry table: items by name, each with its provider.

Ops, types, feops, kernels, device kinds and backends are looked up by name, come from the core
or from a plugin, and must not replace each other silently.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from mplang_core.errors import PluginConflictError

T = TypeVar("T")


class Namespace(Generic[T]):
    """Table of items by name, loaded on demand.

    Args:
        what: the kind of item, for messages (``"op"``, ``"kernel"``).

    Attributes:
        version: a counter that changes whenever an item is added or removed.

    Example:
        >>> colours = Namespace[int]("colour")
        >>> colours.add("red", 0xFF0000, provider="mplang-core")
        >>> colours.get("red") == 0xFF0000
        True
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._items: dict[str, tuple[T, str]] = {}
        self._lock = threading.RLock()
        self._resolver: Callable[[str], None] | None = None
        self._known: Callable[[], list[str]] = list
        self.version = 0

    def set_resolver(
        self, resolver: Callable[[str], None] | None, known: Callable[[], list[str]] = list
    ) -> None:
        """Set the function that loads the provider of an unknown name.

        Args:
            resolver: loads the provider of a name; ``None`` for none.
            known: returns the names that it can load.
        """
        self._resolver = resolver
        self._known = known

    def known(self) -> list[str]:
        """Return the loaded names and those that can be loaded, sorted."""
        return sorted({*self.names(), *self._known()})

    def add(self, name: str, item: T, *, provider: str, override: bool = False) -> None:
        """Add an item.

        Args:
            name: its name.
            item: the item. Adding the same object again only changes the provider.
            provider: the distribution that it comes from.
            override: whether another object of that name may be replaced.

        Raises:
            PluginConflictError: another object has that name; names both providers.
        """
        with self._lock:
            known = self._items.get(name)
            if known is not None and known[0] is not item and not override:
                raise PluginConflictError(
                    f"two providers of the {self.what} {name!r}: {known[1]} has it, and "
                    f"{provider} brings another; uninstall one of them, or rename one"
                )
            self._items[name] = (item, provider)
            self.version += 1

    def remove(self, name: str) -> None:
        """Remove a name; do nothing if it is unknown."""
        with self._lock:
            self._items.pop(name, None)
            self.version += 1

    def provided_by(self, providers: set[str]) -> set[str]:
        """Return the names of certain providers."""
        return {name for name, (_, provider) in self._items.items() if provider in providers}

    def peek(self, name: str) -> T | None:
        """Return the item of a name if it is loaded, else ``None``; load nothing."""
        found = self._items.get(name)
        return None if found is None else found[0]

    def get(self, name: str) -> T | None:
        """Return the item of a name; load its provider if necessary.

        Returns:
            The item, or ``None`` if no provider has it.

        Raises:
            PluginLoadError: the provider did not load.
        """
        found = self._items.get(name)  # asked for several times per op
        if found is None and self._resolver is not None:
            self._resolver(name)
            found = self._items.get(name)
        return None if found is None else found[0]

    def provider(self, name: str) -> str | None:
        """Return the distribution of a loaded name, ``None`` for any other name."""
        found = self._items.get(name)
        return None if found is None else found[1]

    def names(self) -> list[str]:
        """Return the loaded names, sorted."""
        return sorted(self._items)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        for name in self.names():
            if (item := self.peek(name)) is not None:
                yield name, item

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None
