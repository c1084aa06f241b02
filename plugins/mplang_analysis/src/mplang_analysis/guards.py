"""Guards of a program: what goes through them, what they use up, and why some do not count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mplang_analysis.guarding import Declassifies, Spend
from mplang_analysis.labels import DATA_SET, PUBLIC, Label
from mplang_analysis.lineage import Guard, HasLineage, Lineage, Origin
from mplang_analysis.party_names import quoted_line
from mplang_analysis.transfer import Fact
from mplang_analysis.vouched import guarding_of, lineage_of
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


def _loose(operands: Sequence[Label]) -> list[Origin]:
    """Return what flows in by operands that are not of rows as data sets give them."""
    return [source.origin for each in operands if not each.lineage for source in each.sources]


def has_guards(program: Program) -> bool:
    """Return whether a program has guards."""
    ops = {op.opcode: op for op in program.graph.walk()}  # programs have few opcodes
    return any(interface_of(op, Declassifies) is not None for op in ops.values())
