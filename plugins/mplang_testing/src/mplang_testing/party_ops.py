"""What ops among parties promise: to send the messages that they declare, and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from mplang_simulator import Simulator
from mplang_trace import record

from mplang_core import ClusterSpec, MPLangError, MPType, Program, TraceContext, registry, with_ctx
from mplang_core.ext import (
    Communicates,
    Graph,
    HostVar,
    Level,
    Mode,
    Operation,
    SimpHost,
    Value,
    interface_of,
    op_defs,
)
from mplang_testing.sample import Sample
from mplang_testing.suite import Suite, complain, numbered
from mplang_testing.waiting import DEADLINE

Link = tuple[int, int]  # sender and receiver


class PartySample:
    """One use of an op among parties, in a program with data.

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


class PartyOpSuite(Suite, kit=True):
    """The ops of a family send the messages that they declare.

    Disclosure and costs are told by what an op declares, so a message that it keeps to itself
    discloses something that nobody is told of. Counted are the messages of communicators, by
    sender and receiver; those of an engine's own links are not seen. An op that runs regions
    among the parties is sampled with regions that send nothing.

    Attributes:
        family: the family of ops.
        samples: uses of each of its ops that has the interface
            :class:`~mplang_core.ext.Communicates`.

    Example:
        >>> import mplang_core as mp
        >>> import numpy as np
        >>> move = lambda x: mp.pshfl_s(x, [1], [0])
        >>> class TestPartyOps(PartyOpSuite):
        ...     family = "simp"
        ...     samples = (PartySample("simp.shuffle_static", move, np.int64(7)),)
    """

    family: ClassVar[str]
    samples: ClassVar[Sequence[PartySample]] = ()

    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the samples and the modes."""
        names = numbered([sample.name or sample.op for sample in self.samples])
        return {
            "sample": dict(zip(names, self.samples, strict=True)),
            "mode": {"standard": "standard", "launch": "launch"},
        }

    def make(self, parties: int) -> SimpHost:
        """Return a host in this process to run the samples on."""
        return Simulator(ClusterSpec.simple(parties), timeout=DEADLINE, check_numbers=False)

    def test_there_is_a_sample_of_every_op_that_sends(self) -> None:
        """Each op of the family that declares messages is used, and with data."""
        registry.list_ops(self.family)  # loads the plugins
        used = {sample.op for sample in self.samples if sample.has_data}
        there = {name for name in op_defs.names() if _is_of(self.family, name)}
        if not used or used != there:
            complain(
                f"the samples do not fit the ops among parties of the family {self.family!r}",
                expected=f"a sample of each of {sorted(there) or '(no such op is registered)'}, "
                "with data",
                got=f"{sorted(used)}",
                fix=f"add {sorted(there - used)}, remove {sorted(used - there)}; an op is among "
                "these if its OpDef has Level.PARTY and the interface Communicates",
            )

    def test_it_sends_the_messages_that_it_declares(self, sample: PartySample, mode: Mode) -> None:
        """On no link are there more messages than declared, or fewer than are always sent."""
        program = sample.trace()
        ops = [op for op in program.graph.ops if op.opcode == sample.op]
        if not ops:
            complain(
                f"{sample} does not use its op",
                expected=f"{sample.op} outside of branches, loops and calls",
                got=[op.opcode for op in program.graph.ops],
                fix="correct the sample's program, or the name of its op",
            )
        with self.make(sample.parties) as host:
            env = self._values_of(host, sample, program)
            for op in ops:
                self._hold_against_messages(host, sample, program, op, env, mode)

    # --

    def _values_of(
        self, host: SimpHost, sample: PartySample, program: Program
    ) -> dict[Value, HostVar]:
        given = sample.operands()
        graph = program.graph
        try:
            outs = host.evaluate(program, given)
        except MPLangError as error:
            _does_not_run(sample, error)
        return dict(zip([*graph.inputs, *graph.outputs], [*given, *outs], strict=True))

    def _hold_against_messages(
        self,
        host: SimpHost,
        sample: PartySample,
        program: Program,
        op: Operation,
        env: Mapping[Value, HostVar],
        mode: Mode,
    ) -> None:
        """Run one op by itself, so that every message is its own."""
        operands = list(dict.fromkeys(op.inputs))
        alone = Program(op.opcode, program.mask, Graph(operands, [op], list(op.outputs)))
        try:
            with record(host) as recording, host.options(mode=mode):
                host.evaluate(alone, [env[value] for value in operands])
        except MPLangError as error:
            _does_not_run(sample, error)
        sent = {link: use.messages for link, use in recording.links().items()}
        most, least = _declared(op, program)
        for link in sorted(most.keys() | sent.keys()):
            count = sent.get(link, 0)
            if count > most[link]:
                _undeclared(op, link, count, most[link], mode)
            if count < least[link]:
                _unsent(op, link, count, least[link], mode)


def _is_of(family: str, name: str) -> bool:
    op_def = op_defs.get(name)
    return (
        name.partition(".")[0] == family
        and op_def is not None
        and op_def.level is Level.PARTY
        and any(isinstance(each, Communicates) for each in op_def.interfaces)
    )


def _declared(op: Operation, program: Program) -> tuple[Counter[Link], Counter[Link]]:
    """Return per link how many messages an op may send, and how many it always sends."""
    found, op_def = interface_of(op, Communicates), op_defs.get(op.opcode)
    if found is None:
        has = [type(each).__name__ for each in op_def.interfaces] if op_def is not None else []
        complain(
            f"{op.opcode} does not declare its messages",
            expected="an op among parties with the interface Communicates",
            got=f"the interfaces {has}",
            fix="add the interface to its OpDef, or leave the op out of the samples: of an op "
            "without it, mplang assumes that everyone learns everything",
        )
    messages = found.messages(op, program.mask)
    most = Counter((each.sender, each.receiver) for each in messages)
    least = Counter((each.sender, each.receiver) for each in messages if not each.when)
    return most, least


def _undeclared(op: Operation, link: Link, count: int, declared: int, mode: Mode) -> NoReturn:
    sender, receiver = link
    complain(
        f"{op.opcode} sends a message from party {sender} to party {receiver} that it does not "
        f"declare, in {mode} mode",
        expected=f"as many as its interface Communicates declares for this link: {declared}",
        got=f"{count} on the link from party {sender} to party {receiver}",
        fix=f"have messages() of {op.opcode} return a Message({sender}, {receiver}, …) for each "
        "that may be sent, or do not send it: disclosure and costs are told by what is declared",
    )


def _unsent(op: Operation, link: Link, count: int, declared: int, mode: Mode) -> NoReturn:
    sender, receiver = link
    complain(
        f"{op.opcode} declares a message from party {sender} to party {receiver} that it does not "
        f"send, in {mode} mode",
        expected=f"as many as are declared without a condition for this link: {declared}",
        got=f"{count} on the link from party {sender} to party {receiver}",
        fix=f"send it, or remove Message({sender}, {receiver}, …) from messages() of {op.opcode}; "
        'of one that depends on the data, say so by when="…"',
    )


def _does_not_run(sample: PartySample, error: MPLangError) -> NoReturn:
    cause = f" ({error.__cause__!r})" if error.__cause__ else ""
    complain(
        f"{sample} does not run",
        expected="a program that its parties can run",
        got=f"{error}{cause}",
        fix="correct the op, or the sample",
    )
