"""Op that gives a table of numbers its declared types, exactly."""

from __future__ import annotations

from mplang_core import TableType, simple_op
from mplang_tables.columns import DTYPES, check_table
from mplang_tables.ranges import ALIKE
from mplang_tables.replacing import CASTS

_TABLE = {"kind": "Table"}


@simple_op("table.cast", interfaces=[ALIKE, CASTS], reads=(), inputs=(_TABLE,), outputs=(_TABLE,))
def cast(x: TableType, *, type: TableType) -> TableType:
    """Cast columns of numbers to declared types, without rounding or truncation.

    It makes a table with names and types of what came out of a computation, which has one type of
    numbers.

    Args:
        x: a table.
        type: the declared type: the columns of the table, of which bools, integers and floats may
            have other types than there.

    Returns:
        A table of that type. Nulls stay null.

    Raises:
        TraceError: it has other columns, or a type that no column of numbers is cast to; decimals,
            dates and times are made of integers by :func:`from_integers`.
        KernelError: a number is none of the type, such as 0.5 of ``int64``; names the column, no
            value. Raised at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_tables import cast, from_tensor
        >>> kind = mp.TableType((("kids", "int8"), ("pay", "double")))
        >>> def program(x):
        ...     x = mp.device("P0")(from_tensor)(mp.put("P0", x), columns=("kids", "pay"))
        ...     return mp.device("P0")(cast)(x, type=kind)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program, [[2.0, 17.5], [0.0, 20.0]])).to_pylist()
        [{'kids': 2, 'pay': 17.5}, {'kids': 0, 'pay': 20.0}]
    """
    check_table(x)
    check_table(type)
    names, wanted = ([name for name, _ in each.columns] for each in (x, type))
    if names != wanted:
        raise TypeError(f"the columns are {', '.join(names)}, declared are {', '.join(wanted)}")
    for (name, before), (_, after) in zip(x.columns, type.columns, strict=True):
        if before != after and not {before, after} <= DTYPES.keys():
            raise TypeError(
                f"column {name!r} is of the type {before}, and is not cast to {after}: bools, "
                "integers and floats are cast; decimals, dates and times are made of integers in "
                "a unit (mplang_tables.from_integers)"
            )
    return type
