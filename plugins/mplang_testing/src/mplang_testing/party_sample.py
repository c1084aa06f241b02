"""One use of an op among parties, and each op of it by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from mplang_core import (
    BaseType,
    ClusterSpec,
    Mask,
    MPLangError,
    MPType,
    Program,
    TraceContext,
    with_ctx,
)
from mplang_core.ext import Graph, HostVar, Mode, Operation, SimpHost, Value
from mplang_testing.sample import Sample
from mplang_testing.suite import complain
from mplang_testing.values import another, base_of

PerParty = Sequence[Any]
"""The copies of a value by rank; ``None`` where a party holds none."""


class PartySample:
    """Use of an op among parties, in a program with data.

    Args:
        op: the op's name.
        program: the Python function that uses it, outside of branches and loops.
        *args: what the function is given, as of a :class:`Sample`; all parties hold the values.
        parties: how many parties there are.
        name: tells it from other samples of the op.

    Example:
        >>> import mplang_core as mp
        >>> import numpy as np
        >>> move = lambda x: mp.pshfl_s(x, [1], [0])
        >>> sample = PartySample("simp.shuffle_static", move, np.int64(7), parties=2)
        >>> print(sample.trace())
        program "simp.shuffle_static" on {0, 1} (%0: i64[]@{0, 1}) {
          %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : i64[]@{1} at ...
          return %1
        }
        <BLANKLINE>
    """

    def __init__(
        self, op: str, program: Callable[..., Any], *args: Any, parties: int = 3, name: str = ""
    ) -> None:
        self.op = op
        self.program = program
        self.parties = parties
        self.name = name
        self._values = Sample(op, *args, parties=parties)

    def __repr__(self) -> str:
        return f"PartySample({self.name or self.op!r})"

    @property
    def has_data(self) -> bool:
        """Whether all values are there, so that it can run."""
        return self._values.has_data

    def operands(self) -> list[HostVar]:
        """Return the values among the arguments, as a host in this process takes them."""
        data = [self._values.data(rank) for rank in range(self.parties)]
        return [HostVar(values) for values in zip(*data, strict=True)]

    def trace(self) -> Program:
        """Return the program; its outputs are the results of all its ops."""
        ctx = TraceContext(ClusterSpec.simple(self.parties))
        given = [ctx.parameter(MPType(k, self._values.mask)) for k in self._values.operands]
        with with_ctx(ctx):
            self.program(*self._values.filled(given))
        ctx.graph.outputs = [value for op in ctx.graph.ops for value in op.outputs]
        return Program(self.op, self._values.mask, ctx.graph)

    def ops_of(self, program: Program) -> list[Operation]:
        """Return the uses of the op in its program; complain if there is none."""
        ops = [op for op in program.graph.ops if op.opcode == self.op]
        if not ops:
            complain(
                f"{self} does not use its op",
                expected=f"{self.op} outside of branches, loops and calls",
                got=[op.opcode for op in program.graph.ops],
                fix="correct the sample's program, or the name of its op",
            )
        return ops


@dataclass(frozen=True)
class PartyUse:
    """An op of a sample by itself, so that each message and each result is its own.

    Attributes:
        sample: the sample.
        op: the op.
        program: a program of the op alone.
        operands: its operands, each of them once, as the sample has them.
    """

    sample: PartySample
    op: Operation
    program: Program
    operands: Sequence[PerParty]

    @classmethod
    def all_of(cls, sample: PartySample, host: SimpHost) -> list[PartyUse]:
        """Return the uses of the op of a sample; run its program for their operands."""
        program = sample.trace()
        ops = sample.ops_of(program)
        env = _values_of(sample, program, host)
        return [cls._of(sample, op, program.mask, env) for op in ops]

    @classmethod
    def _of(
        cls, sample: PartySample, op: Operation, world: Mask, env: Mapping[Value, HostVar]
    ) -> PartyUse:
        values = list(dict.fromkeys(op.inputs))
        alone = Program(op.opcode, world, Graph(values, [op], list(op.outputs)))
        return cls(sample, op, alone, [env[value].values for value in values])

    @property
    def kinds(self) -> list[BaseType]:
        """The types of the operands, as each holder has them."""
        return [base_of(value) for value in self.program.graph.inputs]

    @property
    def results(self) -> list[BaseType]:
        """The types of the results, as each holder has them."""
        return [base_of(value) for value in self.op.outputs]

    def operand(self, position: int) -> int:
        """Return the index in ``operands`` of the operand at a position of the op."""
        return self.program.graph.inputs.index(self.op.inputs[position])

    def run(
        self, host: SimpHost, operands: Sequence[PerParty] | None = None, mode: Mode = "standard"
    ) -> list[PerParty]:
        """Return the results of the op.

        Raises:
            MPLangError: it failed.
        """
        given = self.operands if operands is None else operands
        with host.options(mode=mode):
            outs = host.evaluate(self.program, [HostVar(tuple(values)) for values in given])
        return [out.values for out in outs]

    def run_sample(self, host: SimpHost, mode: Mode = "standard") -> list[PerParty]:
        """Return the results on the sample's data; complain if the op fails."""
        try:
            return self.run(host, mode=mode)
        except MPLangError as error:
            does_not_run(self.sample, error)

    def holdings(self) -> Iterator[tuple[int, int]]:
        """Yield index and rank of each copy of an operand."""
        for i, values in enumerate(self.operands):
            yield from ((i, rank) for rank, value in enumerate(values) if value is not None)

    def with_another(
        self, i: int, rank: int, random: np.random.Generator
    ) -> Sequence[PerParty] | None:
        """Return the operands with another value at one party; ``None`` if none is known."""
        changed = [list(values) for values in self.operands]
        other = another(self.kinds[i], changed[i][rank], random)
        if other is None:
            copies = [v for v in self.operands[i] if v is not None and v is not changed[i][rank]]
            other = copies[0] if copies else None
        changed[i][rank] = other
        return None if other is None else changed


def does_not_run(sample: PartySample, error: MPLangError) -> NoReturn:
    """Complain that the program of a sample fails."""
    cause = f" ({error.__cause__!r})" if error.__cause__ else ""
    if "broke its promise" in str(error):
        complain(
            f"the kernel of {sample} breaks the promise of its op",
            expected="values of the types that were inferred",
            got=str(error),
            fix="correct the kernel, or the type inference of the op",
        )
    complain(
        f"{sample} does not run",
        expected="a program that its parties can run",
        got=f"{error}{cause}",
        fix="correct the op, or the sample",
    )


def _values_of(sample: PartySample, program: Program, host: SimpHost) -> dict[Value, HostVar]:
    given = sample.operands()
    graph = program.graph
    try:
        outs = host.evaluate(program, given)
    except MPLangError as error:
        does_not_run(sample, error)
    return dict(zip([*graph.inputs, *graph.outputs], [*given, *outs], strict=True))
