"""Guards of a program: what goes through them, what they use up, and why some do not count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mplang_analysis.guarding import Declassifies, Matches, Spend
from mplang_analysis.labels import DATA_SET, PUBLIC, Label
from mplang_analysis.lineage import Guard, HasLineage, Lineage, Origin, Selection, selected
from mplang_analysis.party_names import quoted_line
from mplang_analysis.transfer import Fact
from mplang_analysis.vouched import columns_of, guarding_of, keys_of, lineage_of
from mplang_analysis.words import When
from mplang_core import Mask, Program
from mplang_core.ext import Location, Operation, interface_of

_LOOPS = {When.PER_ITERATION, When.ANY_NUMBER}


@dataclass(slots=True)
class Guards:
    """What is known of the guards of a program.

    Attributes:
        spends: what its differentially private ops use up, one after the other.
        remarks: why guards of it do not count, with their lines.
        are_there: whether it has any; else nobody asks for the lineage of its tables.
    """

    are_there: bool
    spends: list[Spend] = field(default_factory=list)
    remarks: dict[str, None] = field(default_factory=dict)

    def refine(
        self,
        op: Operation,
        ins: Sequence[Fact],
        outs: list[Fact],
        parties: Mask,
        line: Location | None,
        when: Sequence[str],
    ) -> list[Fact]:
        """Return labels of results with what the op tells of them: lineage, or that it guards.

        Args:
            op: an op that each party runs for itself.
            ins: its operands.
            outs: its results.
            parties: who runs it.
            line: the user's line.
            when: how often, unless it is once.
        """
        if not self.are_there:
            return outs
        rule, guard = interface_of(op, HasLineage), interface_of(op, Declassifies)
        for rank in parties:
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
                outs = [
                    {**fact, rank: fact[rank].guarded(found)} if rank in fact else fact
                    for fact in outs
                ]
        return outs

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
            why = (
                "its table is not of rows as a data set gives them: only filters, the choice of "
                "columns, semi_join and anti_join may come before"
            )
        elif given.epsilon and not _LOOPS.isdisjoint(when):
            why = "it runs in a loop, so nobody can say how much of a budget it uses up"
        else:
            found, why = lineage.guards(
                op.dialect, given.units, given.uses, given.k, given.max_share
            )
        at = f" at {quoted_line(str(line))}" if line else ""
        if why:
            self.remarks[f"{op.opcode}{at} does not count: {why}"] = None
        if given.epsilon:
            self.spends += [
                Spend(
                    party, name.removeprefix(DATA_SET), given.epsilon, given.delta, str(line or "")
                )
                for party, name in sorted({origin.data_set for origin in found})
            ]
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
            if why:
                at = f" at {quoted_line(str(line))}" if line else ""
                self.remarks[f"{op.opcode}{at} does not count: {why}"] = None
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


def _only(fact: Fact) -> Label:
    """Return the label of a value that one party holds."""
    return next(iter(fact.values()), PUBLIC)


def _loose(operands: Sequence[Label]) -> list[Origin]:
    """Return what flows in by operands that are not of rows as data sets give them."""
    return [source.origin for each in operands if not each.lineage for source in each.sources]


def has_guards(program: Program) -> bool:
    """Return whether a program has guards, or matches."""
    ops = {op.opcode: op for op in program.graph.walk()}  # programs have few opcodes
    return any(
        interface_of(op, Declassifies) is not None or interface_of(op, Matches) is not None
        for op in ops.values()
    )
