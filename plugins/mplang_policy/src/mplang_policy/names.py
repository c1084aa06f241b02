"""Names that the rules of a party may have: of coordinators, parties, data sets and columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mplang_analysis import DATA_SET, MAX_NAME
from mplang_analysis.ext import guard_functions

from mplang_core.ext import ConfigError

LOCAL = "local"
"""What the coordinator of a worker without certificates is called."""

OTHER = "other:"
"""Prefix of the column that stands for data which is in no data set, as what was put."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names that a party's rules may use; others count as mistakes.

    Attributes:
        known: by the type of the entity, its names; any are there of a type that is not listed.
        units: for each data set the column by which its units differ, if it has one.
        columns: the columns of tables by name, as ``people.age``, with their types; a type is empty
            if it is unknown.
        readers: for each data set the coordinators that may name it.
        match: columns that may be matched on, and nothing else.

    Example:
        >>> names = Names.of({"name": "bank", "data": {"people": {"columns": {"age": "int64"}}}})
        >>> names.unknown("Column", "people.age"), names.unknown("Column", "people.agge")
        (False, True)
        >>> names.unknown("Aggregate", "mean(people.age)")
        False
    """

    known: Mapping[str, frozenset[str]]
    units: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    readers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    match: frozenset[str] = frozenset()

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Names:
        """Return the names of a worker.

        Args:
            fields: its configuration, as plain data.

        Raises:
            ConfigError: the name of a column is too long for labels.
        """
        coordinators = frozenset(map(str, fields.get("coordinators") or ()))
        if not fields.get("tls"):
            coordinators |= {LOCAL}
        data = fields.get("data") or {}
        columns = frozenset(_columns(data))
        known = {
            "Coordinator": coordinators,
            "Host": coordinators,
            "DataSet": frozenset(data),
            "Column": columns,
            "Everyone": frozenset(["everyone"]),
        }
        if fields.get("peers") is not None:
            known["Party"] = frozenset(fields["peers"]) | {fields.get("name", "")}
        units = {
            name: str(each["unit"])
            for name, each in data.items()
            if isinstance(each, Mapping) and each.get("unit")
        }
        readers = {
            name: frozenset(
                map(str, (each.get("readers") or ()) if isinstance(each, Mapping) else ())
            )
            for name, each in data.items()
        }
        match = frozenset(
            f"{name}.{column}"
            for name, each in data.items()
            if isinstance(each, Mapping)
            for column in each.get("match") or ()
        )
        return cls(known, units, dict(_types(data)), readers, match)

    def seen_by(self, coordinator: str) -> Names:
        """Return the names that a coordinator knows of; others' data sets are as if not there.

        Args:
            coordinator: the coordinator.
        """
        if "DataSet" not in self.known:
            return self
        seen = {name for name, readers in self.readers.items() if coordinator in readers}
        known = {
            **self.known,
            "DataSet": self.known["DataSet"] & seen,
            "Column": frozenset(each for each in self.known["Column"] if _set_of(each) in seen),
        }
        units = {name: unit for name, unit in self.units.items() if name in seen}
        columns = {name: kind for name, kind in self.columns.items() if _set_of(name) in seen}
        readers = {name: self.readers[name] for name in seen}
        return Names(known, units, columns, readers, self.match)

    def unknown(self, kind: str, name: str) -> bool:
        """Return whether an entity is not there."""
        if kind == "Column" and name.startswith(OTHER):
            return False
        if kind == "Aggregate" and "Column" in self.known:
            function, column = parts_of(name)
            return function not in guard_functions() or column not in self.known["Column"]
        return kind in self.known and name not in self.known[kind]

    def offered(self, kind: str) -> list[str]:
        """Return what entities a rule may name; of aggregates those that a guard may tell.

        Args:
            kind: the type of the entities.

        Example:
            >>> pay = {"columns": {"pay": "int64", "name": "string"}}
            >>> Names.of({"data": {"people": pay}}).offered("Aggregate")[:3]
            ['count(people.name)', 'count(people.pay)', 'histogram(people.name)']
        """
        if kind != "Aggregate":
            return sorted(self.known.get(kind, ()))
        return sorted(
            {
                f"{function.name}({column})"
                for function in itertools.chain(*guard_functions().values())
                for column, of in self.columns.items()
                if function.offers(of, is_unit=self._is_unit(column))
            }
        )

    def _is_unit(self, column: str) -> bool:
        data_set, _, name = column.partition(".")
        return self.units.get(data_set) == name


def parts_of(aggregate: str) -> tuple[str, str]:
    """Return function and column of an aggregate.

    Example:
        >>> parts_of("mean(people.pay)")
        ('mean', 'people.pay')
    """
    function, _, column = aggregate.partition("(")
    return function, column.removesuffix(")")


def _set_of(column: str) -> str:
    return column.partition(".")[0]


def _types(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the columns that programs may read, with their types."""
    for name, each in data.items():
        columns = each.get("columns") if isinstance(each, Mapping) else None
        for column in columns or ():
            of = columns.get(column) if isinstance(columns, Mapping) else None
            yield f"{name}.{column}", str(of or "")


def _columns(data: Mapping[str, Any]) -> list[str]:
    found = []
    for name, each in data.items():
        fields = each if isinstance(each, Mapping) else {}
        columns = [*(fields.get("columns") or ()), *(fields.get("match") or ())]
        found += [f"{name}.{column}" for column in columns] or [name]
    for column in found:
        if len(DATA_SET + column) > MAX_NAME:  # labels would cut it
            raise ConfigError(
                f"field 'data': rules cannot name so long a column: {column}", code="C012"
            )
    return found


ANY = Names({})
"""All names are there."""
