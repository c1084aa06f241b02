"""What a feop gives: an op that is not yet applied, and how its values are packed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
import optree

from mplang_core.types import BaseType, MPType

PyTreeDef = optree.PyTreeSpec

NAMESPACE = "mplang"


_nests: set[type] = set()
_nests_lock = threading.Lock()


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Take a nest of tuples, lists, dicts, named tuples, dataclasses and registered classes apart.

    Whatever is none of these is a leaf. ``None`` is an empty nest. A dataclass' fields are its
    parts, except for those with ``metadata={"static": True}``, which stay as they are; classes
    of mplang and its plugins are leaves.

    Args:
        tree: the nest.
        is_leaf: tells what is a leaf all the same.
    """
    leaves, spec = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    new = {type(leaf) for leaf in leaves if _is_new_nest(type(leaf))}
    if not new:
        return leaves, spec
    for cls in new:
        _register(cls)
    return flatten(tree, is_leaf)


def _is_new_nest(cls: type) -> bool:
    return (
        is_dataclass(cls)
        and cls not in _nests
        and not issubclass(cls, BaseType | MPType)
        and not cls.__module__.partition(".")[0].startswith("mplang_")
    )


def _register(cls: type) -> None:
    every = fields(cls)
    static = tuple(f.name for f in every if f.metadata.get("static"))
    parts = tuple(f.name for f in every if f.name not in static)

    def take_apart(nest: Any) -> tuple[list[Any], tuple[Any, ...], tuple[str, ...]]:
        return [getattr(nest, n) for n in parts], tuple(getattr(nest, n) for n in static), parts

    def put_together(kept: Any, children: Iterable[Any]) -> Any:
        nest: Any = object.__new__(cls)  # it was made, and checked, before
        for name, value in zip((*parts, *static), (*children, *kept), strict=True):
            object.__setattr__(nest, name, value)
        return nest

    with _nests_lock:
        if cls not in _nests:
            optree.register_pytree_node(
                cls,
                take_apart,
                put_together,
                path_entry_type=optree.DataclassEntry,
                namespace=NAMESPACE,
            )
            _nests.add(cls)


def unflatten(spec: PyTreeDef, leaves: Sequence[Any]) -> Any:
    """Put a nest together again."""
    return optree.tree_unflatten(spec, leaves)


@dataclass(frozen=True, slots=True)
class PFunction:
    """An op that is not yet applied: what to run, from which types to which.

    Attributes:
        fn_type: the opcode that a kernel is bound to, ``dialect.op``.
        ins_info: base types of the operands.
        outs_info: base types of the results.
        attrs: attributes, among them ``code`` for compiled programs.
    """

    fn_type: str
    ins_info: tuple[BaseType, ...]
    outs_info: tuple[BaseType, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FeSignature:
    """The expected arguments of a function, without their data.

    Attributes:
        args: a tuple of nests. A leaf that is a base type stands for an operand; any other
            leaf is a literal that becomes part of the program.
        kwargs: literals by keyword.

    Example:
        >>> from mplang_core.types import TensorType
        >>> sig = FeSignature((TensorType("f32", (3,)), {"scale": 2.0}))
        >>> [str(t) for t in sig.operands]
        ['f32[3]']
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def operands(self) -> tuple[BaseType, ...]:
        """The base types among the leaves, in order."""
        leaves, _ = flatten(self.args)
        return tuple(leaf for leaf in leaves if isinstance(leaf, BaseType))

    def fill(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments with one value in the place of each operand."""
        leaves, spec = flatten(self.args)
        values = iter(operands)
        filled = [next(values) if isinstance(leaf, BaseType) else leaf for leaf in leaves]
        return tuple(unflatten(spec, filled))


@dataclass(frozen=True, slots=True)
class FeProgram:
    """What a feop gives back. It can be run without the Python function that it came from.

    Iterating over it gives the triad of a simple op: ``pfunc, inputs, out_tree``.

    Attributes:
        pfunc: the op.
        in_tree: how the operands were nested.
        out_tree: how the results are nested.
        inputs: the operands, where the feop was called with values.
        consts: arrays that the function closed over; operands that follow the inputs.
        meta: facts for people and tools (``name``, ``dialect``, ``version``, …).
    """

    pfunc: PFunction
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    inputs: tuple[Any, ...] = ()
    consts: tuple[np.ndarray[Any, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        yield self.pfunc
        yield list(self.inputs)
        yield self.out_tree


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """Stands for a value while a program is made: it has a type, and no data.

    Attributes:
        base_type: what the feop is to see.
        value: what it stands for.
    """

    base_type: BaseType
    value: Any = None

    @property
    def type(self) -> BaseType:
        """The base type; which parties hold the value does not matter here."""
        return self.base_type


@dataclass(frozen=True, slots=True)
class FeBuilder:
    """A program that waits for its signature: the second phase of a two-phase feop.

    A compiler takes the signature at once; this is for a feop that is first configured with
    something else, and compiled when its arguments are known.

    Attributes:
        build: from a signature to the program.
    """

    build: Callable[[FeSignature], FeProgram]

    def __call__(self, *args: Any, **kwargs: Any) -> FeProgram:
        """Derive the signature of arguments, and build the program for it."""
        leaves, spec = flatten(args)
        values = tuple(leaf for leaf in leaves if hasattr(leaf, "base_type"))
        abstract = [leaf.base_type if hasattr(leaf, "base_type") else leaf for leaf in leaves]
        made = self.build(FeSignature(tuple(unflatten(spec, abstract)), kwargs))
        return replace(made, inputs=values)
