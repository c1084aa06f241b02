"""What ops with a lineage promise: rows of an operand as they are, chosen by what they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from mplang_analysis import HasLineage, Lineage, Origin
from mplang_analysis.ext import lineage_of, payload
from mplang_simulator import Simulator

from mplang_core import BaseType, ClusterSpec, MPLangError, Program, TableType, registry
from mplang_core.ext import HostVar, Operation, SimpHost, VerifyError, interface_of, op_defs
from mplang_testing.sample import Sample, local_program
from mplang_testing.suite import Suite, complain, numbered
from mplang_testing.tables import mixed_table
from mplang_testing.values import base_of
from mplang_testing.waiting import DEADLINE

ROWS = 12
SEED = 20

Table = Any
Rows = Counter[tuple[str, ...]]


class LineageSuite(Suite, kit=True):
    """The results of ops with the interface ``HasLineage`` are rows of an operand.

    Guards count units of such a table only, so a lineage that says too much lets a program single
    somebody out. The op is run on random tables, whose cells are those of the sample and others;
    then a column is changed that, by its lineage, does not decide which rows there are.

    Attributes:
        family: the family of ops.
        samples: uses of each of its ops with the interface; tables have data. Of each op, one at
            least has a lineage.
        tries: how many random tables each test tries.

    Example::

        class TestLineage(LineageSuite):
            family = "till"
            samples = (Sample("till.above", Of(KIND, TABLE), attrs={"column": "age"}),)
    """

    family: ClassVar[str]
    samples: ClassVar[Sequence[Sample]] = ()
    tries: ClassVar[int] = 8

    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the samples."""
        names = numbered([sample.name or sample.op for sample in self.samples])
        return {"sample": dict(zip(names, self.samples, strict=True))}

    def make(self) -> SimpHost:
        """Return a host of one party to run the samples on."""
        return Simulator(ClusterSpec.simple(1), timeout=DEADLINE, check_numbers=False)

    def wrapped(self, kind: BaseType, table: Any) -> Any:
        """Return a value of the operand's type around a table; the table if the type is a table."""
        return table

    def unwrapped(self, kind: BaseType, value: Any) -> Any:
        """Return the table in a value of an operand's or a result's type."""
        return value

    def test_there_is_a_sample_of_every_op_with_a_lineage(self) -> None:
        """Each op of the family with the interface is used, once at least with a lineage."""
        registry.list_ops(self.family)  # loads the plugins
        rules = [_Rule.of(self, sample) for sample in self.samples]
        used = {rule.name for rule in rules if rule.says is not None}
        there = {
            name
            for name, op_def in op_defs
            if name.partition(".")[0] == self.family and op_def.interface(HasLineage) is not None
        }
        if not used or used != there:
            complain(
                f"the samples do not fit the ops with a lineage of the family {self.family!r}",
                expected=f"of each of {sorted(there) or '(no such op is registered)'} a sample "
                "whose result has a lineage",
                got=f"{sorted(used)}",
                fix=f"add {sorted(there - used)}, remove {sorted(used - there)}; an op is among "
                "these if its OpDef has the interface LineageRule(…)",
            )

    def test_rows_are_those_of_an_operand(self, sample: Sample) -> None:
        """Each row once, and unchanged in the columns that have an origin."""
        rule, random = _Rule.of(self, sample), np.random.default_rng(SEED)
        if rule.says is None or not rule.kinds:
            return  # what is read of data sets is held against reads=
        with self.make() as host:
            for _ in range(self.tries):
                tables = rule.tables(random)
                result = rule.run(host, tables)
                for i, table in tables.items():
                    names = rule.columns_of(i)
                    if not names:
                        continue
                    more = _rows(result, [*names]) - _rows(table, [*names.values()])
                    if more:
                        complain(
                            f"{rule.name} gives rows that operand {i} does not have",
                            expected=f"{', '.join(names)} of some rows of operand {i}, each once "
                            "and unchanged, as its interface HasLineage says",
                            got=f"{dict(more)} besides",
                            fix="name None as the origin of a column that is computed; an op that "
                            "gives a row twice has no lineage",
                        )
                self._check_same_in_each_row(rule, tables, result)

    def test_other_columns_do_not_decide(self, sample: Sample) -> None:
        """Rows are chosen by the columns in ``filtered`` and ``matched``, and by no others."""
        rule, random = _Rule.of(self, sample), np.random.default_rng(SEED)
        if rule.says is None or not rule.kinds:
            return  # what is read of data sets is held against reads=
        deciding = rule.says.filtered | rule.says.matched
        with self.make() as host:
            for _ in range(self.tries):
                tables = rule.tables(random)
                before = rule.run(host, tables)
                for i, column, origin in rule.cells():
                    if origin in deciding:
                        continue
                    kept = rule.columns_without(origin)
                    other = mixed_table(rule.kinds[i], rule.given[i], ROWS, random)[column]
                    place = tables[i].column_names.index(column)
                    changed = {**tables, i: tables[i].set_column(place, column, other)}
                    after = rule.run(host, changed)
                    if _rows(before, kept) != _rows(after, kept):
                        names = sorted(each.name.partition(".")[2] for each in deciding)
                        complain(
                            f"{rule.name} depends on column {column!r} of operand {i}, and does "
                            "not say so",
                            expected=f"the same {', '.join(kept) or 'number of rows'} whatever is "
                            f"in {column!r}: it says that {', '.join(names) or 'nothing'} decides",
                            got=f"{before.num_rows} rows, and {after.num_rows}; other ones",
                            fix=f"name (i, {column!r}) in Selection.filtered or matched; what a "
                            "rule is not told of could single somebody out",
                        )

    def _check_same_in_each_row(
        self, rule: _Rule, tables: Mapping[int, Table], result: Table
    ) -> None:
        assert rule.says is not None
        made = {origin: name for name, origin in rule.says.columns if origin is not None}
        cells = {origin: tables[i][column].to_pylist() for i, column, origin in rule.cells()}
        for pair in rule.says.same:
            for one, other in (pair, pair[::-1]):
                if one in made and other in cells:
                    wrong = set(result[made[one]].to_pylist()) - set(cells[other])
                    if wrong:
                        complain(
                            f"{rule.name} says that {one.name} and {other.name} are the same in "
                            "each row",
                            expected=f"values of {made[one]!r} that are in the other table, too",
                            got=sorted(map(str, wrong)),
                            fix="name in Selection.same only what is equal in each row: units are "
                            "counted by either",
                        )


class _Rule:
    """An op with a lineage, of a sample: what it says, and how it is run.

    Attributes:
        name: the op.
        says: the lineage of its result; ``None`` for none.
        kinds: the types of the tables among its operands, by position.
        given: the tables of the sample.
    """

    def __init__(
        self, suite: LineageSuite, op: Operation, says: Lineage | None, program: Program, data: Any
    ) -> None:
        self.name = op.opcode
        self.says = says
        self.kinds = _tables(op)
        self.given = {i: suite.unwrapped(base_of(op.inputs[i]), data[i]) for i in self.kinds}
        self._suite, self._op = suite, op
        self._program = program
        self._data = data

    @classmethod
    def of(cls, suite: LineageSuite, sample: Sample) -> _Rule:
        op, _ = local_program(sample.build())
        rule = interface_of(op, HasLineage)
        if rule is None:
            complain(
                f"{op.opcode} has no lineage",
                expected="an op with the interface LineageRule(…)",
                got="none",
                fix="correct the samples",
            )
        kinds = _tables(op)
        given = [
            Lineage.of(0, [(name, f"t{i}.{name}") for name, _ in kinds[i].columns])
            if i in kinds
            else None
            for i in range(len(op.inputs))
        ]
        try:
            says = lineage_of(op, rule, 0, given)
        except VerifyError as error:
            complain(
                f"{op.opcode} says what its types contradict",
                expected="a lineage of the result's columns, of data that its operands have",
                got=error,
                fix="correct the function of LineageRule(…)",
            )
        return cls(suite, op, says, sample.trace(), sample.data(0))

    def cells(self) -> list[tuple[int, str, Origin]]:
        """Return the columns of the operands, each with its origin."""
        return [
            (i, name, Origin(0, f"t{i}.{name}"))
            for i, kind in self.kinds.items()
            for name, _ in kind.columns
        ]

    def columns_of(self, operand: int) -> dict[str, str]:
        """Return the columns of the result that are those of an operand, with their names there."""
        origins = {origin: name for i, name, origin in self.cells() if i == operand}
        columns = () if self.says is None else self.says.columns
        return {name: origins[origin] for name, origin in columns if origin in origins}

    def columns_without(self, origin: Origin) -> list[str]:
        """Return the columns of the result that are not made of one, by what it says."""
        assert self.says is not None
        return [
            name
            for name, of in self.says.columns
            if of != origin and not (of is None and origin in self.says.reads)
        ]

    def tables(self, random: np.random.Generator) -> dict[int, Table]:
        """Return random tables for the operands."""
        return {i: mixed_table(kind, self.given[i], ROWS, random) for i, kind in self.kinds.items()}

    def run(self, host: SimpHost, tables: Mapping[int, Table]) -> Table:
        """Return the result."""
        takes, wrapped = map(base_of, self._op.inputs), self._suite.wrapped
        operands = [
            wrapped(kind, tables[i]) if i in tables else self._data[i]
            for i, kind in enumerate(takes)
        ]
        try:
            (out,) = host.evaluate(self._program, [HostVar([each]) for each in operands])
        except MPLangError as error:
            complain(
                f"{self.name} fails",
                expected="rows of the sample's table, and of other cells of its types",
                got=f"{error} ({error.__cause__!r})",
                fix="correct the op, or give the sample a table whose cells may be mixed",
            )
        return self._suite.unwrapped(base_of(self._op.outputs[0]), out.values[0])


def _tables(op: Operation) -> dict[int, TableType]:
    """Return the tables among operands, those in handles, too, by position."""
    kinds = enumerate(payload(base_of(value)) for value in op.inputs)
    return {i: kind for i, kind in kinds if isinstance(kind, TableType)}


def _rows(table: Table, names: Sequence[str]) -> Rows:
    columns = [map(str, table[name].to_pylist()) for name in names]
    return Counter(zip(*columns, strict=True)) if columns else Counter({(): table.num_rows})
