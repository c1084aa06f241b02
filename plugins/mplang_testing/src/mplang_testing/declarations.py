"""What ops declare beside their results: reads, effects, ranges, and that nothing is sent."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from mplang_analysis import UNKNOWN, HasRanges, Interval
from mplang_simulator import Simulator
from mplang_trace import record

from mplang_core import ClusterSpec, MPLangError, Program, registry
from mplang_core.ext import (
    DeclaredRange,
    Effects,
    HostVar,
    Mode,
    SimpHost,
    interface_of,
    meta_of,
    op_defs,
)
from mplang_testing.sample import Sample, local_program
from mplang_testing.suite import Suite, complain
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
