"""Tables that stand in a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mplang_core import FeProgram
from mplang_core.ext import Feop, TraceError, at, meta_of
from mplang_tables.ops import literal


def table(data: Mapping[str, Sequence[Any]] | Any) -> Feop:
    """Make a feop that gives a table at the party that runs it.

    The program contains the data, so all who get the program can read it: this is for examples and
    tests.

    Args:
        data: columns by name, or a ``pyarrow.Table``. ``None`` is a null.

    Returns:
        A feop without operands, whose result is a table of the data's columns and types.

    Raises:
        TraceError: it is not a table, or the type of a column is not supported.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     people = mp.device("P0")(table({"age": [17, 18]}))()
        ...     return mp.device("P0")(lambda t: t.filter(t.age > 17))(people)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()
        [{'age': 18}]
    """
    from mplang_tables import arrow

    try:
        found = arrow.normalize(data)
    except (TypeError, ValueError) as error:
        raise TraceError(f"{at()}{error}") from error
    rows, buffers = arrow.write(found)
    attrs = {
        "rows": rows,
        "data": tuple(buffer.to_pybytes() for buffer in buffers),
        "type": arrow.type_of(found),
    }

    def make() -> FeProgram:
        return literal(**attrs)

    made = cast(Feop, make)
    made.__feop__, made.__feop_meta__ = True, meta_of(literal)
    return made
