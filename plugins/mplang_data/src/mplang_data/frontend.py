"""``mp.dataset``: a data set of a party as a value of a program. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mplang_core as mp
from mplang_core import BaseType, ClusterSpec, MPObject, TableType
from mplang_core.ext import TraceError, at, device_of_party
from mplang_data.description import Description, Ranges, check_name, column_type
from mplang_data.known import Catalogue


def dataset(
    party: str,
    name: str,
    columns: Sequence[str] | None = None,
    *,
    match: Sequence[str] = (),
    type: BaseType | Mapping[str, str] | None = None,
) -> MPObject:
    """Return a data set of a party, which names it in its catalogue.

    The program has its name and its type, and no path and no row. The type is that of the host's
    catalogue, or of :func:`mplang_data.catalogue`; the party compares it with its own when the
    program runs.

    Args:
        party: the name of the party, or of its PPU, such as ``"P0"``.
        name: the name of the data set.
        columns: the columns to read; all that are offered by default.
        match: columns to match on by ``mp.match``, which the owner offers for that alone: nothing
            else may be made of them.
        type: the type, in place of that of a catalogue: a ``TableType``, a ``TensorType``, or the
            types of columns by name.

    Returns:
        A value at that party: a table, or a tensor.

    Raises:
        TraceError: there is no such party, its catalogue is not known or has no such data set, or
            a column is not offered; shows the line.

    Example:
        >>> import mplang_core as mp
        >>> people = {"name": ["Ann", "Bo"], "age": [17, 44]}
        >>> def adults():
        ...     t = mp.dataset("bank", "people", ["age"])
        ...     return mp.device("P0")(lambda t: t.filter(t.age >= 18))(t)
        >>> cluster = mp.ClusterSpec([{"name": "bank"}])
        >>> with mp.Simulator(cluster, data={"bank": {"people": people}}) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, adults)).to_pylist()
        [{'age': 44}]
    """
    from mplang_data.ops import read  # which its plugin registers, and takes back if it fails

    ctx = mp.cur_ctx()
    cluster = ctx.cluster_spec
    assert isinstance(cluster, ClusterSpec)
    device = device_of_party(cluster, party, read)
    owner = cluster.nodes[device.mask.first].name
    try:
        check_name(name)
        for names in (columns, match):
            if isinstance(names, str):
                raise TypeError(f"columns are a list, such as [{names!r}]")
        if type is None:
            asked = f"data set {name!r} of {owner}"
            schema = ctx.look_up(asked, lambda known: _look_up(known, owner, name, columns, match))
        else:
            schema = _Schema(_given(type, None if columns is None else [*columns, *match]))
    except (TypeError, ValueError) as error:
        raise TraceError(f"{at()}data set {name!r} of {owner}: {error}", code="T014") from None
    attributes = {"name": name, "type": schema.kind, "ranges": tuple(schema.ranges)}
    made: MPObject = mp.device(device.name)(read)(**attributes)
    return made


def published_values(party: str, name: str, column: str) -> tuple[str | int, ...]:
    """Return the values that a column of a data set may have, as its owner publishes them.

    They stand in the program that is traced, and the owner's worker checks the data by them where
    it is read. Nulls are none of them.

    Args:
        party: the name of the party, or of its PPU, such as ``"P0"``.
        name: the name of the data set.
        column: a column of strings, integers or bools.

    Returns:
        The values, in the order of the catalogue: the codes of :func:`mplang_tables.encode`.

    Raises:
        TraceError: there is no such party, its catalogue is not known or has no such data set, or
            the column has no published values; shows the line.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_data import published_values
        >>> from mplang_tables import encode
        >>> people = {"columns": {"sex": "string"}, "values": {"sex": ["f", "m"]}}
        >>> def program():
        ...     t = mp.dataset("node0", "people")
        ...     values = published_values("node0", "people", "sex")
        ...     print(values)
        ...     return mp.device("P0")(encode)(t, column="sex", values=values)
        >>> with mp.catalogue({"node0": {"people": people}}):
        ...     traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), program)
        ('f', 'm')
    """
    from mplang_data.ops import read  # which its plugin registers, and takes back if it fails

    ctx = mp.cur_ctx()
    cluster = ctx.cluster_spec
    assert isinstance(cluster, ClusterSpec)
    owner = cluster.nodes[device_of_party(cluster, party, read).mask.first].name
    asked = f"values of column {column!r} in data set {name!r} of {owner}"
    try:
        check_name(name)
        return ctx.look_up(asked, lambda known: _look_up_values(known, owner, name, column))
    except (TypeError, ValueError) as error:
        raise TraceError(f"{at()}data set {name!r} of {owner}: {error}", code="T014") from None


@dataclass(frozen=True, slots=True)
class _Schema:
    """Schema of a named data set: its type, and published ranges."""

    kind: BaseType
    ranges: Ranges = ()

    def __str__(self) -> str:
        return f"{self.kind}, ranges {list(self.ranges)}" if self.ranges else str(self.kind)


def _look_up(
    known: Catalogue | None,
    owner: str,
    name: str,
    columns: Sequence[str] | None,
    match: Sequence[str],
) -> _Schema:
    """Return what a catalogue has on some columns of a data set.

    Raises:
        TypeError: it has no such data set, or no such column.
    """
    described = _described(known, owner, name)
    if columns is None and not match:
        kind = described.type
    else:
        kind = described.of(list(described.columns) if columns is None else columns, match)
    return _Schema(kind, described.ranges_of(kind))


def _look_up_values(
    known: Catalogue | None, owner: str, name: str, column: str
) -> tuple[str | int, ...]:
    """Return the published values of a column.

    Raises:
        TypeError: a catalogue has none.
    """
    described = _described(known, owner, name)
    described.of([column])
    if column not in described.values:
        raise TypeError(
            f"the values of column {column!r} are not published; its owner names them in the "
            "worker's `data` as `values`, or the program lists them"
        )
    return described.values[column]


def _described(known: Catalogue | None, owner: str, name: str) -> Description:
    """Return the description of a data set in a catalogue.

    Raises:
        TypeError: there is none.
    """
    if known is None:
        raise TypeError(
            "its schema is not known, as the program is compiled for no host, or one without data "
            "sets. Compile it inside of `with mp.catalogue(…):`, by `mplang compile --catalogue "
            "FILE`, or for a host by compiled.trace(host), or give its type"
        )
    described = known.get(owner, {}).get(name)
    if described is None:
        raise TypeError(_unknown(owner, name, list(known.get(owner, {}))))
    return described


def _given(type: BaseType | Mapping[str, str], columns: Sequence[str] | None) -> BaseType:
    if isinstance(type, Mapping):
        if not all(isinstance(kind, str) for kind in type.values()):
            raise TypeError(f"types of columns are texts, such as 'int64', got {type}")
        type = TableType(tuple((name, column_type(kind)) for name, kind in type.items()))
    if columns is None:
        return type
    if not isinstance(type, TableType):
        raise TypeError(f"{type} has no columns")
    return Description(columns=dict(type.columns)).of(columns)


def _unknown(party: str, name: str, known: list[str]) -> str:
    there = f"you may read {', '.join(known)}" if known else "you may read none of its data sets"
    return (
        f"not found: {there}. Its owner names it in the worker's `data`, and you among its "
        "`readers`; without a host, give a catalogue by mp.catalogue(…) or `mplang compile "
        "--catalogue FILE`, or its type"
    )
