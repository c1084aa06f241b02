"""Programs of feops: unapplied ops with the structure of their operands and results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
import optree

from mplang_core.errors import TraceError
from mplang_core.ir.graph import Graph
from mplang_core.ir.source_line import at, is_skipped
from mplang_core.types import BaseType, DType, MPType, TensorType

PyTreeDef = optree.PyTreeSpec

NAMESPACE = "mplang"


_nests: set[type] = set()
_leaf_types: set[type] = set()
_nests_lock = threading.Lock()


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Flatten a nest of tuples, lists, dicts, named tuples, dataclasses and registered classes.

    Any other object is a leaf. ``None`` is an empty nest. The children of a dataclass are its
    fields, except those with ``metadata={"static": True}``, which become part of the structure.
    Dataclasses of mplang and its plugins are leaves. Classes are registered with JAX.

    Args:
        tree: the nest.
        is_leaf: returns whether a node is a leaf although it is a nest.

    Returns:
        The leaves in order, and the structure for :func:`unflatten`.

    Example:
        >>> leaves, structure = flatten({"w": [1, 2], "b": (3, None)})
        >>> leaves
        [3, 1, 2]
        >>> unflatten(structure, [30, 10, 20])
        {'w': [10, 20], 'b': (30, None)}
    """
    leaves, spec = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    unknown = {type(leaf) for leaf in leaves} - _leaf_types
    if not unknown:
        return leaves, spec
    for cls in unknown:
        known = [] if cls in _nests else [rule(cls) for rule in nest_rules]
        if any(known):
            _register(cls, *next(filter(None, known)))
        else:
            _leaf_types.add(cls)
    return flatten(tree, is_leaf)


def _dataclass_rule(cls: type) -> Any:
    if not is_dataclass(cls) or issubclass(cls, BaseType | MPType) or is_skipped(cls.__module__):
        return None
    every = fields(cls)
    static = tuple(f.name for f in every if f.metadata.get("static"))
    parts = tuple(f.name for f in every if f.name not in static)

    def take_apart(nest: Any) -> tuple[list[Any], tuple[Any, ...], tuple[str, ...]]:
        return [getattr(nest, n) for n in parts], tuple(getattr(nest, n) for n in static), parts

    def put_together(kept: Any, children: Iterable[Any]) -> Any:
        nest: Any = object.__new__(cls)  # its fields were checked when it was constructed
        for name, value in zip((*parts, *static), (*children, *kept), strict=True):
            object.__setattr__(nest, name, value)
        return nest

    return take_apart, put_together


nest_rules: list[Callable[[type], Any]] = [_dataclass_rule]
"""Rules of classes that are nests, the first one counts: ``None``, or how to take one apart into
children and the rest, and how to put it together. Plugins insert those of their engines."""


def _register(cls: type, take_apart: Any, put_together: Any) -> None:
    with _nests_lock:
        if cls not in _nests:
            optree.register_pytree_node(cls, take_apart, put_together, namespace=NAMESPACE)
            _nests.add(cls)


def unflatten(spec: PyTreeDef, leaves: Sequence[Any]) -> Any:
    """Return the nest of a structure and leaves; the inverse of :func:`flatten`.

    Args:
        spec: the structure.
        leaves: as many leaves as the structure has.

    Raises:
        ValueError: the number of leaves differs.
    """
    return optree.tree_unflatten(spec, leaves)


@dataclass(frozen=True, slots=True)
class PFunction:
    """Unapplied op: an opcode with its attributes, operand types and result types.

    Attributes:
        fn_type: the opcode, ``dialect.op``.
        ins_info: base types of the operands.
        outs_info: base types of the results.
        attrs: the attributes; that of compiled programs is ``code``.
        regions: the regions by name, of an op that runs others.
    """

    fn_type: str
    ins_info: tuple[BaseType, ...]
    outs_info: tuple[BaseType, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    regions: Mapping[str, Graph] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FeSignature:
    """Signature of a function: its arguments with types in place of values.

    Attributes:
        args: a tuple of nests. A leaf that is a base type denotes an operand, and so does one with
            shape and dtype but without data, such as a ``jax.ShapeDtypeStruct``; any other leaf is
            a literal that is compiled in.
        kwargs: literals by keyword.

    Example:
        >>> from mplang_core.types import TensorType
        >>> sig = FeSignature((TensorType("f32", (3,)), {"scale": 2.0}))
        >>> [str(t) for t in sig.operands]
        ['f32[3]']
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        leaves, spec = flatten(self.args)
        if any(map(_is_shape, leaves)):
            types = [TensorType(DType.of(x.dtype), x.shape) if _is_shape(x) else x for x in leaves]
            object.__setattr__(self, "args", tuple(unflatten(spec, types)))

    @property
    def operands(self) -> tuple[BaseType, ...]:
        """The base types among the leaves, in order."""
        leaves, _ = flatten(self.args)
        return tuple(leaf for leaf in leaves if isinstance(leaf, BaseType))

    def fill(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments with one value in place of each operand.

        Args:
            operands: the values, in the order of :attr:`operands`.
        """
        leaves, spec = flatten(self.args)
        values = iter(operands)
        filled = [next(values) if isinstance(leaf, BaseType) else leaf for leaf in leaves]
        return tuple(unflatten(spec, filled))


def _is_shape(leaf: Any) -> bool:
    """Return whether a leaf has shape and dtype, and no data."""
    described = hasattr(leaf, "shape") and hasattr(leaf, "dtype")
    return described and not hasattr(leaf, "__array__") and not isinstance(leaf, BaseType)


@dataclass(frozen=True, slots=True)
class FeProgram:
    """Result of a feop: an op with its operands, independent of the Python function.

    Iteration yields ``pfunc, inputs, out_tree``.

    Attributes:
        pfunc: the op.
        in_tree: the structure of the operands.
        out_tree: the structure of the results.
        inputs: the operands, if the feop was called with values.
        consts: arrays that the function closed over; operands after the inputs.
        meta: information for tools (``name``, ``dialect``, ``version``, …).
    """

    pfunc: PFunction
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    inputs: tuple[Any, ...] = ()
    consts: tuple[np.ndarray[Any, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    def bound(self, *args: Any) -> FeProgram:
        """Return the program with operands.

        Args:
            *args: nests of values (with a ``base_type``), nested as when the program was made.

        Raises:
            TraceError: they are nested in another way, are not values, or have other types.
        """
        leaves, spec = flatten(args)
        takes = self.pfunc.ins_info[: len(self.pfunc.ins_info) - len(self.consts)]
        found = tuple(getattr(leaf, "base_type", type(leaf).__name__) for leaf in leaves)
        nested = self.in_tree.num_leaves != len(takes) or spec == self.in_tree
        if not args and self.inputs:
            return self
        if found != takes or not nested:
            raise TraceError(
                f"{at()}a program of {self.pfunc.fn_type} takes values of "
                f"({', '.join(map(str, takes))}), nested as {self.in_tree}, got "
                f"({', '.join(map(str, found))}); a number becomes a value by mp.constant",
                code="T005",
            )
        return replace(self, inputs=tuple(leaves))

    def __iter__(self) -> Iterator[Any]:
        yield self.pfunc
        yield list(self.inputs)
        yield self.out_tree


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """Placeholder of an operand while a program is built: a type without data.

    Attributes:
        base_type: the type that the feop gets.
        value: the value that it represents.
    """

    base_type: BaseType
    value: Any = None

    @property
    def type(self) -> BaseType:
        """The base type; feops do not depend on the holders of a value."""
        return self.base_type


@dataclass(frozen=True, slots=True)
class FeBuilder:
    """Deferred program: the second phase of a feop that is first configured, then compiled.

    A compiler gets the signature at once; other feops return a builder, which compiles when
    the arguments are known.

    Attributes:
        build: returns the program for a signature.
    """

    build: Callable[[FeSignature], FeProgram]

    def __call__(self, *args: Any, **kwargs: Any) -> FeProgram:
        """Return the program for arguments.

        Args:
            *args: nests of values (with a ``base_type``) and literals.
            **kwargs: literals.

        Returns:
            The program; its ``inputs`` are the values.
        """
        leaves, spec = flatten(args)
        values = tuple(leaf for leaf in leaves if hasattr(leaf, "base_type"))
        abstract = [leaf.base_type if hasattr(leaf, "base_type") else leaf for leaf in leaves]
        made = self.build(FeSignature(tuple(unflatten(spec, abstract)), kwargs))
        return replace(made, inputs=values)
