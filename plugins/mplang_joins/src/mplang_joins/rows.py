"""Operands and results of a secret join on shares. Imports no Arrow and no JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

Tensor: TypeAlias = Any
"""A value that is a tensor where a program is traced, or its numbers where they are there."""

How: TypeAlias = Literal["inner", "left", "semi", "anti"]
"""Which rows a join gives; see :func:`mplang_joins.join`."""


class Side(NamedTuple):
    """A table of a join, as :func:`mplang_joins.ops.enter` makes it.

    Attributes:
        tokens: of its keys; ``[rows]``.
        there: whether a row is there; ``[rows]``. ``None`` if a join does not ask for it.
        columns: its numbers by column; ``[rows]`` each.
    """

    tokens: Tensor
    there: Tensor
    columns: Mapping[str, Tensor]


class JoinedRows(NamedTuple):
    """Rows of several tables, aligned by their keys, on secret shares.

    It is a nest of tensors of one length, which is that of all tables' bounds together, so it moves
    and is passed to functions as one. Where a row is not ``valid`` it stands for nothing, and its
    numbers are zero. Nobody knows which rows these are, nor how many. The order is one that tells
    nothing.

    Attributes:
        columns: the numbers by column; integers have 64 bits, a bool is 0 or 1.
        valid: whether a row is there; bool.
        matched: of a left join, by party whether its table has the row's key; bool. Else empty.

    Example:
        >>> import numpy as np
        >>> joined = JoinedRows({"price": np.array([5, 0, 7])}, np.array([True, False, True]), {})
        >>> int(joined.columns["price"].sum()), int(joined.valid.sum())
        (12, 2)
    """

    columns: dict[str, Tensor]
    valid: Tensor
    matched: dict[str, Tensor]
