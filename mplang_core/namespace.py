"""Named things, each with the one who provides it.

Ops, types, feops, kernels, device kinds and backends are all found by name, all come from
the core or from a plugin, and all must not silently replace each other. That is this class.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from mplang_core.errors import PluginConflictError

T = TypeVar("T")


class Namespace(Generic[T]):
    """A table from names to things, filled on demand.

    Args:
        what: what the things are, for messages (``"op"``, ``"kernel"``).
        fallback: another namespace of the same kind, asked where this one has no entry.

    Attributes:
        version: changes whenever something is added or removed.

    Example:
        >>> colours = Namespace[int]("colour")
        >>> colours.add("red", 0xFF0000, provider="mplang-core")
        >>> colours.get("red") == 0xFF0000
        True
    """

    def __init__(self, what: str, fallback: Namespace[T] | None = None) -> None:
        self.what = what
        self._fallback = fallback
        self._items: dict[str, tuple[T, str]] = {}
        self._lock = threading.RLock()
        self._resolver: Callable[[str], None] | None = None
        self._known: Callable[[], list[str]] = list
        self.version = 0

    def set_resolver(
        self, resolver: Callable[[str], None] | None, known: Callable[[], list[str]] = list
    ) -> None:
        """Install what is asked to load the provider of a name that is not here yet.

        Args:
            resolver: loads the provider of a name.
            known: returns the names that it could load.
        """
        self._resolver = resolver
        self._known = known

    def known(self) -> list[str]:
        """Return the names that are here, and those that could be loaded."""
        return sorted({*self.names(), *self._known()})

    def add(self, name: str, item: T, *, provider: str, override: bool = False) -> None:
        """Add one thing.

        Args:
            name: its name.
            item: the thing. Adding the same object again only notes the new provider.
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
        """Forget a name; nothing happens if it is unknown."""
        with self._lock:
            self._items.pop(name, None)
            self.version += 1

    def provided_by(self, providers: set[str]) -> set[str]:
        """Return the names that came from certain providers."""
        return {name for name, (_, provider) in self._items.items() if provider in providers}

    def peek(self, name: str) -> T | None:
        """Return the thing of that name if it is here already; loads nothing."""
        found = self._items.get(name)
        if found is not None:
            return found[0]
        return self._fallback.peek(name) if self._fallback is not None else None

    def get(self, name: str) -> T | None:
        """Return the thing of that name, loading its provider if need be, or ``None``."""
        found = self.peek(name)
        if found is None and self._resolver is not None:
            self._resolver(name)
            found = self.peek(name)
        if found is None and self._fallback is not None:
            found = self._fallback.get(name)
        return found

    def provider(self, name: str) -> str | None:
        """Return the distribution that a loaded name came from."""
        found = self._items.get(name)
        if found is not None:
            return found[1]
        return self._fallback.provider(name) if self._fallback is not None else None

    def names(self) -> list[str]:
        """Return the names loaded so far, sorted."""
        inherited = self._fallback.names() if self._fallback is not None else []
        return sorted({*self._items, *inherited})

    def __iter__(self) -> Iterator[tuple[str, T]]:
        for name in self.names():
            item = self.peek(name)
            if item is not None:
                yield name, item

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None
