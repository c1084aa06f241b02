"""What guards promise: to tell numbers of enough units, and of the columns that they name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar, NoReturn

import numpy as np
from mplang_analysis import DELTA, EPSILON, WHOLE, Declassifies, Guarding, Role
from mplang_analysis.ext import GROUP_OF_WORDS, guarding_of, words_of
from mplang_simulator import Simulator

from mplang_core import ClusterSpec, MPLangError, Program, TableType, registry
from mplang_core.ext import (
    HostVar,
    OpDef,
    Operation,
    PluginError,
    SimpHost,
    VerifyError,
    interface_of,
    op_defs,
)
from mplang_testing.guard_tables import People, noise_differs, noise_tells, numbers_of
from mplang_testing.sample import Of, Sample, local_program
from mplang_testing.suite import Suite, complain, numbered
from mplang_testing.tables import value_of
from mplang_testing.values import close
from mplang_testing.waiting import DEADLINE

NOISY_RUNS = 100  # of each table whose results are compared as distributions
ADDITIVE = {"count", "sum", "mean"}


class GuardSuite(Suite, kit=True):
    """The guards of a family do what their interface ``Declassifies`` says.

    Rules of owners go by what a guard says of itself: the units that it counts, ``k``,
    ``max_share``, what each column is used for, and the functions that its package declares by an
    entry point of the group ``mplang.words``. The guard is run on tables that are made for
    it. Of two tables that differ only in what it must not tell, the results are the same; with
    noise, they are held against ``epsilon`` and ``delta`` as far as some hundred runs can tell.

    Attributes:
        family: the family of ops.
        samples: uses of each of its guards, each with one table as first operand. A small ``k``
            is quick, and one above 1 is needed.

    Example::

        class TestGuards(GuardSuite):
            family = "till"
            samples = (Sample("till.total", Of(KIND, TABLE), attrs={"unit": "id", "k": 3}),)
    """

    family: ClassVar[str]
    samples: ClassVar[Sequence[Sample]] = ()

    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the samples."""
        names = numbered([sample.name or sample.op for sample in self.samples])
        return {"sample": dict(zip(names, self.samples, strict=True))}

    def make(self) -> SimpHost:
        """Return a host of one party to run the samples on."""
        return Simulator(ClusterSpec.simple(1), timeout=DEADLINE, check_numbers=False)

    def test_there_is_a_sample_of_every_guard(self) -> None:
        """Each op of the family with the interface is used."""
        registry.list_ops(self.family)  # loads the plugins
        used = {local_program(sample.build())[0].opcode for sample in self.samples}
        there = {
            name
            for name, op_def in op_defs
            if name.partition(".")[0] == self.family and _is_guard(op_def)
        }
        if not used or used != there:
            complain(
                f"the samples do not fit the guards of the family {self.family!r}",
                expected=f"a sample of each of {sorted(there) or '(no guard is registered)'}",
                got=f"{sorted(used)}",
                fix=f"add {sorted(there - used)}, remove {sorted(used - there)}; an op is a guard "
                "if its OpDef has the interface GuardRule(…)",
            )
        guards = [_Guard.of(sample) for sample in self.samples]
        tried = {guard.name for guard in guards if guard.says.k != 1 or guard.says.epsilon}
        if tried != used:
            complain(
                f"the samples of {', '.join(sorted(used - tried))} count to 1 only",
                expected="a sample with k above 1: of one unit, every number is of enough",
                got="k = 1",
                fix="add one with k = 3",
            )

    def test_rules_can_name_its_functions(self) -> None:
        """What guards of the family compute is what the package declares, and each is tried."""
        try:
            declared = {each.name: each for each in words_of(self.family).functions}
        except PluginError as error:
            complain(
                f"the words of the family {self.family!r} do not load",
                expected=f"an entry point {self.family!r} of {GROUP_OF_WORDS} that names a Words",
                got=error,
                fix="correct the module; it imports no engine",
            )
        used: dict[str, None] = {}
        for guard in map(_Guard.of, self.samples):
            types = dict(guard.kind.columns)
            for column, uses in guard.says.uses.items():
                for name in (use for use in uses if use != Role.BY):
                    used[name] = None
                    is_unit = column in guard.says.units
                    if name in declared and not declared[name].offers(
                        types[column], is_unit=is_unit
                    ):
                        complain(
                            f"{guard.name} computes {name} of {column!r}, and declares it is of "
                            "other columns",
                            expected=f"Function({name!r}, of=…) that takes {types[column]}",
                            got=declared[name],
                            fix="correct the Function: else owners are not offered it",
                        )
        if used.keys() != declared.keys():
            complain(
                f"what guards of the family {self.family!r} compute is not what it declares",
                expected=f"samples of each of {sorted(declared) or '(no function is declared)'}",
                got=f"{sorted(used)}",
                fix="; ".join(_untold(self.family, used.keys(), declared.keys())),
            )

    def test_it_names_columns_that_are_there(self, sample: Sample) -> None:
        """Units and uses are of its first operand, and it counts units, or adds noise."""
        guard = _Guard.of(sample)
        found = guard.says
        if not found.k and not found.epsilon:
            complain(
                f"{guard.name} counts no units, and adds no noise",
                expected="k of at least 1, or an epsilon above 0",
                got=found,
                fix="declare what it does, or leave GuardRule out: owners would permit its results",
            )

    def test_columns_that_it_does_not_name_do_not_matter(self, sample: Sample) -> None:
        """Results are made of its units and of the columns in ``uses``, and of no others."""
        guard = _Guard.of(sample)
        people = guard.people().rows(guard.enough, group=0).rows(guard.enough, group=1)
        names = ", ".join(map(repr, guard.unnamed))
        changed = people
        for column in guard.unnamed:
            changed = changed.with_numbers(column, [3, 2, 1], 8)
        self._check_same(
            guard,
            people,
            changed,
            f"uses columns beside {', '.join(map(repr, guard.named))}, and does not say so",
            f"the same whatever is in {names}",
            "name in Guarding(units, uses) each column that it reads",
        )

    def test_fewer_units_than_k_tell_nothing(self, sample: Sample) -> None:
        """A table, a group or a column of fewer than ``k`` units is as if it were not there."""
        guard = _Guard.of(sample)
        if not guard.says.k:
            return
        few = guard.people().rows(guard.says.k - 1, per_unit=4).without_unit(guard.says.k + 3)
        what = f"tells something of fewer than k = {guard.says.k} units"
        fix = "count the distinct values of the unit, without nulls, for each number of each group"
        wanted = f"what it gives of no rows, for rows of {guard.says.k - 1} units and of none"
        self._check_same(guard, guard.people(), few, what, wanted, fix)
        if guard.by:
            many = guard.people().rows(guard.enough, group=0)
            more = many.rows(guard.says.k - 1, per_unit=4, group=1)
            self._check_same(guard, many, more, what, f"no group of {guard.says.k - 1} units", fix)
        for column in guard.values:
            for missing in guard.missing(column):
                known = guard.says.k - 1
                rows = guard.people().rows(guard.enough)
                one, other = (
                    rows.with_numbers(column, [*range(first, first + known)], missing)
                    for first in (1, 5)
                )
                wanted = f"nothing of {column!r}, of which {guard.says.k - 1} units have a value"
                self._check_same(guard, one, other, what, f"{wanted} ({missing} elsewhere)", fix)

    def test_columns_that_it_groups_by_are_told_of_groups_only(self, sample: Sample) -> None:
        """A column with the role ``by`` is told for groups of ``k`` units, and in no number."""
        guard = _Guard.of(sample)
        if not guard.says.k > 1:
            return
        units, rows = guard.says.k - 1, 4 * (guard.says.k - 1)
        people = guard.people().rows(guard.enough).rows(units, per_unit=4, start=guard.enough)
        for column in guard.by:
            if not guard.has_groups(column):
                continue
            one, other = (people.regrouped(column, rows, group) for group in (1, 2))
            self._check_same(
                guard, one, other, f"tells more of {column!r} than groups by it",
                f"the same whatever is in {column!r} of {units} units that have it alone",
                f"name the functions of {column!r} in Guarding(uses=…), and leave small groups out",
            )  # fmt: skip

    def test_no_unit_adds_more_than_max_share(self, sample: Sample) -> None:
        """A number of which one unit adds a larger part is not told."""
        guard = _Guard.of(sample)
        share = guard.says.max_share / WHOLE
        if share >= 1:
            return
        largest = math.ceil(2 * share / (1 - share) * guard.enough) + 2
        what = f"tells a number of which one unit adds more than max_share = {share:g}"
        fix = "leave such a group out, or declare no max_share"
        for column in guard.numbers:
            rows = guard.people().rows(guard.enough)
            one, other = (rows.with_numbers(column, [largest + more], 1) for more in (0, 3))
            wanted = f"the same for {column!r} of 1, and of {largest} or more at one unit"
            self._check_same(guard, one, other, what, wanted, fix)
        base = guard.people().rows(guard.enough)
        one, other = (base.rows(1, per_unit=largest + more) for more in (0, 3))
        wanted = f"the same for one row of each unit, and {largest} or more of one"
        self._check_same(guard, one, other, what, wanted, fix)

    def test_it_tells_of_columns_what_it_uses_them_for(self, sample: Sample) -> None:
        """What leaves the functions of a column as they are changes no result."""
        guard = _Guard.of(sample)
        if guard.says.epsilon:
            return  # noise is over it; what it hides is tried as such
        people = guard.people().rows(guard.enough, per_unit=2, group=0)
        people = people.rows(guard.enough, per_unit=2, group=1)
        for unit in guard.says.units:
            self._check_same(
                guard, people, people.relabelled(unit), f"tells of single units, by {unit!r}",
                f"the same where units of a group change places in {unit!r}",
                f"use {unit!r} to count units alone, or name it in uses",
            )  # fmt: skip
        for column in guard.values:
            uses = set(guard.says.uses[column])
            changes: list[tuple[str, People]] = [
                ("rows of a group change places", people.exchanged(column))
            ]
            if uses <= {"count"}:
                changes.append(("values are other ones", people.with_numbers(column, [], 9)))
            elif uses <= ADDITIVE and column in guard.numbers:
                changes.append(("one row adds what another one loses", people.moved(column)))
            for how, changed in changes:
                self._check_same(
                    guard, people, changed, f"tells more of {column!r} than {sorted(uses)}",
                    f"the same where {how} in {column!r}",
                    f"name all that {column!r} is used for in Guarding(uses=…)",
                )  # fmt: skip

    def test_noise_hides_a_unit(self, sample: Sample) -> None:
        """With and without one unit, results are about as likely as ``epsilon`` says."""
        guard = _Guard.of(sample)
        if not guard.says.epsilon:
            return
        epsilon = guard.says.epsilon * float(EPSILON)
        delta = guard.says.delta * float(DELTA)
        without = guard.people().rows(30, start=1)
        before = self._noisy(guard, without)
        extreme = without.rows(1, per_unit=1000, like=10**6)
        event = noise_tells(self._noisy(guard, extreme), before, epsilon, delta)
        if event:
            complain(
                f"{guard.name} tells of one unit more than it declares",
                expected=f"results about as likely with it as without, as epsilon = {epsilon:g} "
                f"and delta = {delta:g} say, whatever its rows are",
                got=event,
                fix="clip what a unit contributes, and add noise to its size; or declare what it "
                "uses up: budgets of owners count it",
            )

    # --

    def _check_same(
        self, guard: _Guard, one: People, other: People, what: str, expected: str, fix: str
    ) -> None:
        if guard.says.epsilon:
            differs = noise_differs(self._noisy(guard, one), self._noisy(guard, other))
            if differs:
                _differs(guard, what, f"{expected}, apart from noise", differs, fix)
            return
        with self.make() as host:
            first, second = guard.run(host, one), guard.run(host, other)
        if not close(first, second):
            _differs(guard, what, expected, f"{_shown(first)}, and {_shown(second)}", fix)

    def _noisy(self, guard: _Guard, people: People) -> Any:
        with self.make() as host:
            return np.array([numbers_of(guard.run(host, people)) for _ in range(NOISY_RUNS)])


def _is_guard(op_def: OpDef) -> bool:
    return op_def.interface(Declassifies) is not None


def _untold(family: str, used: Set[str], declared: Set[str]) -> Iterator[str]:
    """Yield what to do about functions that are used or declared alone."""
    if used - declared:
        yield (
            f"declare {sorted(used - declared)} in Words(functions=…) of an entry point {family!r} "
            f"of {GROUP_OF_WORDS}, or rules of owners cannot name them"
        )
    if declared - used:
        yield f"add samples of {sorted(declared - used)}"


class _Guard:
    """A guard of a sample, over its table with two columns more that it does not name.

    Attributes:
        name: its op.
        says: what it says of itself.
        kind: the type of the table.
        enough: a number of units of which it tells something.
    """

    def __init__(self, op: Operation, says: Guarding, program: Program, sample: Sample) -> None:
        kind = op.inputs[0].type
        assert isinstance(kind, TableType)
        self.name = op.opcode
        self.says = says
        self.kind = kind
        self.enough = says.k + 4
        self._program = program
        self._rest = sample.data(0)[1:]

    @classmethod
    def of(cls, sample: Sample) -> _Guard:
        wider = _widened(sample)
        op, _ = local_program(wider.build())
        guard = interface_of(op, Declassifies)
        if guard is None:
            complain(
                f"{op.opcode} is not a guard",
                expected="an op with the interface GuardRule(…)",
                got="none",
                fix="correct the samples",
            )
        try:
            says = guarding_of(op, guard)
        except VerifyError as error:
            complain(
                f"{op.opcode} says what its table contradicts",
                expected="columns of its first operand, and numbers in their range",
                got=error,
                fix="correct the function of GuardRule(…)",
            )
        return cls(op, says, wider.trace(), sample)

    @property
    def by(self) -> list[str]:
        """The columns that it groups by."""
        return [name for name, uses in self.says.uses.items() if Role.BY in uses]

    @property
    def values(self) -> list[str]:
        """The columns that it aggregates, without units."""
        named = {*self.by, *self.says.units}
        return [name for name in self.says.uses if name not in named]

    @property
    def numbers(self) -> list[str]:
        """Those of them that hold any small number."""
        wide = ("int16", "int32", "int64", "float", "double")
        types = dict(self.kind.columns)
        return [name for name in self.values if types[name].removeprefix("u") in wide]

    @property
    def unnamed(self) -> list[str]:
        """The columns that it does not name."""
        return [name for name, _ in self.kind.columns if name not in self.named]

    @property
    def named(self) -> list[str]:
        """The columns that it names."""
        return list(dict.fromkeys([*self.says.units, *self.says.uses]))

    def has_groups(self, column: str) -> bool:
        """Return whether a column holds three different groups."""
        kind = dict(self.kind.columns)[column]
        return len({str(value_of(kind, group)) for group in (0, 1, 2)}) == 3

    def missing(self, column: str) -> list[Any]:
        """Return what counts as no value in a column."""
        is_float = dict(self.kind.columns)[column] in ("float", "double")
        return [None, math.nan] if is_float else [None]

    def people(self) -> People:
        """Return a table without rows."""
        return People(self.kind, self.says.units, self.by)

    def run(self, host: SimpHost, people: People) -> Any:
        """Return what it tells of a table."""
        try:
            outs = host.evaluate(
                self._program, [HostVar([each]) for each in (people.table(), *self._rest)]
            )
        except MPLangError as error:
            complain(
                f"{self.name} fails",
                expected=f"a result for {people}",
                got=f"{error} ({error.__cause__!r})",
                fix="whether it fails tells of the table: give a result without that group",
            )
        return [out.values[0] for out in outs]


def _widened(sample: Sample) -> Sample:
    table, *rest = sample.args
    if not isinstance(table, Of) or not isinstance(table.kind, TableType):
        complain(
            f"the first operand of {sample} is not a table",
            expected="Of(TableType(…), table)",
            got=table,
            fix="a guard takes a table as its first operand",
        )
    there = {name.lower() for name, _ in table.kind.columns}
    more = [(n, t) for n, t in (("kit_n", "int64"), ("kit_s", "string")) if n not in there]
    kind = TableType((*table.kind.columns, *more))
    operand = Of(kind, People(kind, [], []).table())
    return Sample(sample.op, operand, *rest, attrs=sample.attrs, config=sample.config)


def _differs(guard: _Guard, what: str, expected: str, got: str, fix: str) -> NoReturn:
    complain(f"{guard.name} {what}", expected=expected, got=got, fix=fix)


def _shown(results: Sequence[Any]) -> str:
    lists = [each.to_pylist() if hasattr(each, "to_pylist") else each for each in results]
    return "; ".join(str(each)[:300] for each in lists)
