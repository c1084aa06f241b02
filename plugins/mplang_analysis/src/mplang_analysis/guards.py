"""Guards of a program: what goes through them, what they use up, and why some do not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mplang_analysis.guarding import Declassifies, GuardsShares, Matches, Prepares, Spend
from mplang_analysis.labels import DATA_SET, PUBLIC, Label
from mplang_analysis.lineage import Guard, HasLineage, Lineage, Origin, Selection, selected
from mplang_analysis.party_names import quoted_line
from mplang_analysis.scope import Scope
from mplang_analysis.transfer import Fact
from mplang_analysis.vouched import (
    columns_of,
    guarding_of,
    keys_of,
    lineage_of,
    prepared_by,
    share_guard_of,
)
from mplang_analysis.words import When
from mplang_core import Mask, Program
from mplang_core.ext import Location, Operation, interface_of

_LOOPS = {When.PER_ITERATION, When.ANY_NUMBER}
_NOT_ROWS = (
    "its table is not of rows as a data set gives them: only filters, the choice of columns, "
    "semi_join and anti_join may come before"
)


class _Use(NamedTuple):
    """Op that takes the noise of its operands.

    Attributes:
        path: its position in the program.
        made: where its operands, with their noise, were made.
    """

    path: str
    made: frozenset[str]


@dataclass(slots=True)
class Guards:
    """State of the guards of a program.

    Attributes:
        spends: what its differentially private ops use up, one after the other.
        remarks: why guards of it do not count, with their lines.
        are_there: whether it has any; else nobody asks for the lineage of its tables.
    """

    are_there: bool
    spends: list[Spend] = field(default_factory=list)
    remarks: dict[str, None] = field(default_factory=dict)
    _noised: dict[str, _Use] = field(default_factory=dict)  # by where noise was drawn

    def refine(
        self, op: Operation, ins: Sequence[Fact], outs: list[Fact], scope: Scope
    ) -> list[Fact]:
        """Return labels of results with what the op tells of them: lineage, or that it guards.

        Args:
            op: an op that each party runs for itself.
            ins: its operands.
            outs: its results.
            scope: where it stands, and who runs it.
        """
        if not self.are_there:
            return outs
        line, when = scope.location, scope.when
        rule, guard = interface_of(op, HasLineage), interface_of(op, Declassifies)
        prepares = interface_of(op, Prepares)
        for rank in scope.parties:
            given = [fact.get(rank, PUBLIC) for fact in ins]
            if rule is not None:
                lineage = lineage_of(op, rule, rank, [label.lineage for label in given])
                if lineage is not None:
                    kept = lineage.with_loose(_loose(given))
                    outs = [
                        {**fact, rank: replace(fact[rank], lineage=kept)} if rank in fact else fact
                        for fact in outs
                    ]
            if guard is not None:
                found = self._through(op, guard, given[0].lineage, line, when)
                outs = _guarded(outs, rank, found)
            if prepares is not None:
                outs = _guarded(outs, rank, self._waiting(op, prepares, given, scope, rank))
        return outs

    def _waiting(
        self, op: Operation, rule: Prepares, operands: Sequence[Label], scope: Scope, rank: int
    ) -> Mapping[Origin, Guard]:
        """Return by what a guard on shares is waited for that is to take what an op makes."""
        says = prepared_by(op, rule)
        lineage = next((each.lineage for each in operands if each.lineage is not None), None)
        guards: Mapping[Origin, Guard] = {}
        if lineage is None:
            why = _NOT_ROWS
        elif _loose(operands):
            why = "an operand beside its table is made of private data"
        elif not _LOOPS.isdisjoint(scope.when):
            why = "it runs in a loop, so the turn whose rows are counted is unknown"
        else:
            guards, why = lineage.prepares(says.family, says.unit, says.uses, says.waits)
        self._remark(op, scope.location, why)
        made = f"{scope.path}@{rank}"
        return {origin: guard._replace(made=made) for origin, guard in guards.items()}

    def on_shares(
        self, op: Operation, ins: Sequence[Fact], outs: list[Fact], scope: Scope
    ) -> list[Fact]:
        """Return labels of results of a guard on shares, if its operands were made for it.

        Args:
            op: an op that parties run together.
            ins: its operands.
            outs: its results.
            scope: where it stands, and who runs it.
        """
        rule = interface_of(op, GuardsShares)
        if rule is None or not self.are_there:
            return outs
        says = share_guard_of(op, rule)
        why = _why_not(ins, scope.parties, says.waits)
        waited = _waited(ins)
        use = _Use(scope.path, frozenset(guard.made for guard in waited.values()))
        if says.epsilon and not why:
            why = self._why_no_noise(use, scope.when)
        self._remark(op, scope.location, why)
        if why:
            return outs
        guards = {
            origin: guard._replace(k=says.k, max_share=says.max_share, waits="", made="")
            for origin, guard in waited.items()
        }
        if says.epsilon and not use.made <= self._noised.keys():
            self._noised.update(dict.fromkeys(use.made, use))
            self._spend(waited, says.epsilon, says.delta, scope.location)
        return [
            {r: replace(x, sources=x.guarded(guards).sources) for r, x in fact.items()}
            for fact in outs
        ]

    def _why_no_noise(self, use: _Use, when: Sequence[str]) -> str:
        """Return why noise that parties added does not count; else nothing.

        What two results with the same noise differ by has none of it.
        """
        if not _LOOPS.isdisjoint(when):
            return "it runs in a loop, so the budget that it uses is unknown"
        if any(self._noised.get(each, use) != use for each in use.made):
            return "the noise of an operand is in another result as well, and would cancel out"
        return ""

    def _spend(
        self, origins: Iterable[Origin], epsilon: int, delta: int, line: Location | None
    ) -> None:
        """Record what is used up of each data set."""
        self.spends += [
            Spend(party, name.removeprefix(DATA_SET), epsilon, delta, str(line or ""))
            for party, name in sorted({origin.data_set for origin in origins})
        ]

    def _remark(self, op: Operation, line: Location | None, why: str) -> None:
        if why:
            at = f" at {quoted_line(str(line))}" if line else ""
            self.remarks[f"{op.opcode}{at} does not count: {why}"] = None

    def _through(
        self,
        op: Operation,
        guard: Declassifies,
        lineage: Lineage | None,
        line: Location | None,
        when: Sequence[str],
    ) -> Mapping[Origin, Guard]:
        """Return what goes through a guard, and note what that uses up."""
        given = guarding_of(op, guard)
        found: Mapping[Origin, Guard] = {}
        if lineage is None:
            why = _NOT_ROWS
        elif given.epsilon and not _LOOPS.isdisjoint(when):
            why = "it runs in a loop, so the budget that it uses is unknown"
        else:
            found, why = lineage.guards(
                op.dialect, given.units, given.uses, given.k, given.max_share
            )
        self._remark(op, line, why)
        if given.epsilon:
            self._spend(found, given.epsilon, given.delta, line)
        return found

    def in_messages(
        self, op: Operation, ins: Sequence[Fact], line: Location | None
    ) -> Mapping[int, Mapping[Origin, Guard]]:
        """Return by operand what goes through a match in the messages that carry it.

        Args:
            op: an op among parties.
            ins: its operands.
            line: the user's line.
        """
        rule = interface_of(op, Matches)
        guards: dict[int, Mapping[Origin, Guard]] = {}
        if rule is None:
            return guards
        for i, (keys, bounds) in enumerate(zip(keys_of(op, rule), rule.bounds(op), strict=True)):
            lineage = _only(ins[i]).lineage
            why = "its table is not of rows as a data set gives them"
            if lineage is not None:
                guards[i], why = lineage.matches(op.dialect, keys, *bounds)
            self._remark(op, line, why)
        return guards

    def of_matched(
        self,
        op: Operation,
        ins: Sequence[Fact],
        outs: list[Fact],
        guards: Mapping[int, Mapping[Origin, Guard]],
    ) -> list[Fact]:
        """Return labels of the rows that matched, with their lineage.

        Of columns that were matched on, and are not among those of a result, it tells no more than
        others are told.

        Args:
            op: an op among parties.
            ins: its operands.
            outs: its results.
            guards: as :meth:`in_messages` returns it.
        """
        rule = interface_of(op, Matches)
        lineages = [_only(fact).lineage for fact in ins]
        if rule is None or None in lineages:
            return outs
        keys, owners = keys_of(op, rule), [next(iter(fact), None) for fact in ins]
        made: list[Fact] = []
        for value, fact in zip(op.outputs, outs, strict=True):
            ((rank, label),) = fact.items()
            table, columns = owners.index(rank), columns_of(value.type)
            rows = _rows_of(table, columns, keys, lineages)
            dropped = _dropped(rows, lineages[table], keys[table], guards.get(table, {}))
            made.append({rank: replace(label.guarded(dropped), lineage=rows)})
        return made


def _rows_of(
    table: int,
    columns: Sequence[str],
    keys: Sequence[Sequence[str]],
    lineages: Sequence[Lineage | None],
) -> Lineage | None:
    """Return the lineage of the rows of a table that matched."""
    kept = lineages[table]
    assert kept is not None
    known = dict(kept.columns)
    rows = selected(
        Selection(table, [(name, name if name in known else None) for name in columns]), lineages
    )
    if rows is None:
        return None
    there = [(each.keys(of), each) for of, each in zip(keys, lineages, strict=True) if each]
    made, chosen, functions = (
        frozenset().union(*each) for each in zip(*(parts for parts, _ in there), strict=True)
    )
    plain = [dict(each.columns) for _, each in there]
    same = {
        (a, b)
        for columns in zip(*keys, strict=True)
        for a, b in [[known.get(key) for key, known in zip(columns, plain, strict=True)]]
        if a is not None and b is not None
    }
    return replace(
        rows,
        matched=rows.matched | made,
        filtered=rows.filtered | chosen,
        functions=rows.functions | functions,
        same=rows.same | same,
    )


def _dropped(
    rows: Lineage | None,
    before: Lineage | None,
    keys: Sequence[str],
    guards: Mapping[Origin, Guard],
) -> Mapping[Origin, Guard]:
    """Return what is known of a party's own data by the match alone, as no column of it is left."""
    if rows is None or before is None:
        return {}
    kept = {name for name, _ in rows.columns} & {name for name, _ in before.columns}
    made_of = [before.origins_of(name) for name in kept]
    if None in made_of:  # nobody can tell what one of them is computed of
        return {}
    left = (rows.filtered | rows.loose | before.matched).union(*filter(None, made_of))
    matched = frozenset[Origin]().union(*(before.origins_of(key) or () for key in keys))
    return {origin: guard for origin, guard in guards.items() if origin in matched - left}


def _why_not(ins: Sequence[Fact], parties: Mask, waits: Sequence[str]) -> str:
    """Return why operands of a guard on shares are not what parties made for it; else nothing.

    Shares are linear: one member's share of something else would change what all of them hold. So
    each member has its own share of one secret, on which nothing was computed.
    """
    twice = Counter[tuple[int, str]]()
    for fact, form in zip(ins, waits, strict=True):
        labels = [fact.get(rank, PUBLIC) for rank in parties]
        pieces = [piece for label in labels for piece in label.pieces]
        whole = (
            all(len(label.pieces) == 1 and not label.derived for label in labels)
            and len({piece.secret for piece in pieces}) == 1
            and [piece.share for piece in pieces] == [*range(len(parties))]
        )
        if not whole or not all(_waits(label, form) for label in labels):
            return "an operand is not what a party made of a table for it"
        twice.update({source.origin.data_set for label in labels for source in label.sources})
    if any(count > 1 for count in twice.values()):
        return "one data set is in two of its operands, and could decide by one person on others"
    return ""


def _waits(label: Label, form: str) -> bool:
    """Return whether all that a share is made of was made for a guard that takes a form."""
    guards = [[g.waits for g in source.guards if g.waits] for source in label.sources]
    return bool(guards) and all(each == [form] for each in guards)


def _waited(ins: Sequence[Fact]) -> Mapping[Origin, Guard]:
    """Return by what a guard on shares is waited for, of operands that were made for it."""
    sources = {source for fact in ins for label in fact.values() for source in label.sources}
    return {source.origin: guard for source in sources for guard in source.guards if guard.waits}


def _guarded(outs: Sequence[Fact], rank: int, guards: Mapping[Origin, Guard]) -> list[Fact]:
    """Return labels of results in which a party's data went through guards."""
    return [{**f, rank: f[rank].guarded(guards)} if rank in f else f for f in outs]


def _only(fact: Fact) -> Label:
    """Return the label of a value that one party holds."""
    return next(iter(fact.values()), PUBLIC)


def _loose(operands: Sequence[Label]) -> list[Origin]:
    """Return what flows in by operands that are not of rows as data sets give them."""
    return [source.origin for each in operands if not each.lineage for source in each.sources]


def has_guards(program: Program) -> bool:
    """Return whether a program has guards, or matches."""
    ops = {op.opcode: op for op in program.graph.walk()}  # programs have few opcodes
    kinds = (Declassifies, Prepares, Matches)
    return any(interface_of(op, kind) is not None for op in ops.values() for kind in kinds)
