"""Intervals of inputs: declared by the user, taken from a sample, or given by the type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import optree

from mplang_analysis.interval import UNKNOWN, Interval, hull
from mplang_analysis.op_traits import base_of
from mplang_analysis.parameters import parameter_names
from mplang_analysis.subject import program_of
from mplang_core import DType, TensorType, TracedFunction
from mplang_core.ext import AnyType, TraceError, at, flatten, read_range

Key: TypeAlias = str | int
"""A parameter: its name, its position, or the name of a part of it, ``model.w``."""

Basis: TypeAlias = Literal["known", "declared", "observed"]
"""Why an interval holds: it follows from the program alone, from declarations, or of a sample."""

MARGIN = 0.1  # of the width of a sample, on both sides


@dataclass(frozen=True, slots=True)
class Given:
    """An interval, and why it holds."""

    interval: Interval = UNKNOWN
    basis: Basis = "known"


@dataclass(frozen=True, slots=True)
class _Leaf:
    """An input of the graph: of which argument it is, and its name."""

    argument: Key
    position: int | None
    name: str

    def is_in(self, key: Key) -> bool:
        if isinstance(key, int):
            return key == self.position
        return key in (self.name, self.argument) or self.name.startswith(f"{key}.")


def given(subject: Any, declared: Mapping[Key, Any], sample: Any) -> tuple[list[str], list[Given]]:
    """Return the names and intervals of a program's inputs.

    Args:
        subject: a program, or a function that was traced or compiled.
        declared: ranges by parameter.
        sample: a tuple of arguments, or arguments by parameter; ``None`` for one that has none.

    Raises:
        TraceError: there is no such parameter, or a range or sample does not suit it.
    """
    leaves, inputs = list(_leaves(subject)), program_of(subject).graph.inputs
    leaves += [_Leaf(name, None, name) for name in map("captured {}".format, range(len(inputs)))]
    leaves = leaves[: len(inputs)]
    found = [Given(of_type(value.type)) for value in inputs]
    for key, argument in _by_key(sample):
        for i, array in _aligned(leaves, key, argument):
            found[i] = Given(_observed(array), "observed")
    for key, ends in declared.items():
        for i in _chosen(leaves, key):
            found[i] = Given(Interval(*read_range(ends, f"the range of {key!r}")), "declared")
    return [leaf.name for leaf in leaves], found


def of_type(kind: AnyType) -> Interval:
    """Return what the type tells: of bools, and of integers with up to 16 bits.

    Example:
        >>> print(of_type(TensorType("u8")), of_type(TensorType("i64")))
        [0, 255] not known
    """
    base = base_of(kind)
    plain = base if isinstance(base, TensorType) else getattr(base, "plain", None)
    if not isinstance(plain, TensorType):
        return UNKNOWN
    if plain.dtype is DType.BOOL:
        return Interval(0, 1)
    if not plain.dtype.is_integer or plain.dtype.numpy.itemsize > 2:
        return UNKNOWN
    limits = np.iinfo(plain.dtype.numpy)
    return Interval(int(limits.min), int(limits.max))


def _leaves(subject: Any) -> Iterator[_Leaf]:
    traced = getattr(subject, "traced", subject)
    if not isinstance(traced, TracedFunction):
        inputs = program_of(subject).graph.inputs
        yield from (_Leaf(str(i), i, str(i)) for i in range(len(inputs)))
        return
    names = parameter_names(getattr(subject, "fn", None) or (lambda: None), len(traced.in_leaves))
    paths = optree.treespec_paths(traced.in_struct)
    for path, leaf in zip(paths, traced.in_leaves, strict=True):
        if isinstance(leaf, AnyType):
            by_position, argument, *parts = path
            position = argument if by_position == 0 else None
            known = position is not None and position < len(names)
            name = names[position] if known and position is not None else str(argument)
            yield _Leaf(name, position, ".".join(map(str, [name, *parts])))


def _chosen(leaves: Sequence[_Leaf], key: Key) -> list[int]:
    found = [i for i, leaf in enumerate(leaves) if leaf.is_in(key)]
    if not found:
        names = ", ".join(leaf.name for leaf in leaves) or "none"
        raise TraceError(
            f"{at()}the program has no parameter {key!r}; it has: {names}", code="T017"
        )
    return found


def _by_key(sample: Any) -> Iterator[tuple[Key, Any]]:
    if sample is None:
        return
    if not isinstance(sample, Mapping | tuple | list):
        raise TraceError(
            f"{at()}a sample is a tuple of arguments, or a dict by parameter, got a "
            f"{type(sample).__name__}",
            code="T017",
        )
    pairs = sample.items() if isinstance(sample, Mapping) else enumerate(sample)
    yield from ((key, argument) for key, argument in pairs if argument is not None)


def _aligned(leaves: Sequence[_Leaf], key: Key, argument: Any) -> Iterator[tuple[int, Any]]:
    chosen = _chosen(leaves, key)
    arrays = [argument] if len(chosen) == 1 else flatten(argument)[0]
    if len(arrays) != len(chosen):
        raise TraceError(
            f"{at()}the sample of {key!r} has {len(arrays)} arrays, expected {len(chosen)}",
            code="T017",
        )
    return zip(chosen, arrays, strict=True)


def _observed(array: Any) -> Interval:
    """Return the range of a sample with a margin, which keeps the sign."""
    found = np.asarray(array)
    if found.dtype.kind not in "fiub":
        raise TraceError(
            f"{at()}a sample is of real numbers, got an array of {found.dtype}", code="T017"
        )
    if found.size == 0:
        return UNKNOWN
    ends = hull([found.min().item(), found.max().item()])
    if not ends.known or found.dtype.kind == "b":
        return ends
    margin = MARGIN * (float(ends.high) - float(ends.low))
    low, high = ends.low - margin, ends.high + margin
    return Interval(
        max(low, 0.0) if ends.low >= 0 else low, min(high, 0.0) if ends.high <= 0 else high
    )
