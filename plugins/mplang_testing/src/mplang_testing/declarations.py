"""What ops declare beside their results: reads, effects, ranges, messages, who can change them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from mplang_analysis import UNKNOWN, HasChanges, HasRanges, Interval, costs
from mplang_simulator import Simulator
from mplang_trace import record

from mplang_core import BaseType, ClusterSpec, Form, Mask, MPLangError, Program, registry
from mplang_core.ext import (
    DeclaredRange,
    Effects,
    HostVar,
    Mode,
    Operation,
    SimpHost,
    decode,
    encode,
    interface_of,
    meta_of,
    op_defs,
)
from mplang_testing.sample import Sample, codec_of, local_program
from mplang_testing.suite import Suite, complain
from mplang_testing.values import base_of, same
from mplang_testing.waiting import DEADLINE
from mplang_testing.watched import watched

ROUNDING = 1e-6  # the part of its largest number by which a result may be outside of an interval


class DeclarationSuite(Suite, kit=True):
    """What is believed of an op holds; a part of :class:`~mplang_testing.KernelSuite`."""

    def make(self, parties: int) -> SimpHost:
        """Return a host to run the samples on."""
        return Simulator(ClusterSpec.simple(parties), timeout=DEADLINE, check_numbers=False)

    def test_it_reads_what_it_declares(self, sample: Sample) -> None:
        """Beside its operands a kernel reads the data that ``reads`` names, and no other."""
        op, _ = local_program(sample.build())
        op_def = op_defs.get(op.opcode)
        if op_def is None or op_def.reads is None:
            return
        declared = op_def.reads(op) if callable(op_def.reads) else op_def.reads
        given = [sample.data(rank) for rank in range(sample.parties)]
        with self.make(sample.parties) as host:
            execute_quietly(host, sample.trace(), given)  # imports what it needs
        with watched(op.opcode) as reads, self.make(sample.parties) as host:
            execute_quietly(host, sample.trace(), given)  # by a new host, which keeps no plan
        found = sorted(reads.names - set(declared)) + sorted(reads.others)
        if found:
            complain(
                f"{op.opcode} reads {found[0]}, and does not say so",
                expected=f"reads={tuple(declared)} of the data of its party, as it declares",
                got=", ".join(found),
                fix="name it in reads=, or leave reads= out: its results count as made of that",
            )

    def test_one_party_sends_nothing(self, sample: Sample) -> None:
        """The kernel of a feop that is ``single_rank`` has no messages, which nobody is told of."""
        if meta_of(registry.get(sample.op)).execution_model != "single_rank":
            return
        fields = {"attrs": sample.attrs, "config": sample.config, "parties": max(2, sample.parties)}
        several = Sample(sample.op, *sample.args, **fields)
        given = [sample.data(rank % sample.parties) for rank in range(several.parties)]
        with self.make(several.parties) as host, record(host) as recording:
            execute_quietly(host, several.trace(), given)
        for (sender, receiver), use in recording.links().items():
            if use.messages:
                complain(
                    f"{sample.op} sends a message from party {sender} to party {receiver}",
                    expected="none, as execution_model='single_rank' says",
                    got=f"{use.messages} on this link",
                    fix="declare execution_model='multi_party': all who run it may learn all",
                )

    def test_costs_say_that_its_messages_are_not_counted(self, sample: Sample) -> None:
        """What parties run together is in ``mp.analysis.costs(…).unknown``, and is not 0 bytes."""
        meta, program = meta_of(registry.get(sample.op)), sample.trace()
        op, _ = local_program(sample.build())
        if meta.execution_model == "single_rank" or sample.parties < 2:
            return
        unknown = {each.op for each in costs(program).unknown}
        if op.opcode not in unknown:
            complain(
                f"the messages of {op.opcode} are not counted, and costs do not say so",
                expected=f"{op.opcode} in mp.analysis.costs(…).unknown, since {sample.op} has "
                f"execution_model={meta.execution_model!r}",
                got=sorted(unknown) or "nothing that is unknown",
                fix=f"declare execution_model='multi_party' of the feop {op.opcode}, too",
            )

    def test_effects_are_those_that_it_declares(self, sample: Sample) -> None:
        """Results of ``Effects.NONE`` are the same each time, and of ``FRESH`` drawn anew."""
        op, _ = local_program(sample.build())
        op_def = op_defs.get(op.opcode)
        effects = Effects.ANY if op_def is None else op_def.effects
        if effects is (Effects.NONE if sample.random else Effects.FRESH):
            complain(
                f"{op.opcode} declares Effects.{effects.name}, and {sample} has "
                f"random={sample.random}",
                expected="random=True for FRESH alone, so that runs are compared",
                got=f"Effects.{effects.name} with random={sample.random}",
                fix="correct the sample, or the op's effects: what is fresh is never made one, and "
                "what has none is",
            )

    def test_results_are_in_the_ranges_that_it_declares(self, sample: Sample) -> None:
        """Numbers are in the intervals that ``RangeRule`` or ``DeclaredRange`` tell of them."""
        op, _ = local_program(sample.build())
        rule, bounds = interface_of(op, HasRanges), interface_of(op, DeclaredRange)
        if rule is None and bounds is None:
            return
        given = [sample.data(rank) for rank in range(sample.parties)]
        told = [UNKNOWN] * len(op.inputs)  # of constants, which stand after the operands
        if not sample.build().inputs:
            told[: len(given[0])] = map(_interval, zip(*given, strict=True))
        intervals = [] if rule is None else list(rule.ranges(op, told).outputs)
        if bounds is not None:
            intervals = [Interval(*bounds.declared(op)) for _ in op.outputs]
        with self.make(sample.parties) as host:
            results = execute(host, sample.trace(), given)
        for i, (interval, values) in enumerate(zip(intervals, results, strict=False)):
            found = _interval(values)
            slack = ROUNDING * max(1.0, interval.largest) if interval.known else 0.0
            if found.known and not (
                interval.low - slack <= found.low and found.high <= interval.high + slack
            ):
                complain(
                    f"result {i} of {sample} is outside of the interval that {op.opcode} tells",
                    expected=f"numbers in {interval}, for operands in {', '.join(map(str, told))}",
                    got=f"numbers from {found.low:g} to {found.high:g}",
                    fix="correct the function of RangeRule(…): numbers are checked by it before "
                    "they are shared",
                )

    def test_it_says_who_can_change_what_it_opens(self, sample: Sample) -> None:
        """What is plain and made by parties together has a ``ChangeRule``.

        Where that says that nobody can change it, a share of which a bit is another one ends in an
        error, or in the same result.
        """
        op, _ = local_program(sample.build())
        meta = meta_of(registry.get(sample.op))
        check_changes(op, together=meta.execution_model == "multi_party")
        declared = interface_of(op, HasChanges)
        if sample.random or declared is None or declared.changes(op).by != Mask():
            return
        program, kinds = sample.trace(), [base_of(value) for value in op.outputs]
        given = [sample.data(rank) for rank in range(sample.parties)]
        with self.make(sample.parties) as host:
            expected = execute(host, program, given)
            for changed in _with_a_changed_share(sample.operands, given):
                try:
                    found = execute(host, program, changed)
                except MPLangError:
                    continue  # it is noticed
                pairs = zip(kinds, expected, found, strict=True)
                if not all(same(kind, old[0], new[0]) for kind, old, new in pairs):
                    complain(
                        f"{op.opcode} gives another result for a share that was changed",
                        expected="an error, as Changes(by=Mask()) says",
                        got=found,
                        fix="check the share, or name who can change the result, and by which "
                        "protocol: Changes(parties, protocol)",
                    )


def check_changes(op: Operation, *, together: bool = False) -> None:
    """Check that an op which makes something plain of shares says who can change it.

    Args:
        op: the op.
        together: whether parties run it together, and it does not tell its messages.
    """
    plain = any(base_of(value).form is Form.PLAIN for value in op.outputs)
    shares = any(base_of(value).form is Form.SHARE for value in op.inputs)
    if plain and (shares or together) and interface_of(op, HasChanges) is None:
        complain(
            f"{op.opcode} makes something plain that parties have computed together, and does not "
            "say who can change it",
            expected="the interface HasChanges: rules are asked whom the receiver relies on",
            got="none, so every party is taken to be able to",
            fix="declare ChangeRule(lambda op: Changes(parties, protocol)) with the members of a "
            "protocol that is secure against semi-honest ones only, and its name; "
            "Changes(by=Mask()) if what another one changed is always an error",
        )


def _with_a_changed_share(
    kinds: Sequence[BaseType], given: Sequence[Sequence[Any]]
) -> Iterator[list[list[Any]]]:
    """Yield operands by party in which one bit of a share of the first party is changed."""
    first, *others = map(list, given)
    for i, (kind, value) in enumerate(zip(kinds, first, strict=True)):
        if kind.form is Form.SHARE and codec_of(kind) is not None:
            for changed in _with_a_changed_bit(kind, value):
                yield [[*first[:i], changed, *first[i + 1 :]], *others]


def _with_a_changed_bit(kind: BaseType, value: Any) -> Iterator[Any]:
    """Yield a value with one bit changed, at the ends and in the middle of each of its buffers."""
    head, data = encode(kind, value)
    buffers = [bytes(each) for each in data]
    for i, buffer in enumerate(buffers):
        for at in {0, len(buffer) // 2, len(buffer) - 1} & set(range(len(buffer))):
            changed = bytearray(buffer)
            changed[at] ^= 1
            with contextlib.suppress(MPLangError):  # the codec notices
                yield decode(kind, head, [*buffers[:i], bytes(changed), *buffers[i + 1 :]])


def execute(
    host: SimpHost, program: Program, given: Sequence[Sequence[Any]], mode: Mode = "standard"
) -> list[list[Any]]:
    """Run a program on operands by party: per result a list of one value per party."""
    operands = [HostVar(values) for values in zip(*given, strict=True)]
    with host.options(mode=mode):
        outs = host.evaluate(program, operands)
    return [list(out.values) for out in outs]


def execute_quietly(host: SimpHost, program: Program, given: Sequence[Sequence[Any]]) -> None:
    """Run a program, whether it fails or not."""
    with contextlib.suppress(MPLangError):  # another test is about that
        execute(host, program, given)


def _interval(values: Sequence[Any]) -> Interval:
    """Return the least interval of tensors; all numbers, where one is something else."""
    arrays = [np.asarray(value) for value in values if isinstance(value, np.ndarray | np.generic)]
    if len(arrays) != len(values) or any(a.dtype.kind not in "biuf" or not a.size for a in arrays):
        return UNKNOWN
    low, high = min(float(a.min()) for a in arrays), max(float(a.max()) for a in arrays)
    return Interval(low, high) if np.isfinite([low, high]).all() else UNKNOWN
