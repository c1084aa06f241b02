"""Names that the rules of a party may have: of coordinators, parties, data sets and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mplang_analysis import DATA_SET, MAX_NAME

from mplang_core.ext import ConfigError

LOCAL = "local"
"""What the coordinator of a worker without certificates is called."""

AGGREGATES = ("count", "units", "sum", "mean", "std", "histogram")
"""Functions of guards, by which rules name what is told of a column, as in ``mean(people.pay)``."""

OTHER = "other:"
"""Prefix of the column that stands for data which is in no data set, as what was put."""


@dataclass(frozen=True, slots=True)
class Names:
    """What the rules of a party can name; anything else is taken for a mistake.

    Attributes:
        known: by the type of the entity, its names; any are there of a type that is not listed.
        units: for each data set the column by which its units differ, if it has one.

    Example:
        >>> names = Names.of({"name": "bank", "data": {"people": {"columns": {"age": "int64"}}}})
        >>> names.unknown("Column", "people.age"), names.unknown("Column", "people.agge")
        (False, True)
    """

    known: Mapping[str, frozenset[str]]
    units: Mapping[str, str] = field(default_factory=dict)

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
            "Aggregate": frozenset(f"{name}({each})" for name in AGGREGATES for each in columns),
            "Everyone": frozenset(["everyone"]),
        }
        if fields.get("peers") is not None:
            known["Party"] = frozenset(fields["peers"]) | {fields.get("name", "")}
        units = {
            name: str(each["unit"])
            for name, each in data.items()
            if isinstance(each, Mapping) and each.get("unit")
        }
        return cls(known, units)

    def unknown(self, kind: str, name: str) -> bool:
        """Return whether an entity is not there."""
        if kind == "Column" and name.startswith(OTHER):
            return False
        return kind in self.known and name not in self.known[kind]


def _columns(data: Mapping[str, Any]) -> list[str]:
    found = []
    for name, each in data.items():
        fields = each if isinstance(each, Mapping) else {}
        columns = [*(fields.get("columns") or ()), *(fields.get("match") or ())]
        found += [f"{name}.{column}" for column in columns] or [name]
    for column in found:
        if len(DATA_SET + column) > MAX_NAME:  # labels would cut it
            raise ConfigError(f"field 'data': rules cannot name so long a column: {column}")
    return found


ANY = Names({})
"""All names are there."""
