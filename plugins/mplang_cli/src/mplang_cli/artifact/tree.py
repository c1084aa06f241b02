"""Structure of nested arguments and results, as plain data."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

from mplang_analysis.ext import quoted
from optree import PyTreeKind

from mplang_cli.artifact.data import Data
from mplang_core.ext import PyTreeDef, TraceError, at, flatten

MAX_DEPTH = 100
Key = str | int


class Tree(Data, frozen=True):
    """A nest of tuples, lists, dicts, named tuples and ``None``, without its leaves.

    Attributes:
        kind: what this node is.
        children: its parts, those of a dict sorted by key.
        keys: the keys of a dict (str and int), or the fields of a named tuple.
        name: the class of a named tuple; one of that name and fields is made anew.

    Example:
        >>> tree = Tree.of(flatten({"w": [1, 2], "b": (3, None)})[1])
        >>> print(tree, list(tree.paths()))
        {b: (*, None), w: [*, *]} [('b', 0), ('w', 0), ('w', 1)]
        >>> tree.build([7, 8, 9])
        {'b': (7, None), 'w': [8, 9]}
    """

    kind: Literal["leaf", "none", "tuple", "list", "dict", "named"]
    children: tuple[Tree, ...] = ()
    keys: tuple[Key, ...] = ()
    name: str = ""

    @classmethod
    def of(cls, spec: PyTreeDef, depth: int = 0) -> Tree:
        """Return how something is nested.

        Raises:
            TraceError: a part of it is of another class, or has keys that are not plain data.
        """
        kind, node = _KINDS.get(spec.kind), cast(Any, spec.type)
        if kind is None or depth > MAX_DEPTH:
            deep = f"these are nested deeper than {MAX_DEPTH}"
            what = deep if kind else f"one is of class {getattr(node, '__name__', node)}"
            raise TraceError(
                f"{at()}an artifact nests arguments and results in tuples, lists, dicts and named "
                f"tuples, but {what}; make it one of these",
                code="T016",
            )
        keys = tuple(spec.entries()) if kind in ("dict", "named") else ()
        if kind == "named":
            keys = node._fields
        if not all(type(key) in (str, int) for key in keys):
            raise TraceError(
                f"{at()}the keys of a dict in an artifact are str or int, got {keys}", code="T016"
            )
        children = tuple(cls.of(child, depth + 1) for child in spec.children())
        return cls(kind, children, keys, node.__name__ if kind == "named" else "")

    def build(self, leaves: Sequence[Any]) -> Any:
        """Return the nest with leaves, as many as :meth:`paths` gives."""
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.kind == "leaf":
            return next(leaves)
        parts = [child._build(leaves) for child in self.children]
        match self.kind:
            case "tuple":
                return tuple(parts)
            case "list":
                return parts
            case "dict":
                return dict(zip(self.keys, parts, strict=True))
            case "named":
                return _named_tuple(self.name, self.keys)(*parts)
        return None

    def paths(self) -> Iterator[tuple[Key, ...]]:
        """Yield the place of each leaf: keys, fields and indices from the outside."""
        if self.kind == "leaf":
            yield ()
        for key, child in zip(self.keys or range(len(self.children)), self.children, strict=True):
            yield from ((key, *path) for path in child.paths())

    def check(self) -> int:
        """Return the number of leaves.

        Raises:
            ValueError: it is none that :meth:`of` gives.
        """
        order = list(range(sum(1 for _ in self.paths())))
        leaves, spec = flatten(self.build(order))
        if leaves != order or Tree.of(spec) != self:
            raise ValueError(f"its nesting cannot be rebuilt: {str(self)[:200]}")
        return len(order)

    def __str__(self) -> str:
        parts = [str(child) for child in self.children]
        named = [f"{_shown(key)}: {part}" for key, part in zip(self.keys, parts, strict=False)]
        match self.kind:
            case "leaf":
                return "*"
            case "tuple":
                return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
            case "list":
                return f"[{', '.join(parts)}]"
            case "dict":
                return "{" + ", ".join(named) + "}"
            case "named":
                return f"{quoted(self.name, None)}({', '.join(named)})"
        return "None"


def _shown(key: Key) -> str:
    return quoted(str(key), None)


_KINDS: dict[PyTreeKind, Any] = {
    PyTreeKind.LEAF: "leaf",
    PyTreeKind.NONE: "none",
    PyTreeKind.TUPLE: "tuple",
    PyTreeKind.LIST: "list",
    PyTreeKind.DICT: "dict",
    PyTreeKind.NAMEDTUPLE: "named",
}
LEAF = Tree("leaf")


@functools.lru_cache(maxsize=256)
def _named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields)  # checks that all are identifiers
