"""What ops among parties promise: to send the messages that they declare, and no others."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
from mplang_analysis import DisclosureRow
from mplang_analysis.ext import GROUP_OF_WORDS, is_condition
from mplang_trace import record

from mplang_core import MPLangError, Program, registry
from mplang_core.ext import (
    Branch,
    Level,
    Loop,
    Mode,
    Operation,
    SimpHost,
    control_of,
    messages_of,
    op_defs,
)
from mplang_testing.declarations import check_changes
from mplang_testing.party_flows import SEED, FlowSuite, copies, followed
from mplang_testing.party_sample import PartySample, PartyUse, PerParty, does_not_run
from mplang_testing.suite import complain, numbered
from mplang_testing.traffic import Traffic, alike, traffic
from mplang_testing.values import hard_values

Link = tuple[int, int]  # sender and receiver
BESIDE = ("failure", "duration", "change")  # rows that tell of no message


class PartyOpSuite(FlowSuite, kit=True):
    """The ops among parties of a family do what they declare.

    Disclosure and costs are told by what an op declares, so a message that it keeps to itself
    discloses something that nobody is told of. Counted are the messages of communicators, by
    sender and receiver; those of an engine's own links are not seen. What results depend on is
    held against messages and interfaces, by running the op on other values. An op that runs
    regions among the parties is sampled with regions that send nothing.

    Attributes:
        family: the family of ops.
        samples: uses of each of its ops with ``Level.PARTY``.

    Example:
        >>> import mplang_core as mp
        >>> move = lambda x: mp.pshfl_s(x, [1], [0])
        >>> class TestPartyOps(PartyOpSuite):
        ...     family = "simp"
        ...     samples = (PartySample("simp.shuffle_static", move, 7),)
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

    def test_there_is_a_sample_of_every_op_among_parties(self) -> None:
        """Each op of the family with ``Level.PARTY`` is used, and with data."""
        used = {sample.op for sample in self.samples if sample.has_data}
        there = ops_among_parties(self.family)
        if not used or used != there:
            complain(
                f"the samples do not fit the ops among parties of the family {self.family!r}",
                expected=f"a sample of each of {sorted(there) or '(no such op is registered)'}, "
                "with data",
                got=f"{sorted(used)}",
                fix=f"add {sorted(there - used)}, remove {sorted(used - there)}; an op is among "
                "these if its OpDef has Level.PARTY",
            )

    def test_it_says_who_can_change_what_it_opens(self, sample: PartySample) -> None:
        """An op that makes something plain of shares has a ``ChangeRule``."""
        for op in sample.ops_of(sample.trace()):
            check_changes(op)

    def test_it_sends_the_messages_that_it_declares(self, sample: PartySample, mode: Mode) -> None:
        """On no link are there more messages than declared, or fewer than are always sent."""
        program = sample.trace()
        for op in sample.ops_of(program):
            _check_messages(op, program)
        with self.make(sample.parties) as host:
            for use in PartyUse.all_of(sample, host):
                most, least = _declared(use.op, use.program)
                sent = _sent(use, host, mode)
                for link in sorted(most.keys() | sent.keys()):
                    count = sent.get(link, 0)
                    if count > most[link] and not _compares(use.op):
                        _undeclared(use.op, link, count, most[link], mode)
                    if count < least[link]:
                        _unsent(use.op, link, count, least[link], mode)

    def test_messages_depend_on_the_data_that_is_told(self, sample: PartySample) -> None:
        """Number and sizes of messages change with those copies of operands of which a row tells.

        Each copy is changed by itself; a receiver that the table tells of it may see that.
        """
        random = np.random.default_rng(SEED)
        with self.make(sample.parties) as host:
            for use in PartyUse.all_of(sample, host):
                first, usual = _traffic(use, host), _traffic(use, host)
                assert first is not None
                assert usual is not None
                rows = followed(use).disclosure.rows
                for copy, what, changed in _other_copies(use, random):
                    sent = _traffic(use, host, changed)
                    for link in () if sent is None else usual.keys() | sent.keys():
                        views = [{link: each.get(link, ())} for each in (usual, sent or {})]
                        if copy[1] == link[1] or alike(views[0], views[1], first != usual):
                            continue  # a receiver knows its own data
                        if not any(copy in _told(use, row, link) for row in rows):
                            _depends(use, copy, link, what, views)


def ops_among_parties(family: str) -> set[str]:
    """Return the ops among parties of a family, those of plugins, too."""
    registry.list_ops(family)  # loads the plugins
    return {
        name
        for name, op_def in op_defs
        if name.partition(".")[0] == family and op_def.level is Level.PARTY
    }


def _sent(use: PartyUse, host: SimpHost, mode: Mode) -> Mapping[Link, int]:
    """Run an op by itself; return how many messages were on each link."""
    try:
        with record(host) as recording:
            use.run(host, mode=mode)
    except MPLangError as error:
        does_not_run(use.sample, error)
    return {link: found.messages for link, found in recording.links().items()}


def _traffic(
    use: PartyUse, host: SimpHost, operands: Sequence[PerParty] | None = None
) -> Traffic | None:
    """Run an op by itself; return what it sent, or none if it does not take these operands."""
    try:
        with record(host) as recording:
            use.run(host, operands)
    except MPLangError as error:
        if operands is None:
            does_not_run(use.sample, error)
        return None
    return traffic(recording)


def _other_copies(
    use: PartyUse, random: np.random.Generator
) -> Iterator[tuple[tuple[int, int], str, Sequence[PerParty]]]:
    """Yield a copy of an operand, what it is changed to, and all operands with that."""
    for i, rank in use.holdings():
        value, kind = use.operands[i][rank], use.kinds[i]
        for what, other in hard_values(kind, value, random):
            changed = [list(values) for values in use.operands]
            changed[i][rank] = other
            yield (i, rank), what, changed


def _told(use: PartyUse, row: DisclosureRow, link: Link) -> set[tuple[int, int]]:
    """Return the copies of operands of which a row tells the receiver of a link."""
    sender, receiver = link
    if row.what in BESIDE or row.sender not in (sender, None):
        return set()
    if row.receiver not in (receiver, "everyone"):
        return set()
    return copies(use, (each for each in row.sources if each.party in row.discloses))


def _compares(op: Operation) -> bool:
    """Return whether parties exchange predicates, of which each analysis knows."""
    control = control_of(op)
    return isinstance(control, Branch | Loop) and control.compared


def _declared(op: Operation, program: Program) -> tuple[Counter[Link], Counter[Link]]:
    """Return per link how many messages an op may send, and how many it always sends."""
    messages = messages_of(op, program.mask) or ()
    most = Counter((each.sender, each.receiver) for each in messages)
    most.update({(each.sender, each.receiver): sys.maxsize for each in messages if each.many})
    least = Counter((each.sender, each.receiver) for each in messages if not each.when)
    return most, least


def _check_messages(op: Operation, program: Program) -> None:
    """Check that an op declares its messages, of parties and operands that there are."""
    messages, op_def = messages_of(op, program.mask), op_defs.get(op.opcode)
    if messages is None:
        has = [type(each).__name__ for each in op_def.interfaces] if op_def is not None else []
        complain(
            f"{op.opcode} does not declare its messages",
            expected="an op among parties with the interface Communicates (or ControlFlow, if it "
            "does nothing but run its regions)",
            got=f"the interfaces {has}",
            fix="add the interface to its OpDef; its messages() may be empty. Of an op without it, "
            "mplang assumes that everyone learns everything, and no costs are known",
        )
    for each in messages:
        if each.sender not in program.mask or each.receiver not in program.mask:
            wrong = f"a message from party {each.sender} to party {each.receiver}"
            _wrong_message(op, wrong, f"parties of {program.mask}")
        if each.operand is not None and not 0 <= each.operand < len(op.inputs):
            _wrong_message(op, f"operand {each.operand}", f"one of {len(op.inputs)} operands")
        if each.when and not is_condition(each.when):
            _wrong_message(
                op,
                f"the condition {each.when!r}",
                f"one of mplang_analysis.When, or of an entry point of {GROUP_OF_WORDS}",
            )


def _wrong_message(op: Operation, got: str, expected: str) -> NoReturn:
    complain(
        f"messages() of {op.opcode} names {got}",
        expected=expected,
        got=got,
        fix="correct messages(): it is asked with the op, and the parties of the program",
    )


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


def _depends(
    use: PartyUse, copy: tuple[int, int], link: Link, what: str, views: Sequence[Traffic]
) -> NoReturn:
    (operand, party), (sender, receiver) = copy, link
    complain(
        f"{use.op.opcode} sends other messages from party {sender} to party {receiver} where "
        f"operand {operand} of party {party} is {what}, and does not say so",
        expected=f"messages of these sizes, as on the sample's data: {views[0][link]}",
        got=views[1][link],
        fix=f"send as much whatever the data are, or name operand {operand} in a Message from "
        f"party {sender} to party {receiver}; of what has the size alone, by SideChannels(sizes)",
    )
