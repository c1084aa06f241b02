"""Rows and cells that are padded, so that their shape does not tell how many there are."""

from __future__ import annotations

from typing import Any, NamedTuple


class Padded(NamedTuple):
    """Rows that are padded to a bound, and which of them, or which of their cells, are there.

    It is a nest of two tensors, so it moves, is sealed and passed to functions as one. Its methods
    are for functions of arrays, such as those that JAX traces: padding counts for nothing in them,
    whatever has been computed on it.

    Attributes:
        values: the rows; shape ``[bound, …]``.
        valid: whether a row is there; bool of shape ``[bound]``. Where each cell is there or not,
            as :func:`to_masked` makes it, it has the shape of the values.

    Example:
        >>> import numpy as np
        >>> ages = Padded(np.array([[20.0], [40.0], [0.0]]), np.array([True, True, False]))
        >>> ages.mean(), int(ages.count())
        (array([30.]), 2)
    """

    values: Any
    valid: Any

    def count(self) -> Any:  # type: ignore[override]  # a tuple's counts something else
        """Return the number of rows that are there; an integer without shape, or one per column."""
        return self.valid.sum(axis=0)

    def filled(self, value: Any = 0) -> Any:
        """Return the rows, with a value in place of what is not there.

        Args:
            value: a number.

        Raises:
            TypeError: the rows are not arrays.
        """
        if not hasattr(self.values, "__array_namespace__"):
            raise TypeError(
                "a Padded is computed on by functions of arrays, at a device: "
                "mp.device('P0')(lambda p: p.mean())(padded)"
            )
        valid = self.valid.reshape(self.valid.shape + (1,) * (self.values.ndim - self.valid.ndim))
        return self.values.__array_namespace__().where(valid, self.values, value)

    def sum(self) -> Any:
        """Return the sum over the rows that are there; shape ``values.shape[1:]``."""
        return self.filled().sum(axis=0)

    def mean(self) -> Any:
        """Return the mean over the rows that are there.

        Returns:
            An array of the shape ``values.shape[1:]``. Without rows NaN in plain, and any number
            on shares: a private number of rows is not told by an error.
        """
        return self.sum() / self.count()
