"""The requests that a program makes of one party's rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mplang_analysis import DATA_SET, DisclosureRow, ProgramRequest, Role, Source, What, When
from mplang_analysis.ext import BETWEEN_CONDITIONS, quoted

from mplang_core import BaseType, TensorType
from mplang_core.ext import AdmissionError, parse_base_type
from mplang_policy.guarded import MAX_LONG, is_match, told_of_guards
from mplang_policy.names import OTHER
from mplang_policy.request import EVERYONE, Entity, Request
from mplang_policy.vocabulary import STORE

MAX_REQUESTS = 2000  # different rows of a program that rules are asked about
MAX_COLUMNS = 50_000  # of all of them together


def requests_of(
    asked: ProgramRequest, units: Mapping[str, str], match: Collection[str] = ()
) -> list[Request]:
    """Return what the rules of a party are asked, in the order of the program, each once.

    Args:
        asked: the program.
        units: for each data set of the party the column by which its units differ.
        match: columns of the party's data sets that may be matched on, and nothing else.

    Raises:
        AdmissionError: it is more than an owner could read.
    """
    return _Requests(asked, asked.party, match).all(units)


class _Requests(NamedTuple):
    """Requests that a program makes of the rules of a party.

    Attributes:
        asked: the program.
        party: rank of the party.
        match: columns of its data sets that may be matched on, and nothing else.
    """

    asked: ProgramRequest
    party: int
    match: Collection[str]

    def all(self, units: Mapping[str, str]) -> list[Request]:
        """Return the requests, each once; see :func:`requests_of`."""
        found: dict[Any, Request] = {}
        columns = 0
        asked = (self._run(), *self._read(), *self._rows(units), *self._store(units))
        for each in asked:
            key = each.action, each.resource, tuple(each.context.items()), each.read
            if key not in found:
                found[key] = each
                columns += len(each.context.get("columns", ()))
            if len(found) > MAX_REQUESTS or columns > MAX_COLUMNS:
                raise AdmissionError(
                    f"{quoted(self.asked.name)} does too many different things with the data of "
                    f"{self.asked.names[self.party]}: rules are asked about at most {MAX_REQUESTS} "
                    f"rows, of {MAX_COLUMNS} columns together"
                )
        return list(found.values())

    def _run(self) -> Request:
        mine = [each for each in self.asked.spends if each.party == self.party]
        context = {
            "name": self.asked.name,
            "mode": self.asked.mode,
            "epsilon": min(sum(each.epsilon for each in mine), MAX_LONG),
            **self._common(),
        }
        return Request(
            self.asked.coordinator, "run", Entity("Program", self.asked.program), context
        )

    def _common(self) -> dict[str, Any]:
        parties = tuple(Entity("Party", name) for name in self.asked.names)
        return {"parties": parties, "approved": False}

    def _read(self) -> Iterator[Request]:
        sets: dict[str, list[str]] = {}
        for name in self.asked.reads:
            sets.setdefault(name.partition(".")[0], []).append(name)
        for data_set, columns in sets.items():
            context = {
                "columns": tuple(Entity("Column", name) for name in columns),
                "program": Entity("Program", self.asked.program),
                **self._common(),
            }
            yield Request(self.asked.coordinator, "read", Entity("DataSet", data_set), context)

    def _rows(self, units: Mapping[str, str]) -> Iterator[Request]:
        for row in self.asked.rows:
            if row.what == What.CHANGE:
                if row.receiver == self.party:
                    by = EVERYONE if row.sender is None else self._entity(row.sender)
                    yield self._flow("rely", by, row.sources, _of_row(row, self.party), units, row)
                continue
            mine = self.party in row.inputs
            leaves = row.sender == self.party or mine
            if not row.inputs or not leaves or row.receiver == self.party:
                continue  # public, another's, or known here
            action = "disclose" if mine else "forward"
            if mine and row.receiver == "host":
                action = "fetch"
            receiver, context = self._receiver(row.receiver), _of_row(row, self.party)
            yield self._flow(action, receiver, row.sources, context, units, row)

    def _receiver(self, receiver: int | str) -> Entity:
        if receiver == "host":
            return Entity("Host", self.asked.coordinator)
        return EVERYONE if receiver == "everyone" else self._entity(receiver)

    def _entity(self, rank: int | str) -> Entity:
        return Entity("Party", self.asked.names[int(rank)])

    def _store(self, units: Mapping[str, str]) -> Iterator[Request]:
        for name, at in sorted(self.asked.stores.items()):
            for rank, sources in sorted(at.items()):
                mine = any(source.party == self.party for source in sources)
                if mine or rank == self.party:
                    context = {**self._of_store(name, rank, sources), "stored": name}
                    yield self._flow("store", self._entity(rank), sources, context, units)

    def _of_store(self, name: str, rank: int, sources: Sequence[Source]) -> dict[str, Any]:
        """Return what is known of a value in storage: those of one name cannot be told apart."""
        forms = self.asked.forms.get(name, ())
        news = any(s.party == self.party and rank not in s.known_to for s in sources)
        return {
            "what": STORE,
            "form": forms[0] if len(forms) == 1 else "any",
            "type": "any",
            "protocol": "",
            "discloses": news and set(forms) != {"share"},
            "times": (str(When.ONCE),),
        }

    def _flow(
        self,
        action: str,
        resource: Entity,
        sources: Sequence[Source],
        given: Mapping[str, Any],
        units: Mapping[str, str],
        row: DisclosureRow | None = None,
    ) -> Request:
        mine = {column_of(source) for source in sources if source.party == self.party}
        columns = tuple(Entity("Column", name) for name in sorted(mine))
        sets = {
            column.id.partition(".")[0] for column in columns if not column.id.startswith(OTHER)
        }
        others = sorted({source.party for source in sources} - {self.party})
        context = {
            **given,
            "columns": columns,
            "data_sets": tuple(Entity("DataSet", name) for name in sorted(sets)),
            "others": tuple(self._entity(rank) for rank in others),
            **told_of_guards(sources, self.party, self.asked.names, units),
            "program": Entity("Program", self.asked.program),
            "mode": self.asked.mode,
            **self._common(),
        }
        leaves = action != "rely" and (row is None or row.what != What.FAILURE)
        read = tuple(sorted(set(self._read_columns(sources)))) if leaves else ()
        return Request(self.asked.coordinator, action, resource, context, row, read)

    def _read_columns(self, sources: Sequence[Source]) -> Iterator[str]:
        """Yield the columns to match on of which sources tell more than a match does."""
        for each in sources:
            if each.party == self.party and column_of(each) in self.match:
                uses = {use for guard in each.guards for use in guard.uses}
                matched = bool(each.guards) and is_match(each.guards[0])
                if not matched or not uses <= {Role.MATCH, Role.UNIT}:
                    yield column_of(each)


def column_of(source: Source) -> str:
    """Return what rules call private data of their party."""
    if source.name.startswith(DATA_SET):
        return source.name.removeprefix(DATA_SET)
    return OTHER + source.name


def _of_row(row: DisclosureRow, party: int) -> dict[str, Any]:
    context = {
        "what": str(row.what),
        "form": row.form,
        "type": row.payload,
        "protocol": row.protocol,
        "discloses": party in row.discloses,
        "times": tuple(row.when.split(BETWEEN_CONDITIONS)),
    }
    values = _values(row.payload)
    return context if values is None else {**context, "values": values}


def _values(payload: str) -> int | None:
    """Return how many numbers a value has; ``None`` where its type does not tell."""
    kind: BaseType = parse_base_type(payload)
    return min(kind.size, MAX_LONG) if isinstance(kind, TensorType) else None
