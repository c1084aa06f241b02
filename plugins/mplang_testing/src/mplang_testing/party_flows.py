"""What flows into the results of an op among parties, held against what it declares."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from mplang_analysis import Followed, Source, follow, own
from mplang_simulator import Simulator

from mplang_core import ClusterSpec, MPLangError
from mplang_core.ext import (
    Communicates,
    Effects,
    Forwards,
    Message,
    OpDef,
    PublicLiteral,
    SimpHost,
    interface_of,
    op_defs,
)
from mplang_testing.party_sample import PartySample, PartyUse, PerParty
from mplang_testing.suite import Suite, complain
from mplang_testing.values import another, hard_values, same
from mplang_testing.waiting import DEADLINE

SEED = 20  # of the values that operands are changed to
RANDOM_RUNS = 40  # a draw of one bit is the same in all of them once in 10**12


class FlowSuite(Suite, kit=True):
    """Results depend on what is declared; a part of :class:`~mplang_testing.PartyOpSuite`."""

    def make(self, parties: int) -> SimpHost:
        """Return a host in this process to run the samples on."""
        return Simulator(ClusterSpec.simple(parties), timeout=DEADLINE, check_numbers=False)

    def test_what_it_forwards_is_a_copy(self, sample: PartySample) -> None:
        """An op that ``Forwards`` an operand gives a party somebody's copy of it, bit by bit."""
        random = np.random.default_rng(SEED)
        with self.make(sample.parties) as host:
            for use in PartyUse.all_of(sample, host):
                forwards = interface_of(use.op, Forwards)
                if forwards is None:
                    continue
                sources = [tuple(forwards.sources(use.op, i)) for i in range(len(use.results))]
                copied = {use.operand(i) for found in sources for i in found}
                given = _told_apart(use, copied, random)
                for i, (found, values) in enumerate(
                    zip(sources, _run(host, use, given), strict=True)
                ):
                    _check_copies(use, given, i, found, values)

    def test_results_depend_on_what_is_declared(self, sample: PartySample) -> None:
        """A party's results change with those copies of operands alone that reach it, as told.

        The table of disclosures is made of messages, interfaces and effects of the op. Each copy
        of an operand is changed, and what changes at the parties is held against it.
        """
        random = np.random.default_rng(SEED)
        with self.make(sample.parties) as host:
            for use in PartyUse.all_of(sample, host):
                before = use.run_sample(host)
                if not _all_same(use, before, use.run_sample(host)):
                    continue  # random results differ by themselves
                reached = _reached(use)
                for i, rank in use.holdings():
                    changed = use.with_another(i, rank, random)
                    if changed is None:
                        continue
                    try:
                        after = use.run(host, changed)
                    except MPLangError:
                        continue  # whether it may is another test
                    _check_reached(use, (i, rank), reached, before, after)

    def test_a_literal_is_the_one_that_it_declares(self, sample: PartySample) -> None:
        """The result of a ``PublicLiteral`` is that tensor, which everyone reads."""
        with self.make(sample.parties) as host:
            for use in PartyUse.all_of(sample, host):
                declared = interface_of(use.op, PublicLiteral)
                if declared is None:
                    continue
                literal = declared.literal(use.op)
                for value in (v for v in use.run_sample(host)[0] if v is not None):
                    if not same(use.results[0], literal, value):
                        complain(
                            f"{sample.op} gives another value than its interface PublicLiteral",
                            expected=literal,
                            got=value,
                            fix="give the literal, or leave the interface out: nobody is told of "
                            "what is in a literal",
                        )

    def test_effects_are_those_that_it_declares(self, sample: PartySample) -> None:
        """Results are the same each time with ``NONE``, and drawn anew with ``FRESH``."""
        effects = _defined(sample).effects
        if effects is Effects.ANY:
            return
        with self.make(sample.parties) as host:
            for use in PartyUse.all_of(sample, host):
                first = use.run_sample(host)
                runs = (use.run_sample(host) for _ in range(RANDOM_RUNS))
                if effects is Effects.NONE and not _all_same(use, first, next(runs)):
                    complain(
                        f"{sample.op} gives other results each time",
                        expected="the same, as Effects.NONE says: two of it may be made one",
                        got=first,
                        fix="declare effects=Effects.FRESH, or draw nothing",
                    )
                if effects is Effects.FRESH and all(_all_same(use, first, run) for run in runs):
                    complain(
                        f"{sample.op} gives the same in {RANDOM_RUNS + 1} runs",
                        expected="results that are drawn anew, as Effects.FRESH says",
                        got=first,
                        fix="declare effects=Effects.NONE: what is fresh counts as nobody's data "
                        "at a party that gets no message",
                    )

    def test_what_is_total_never_fails_among_parties(self, sample: PartySample) -> None:
        """An op with ``total=True`` takes NaN, infinities, extreme integers and random bits."""
        op_def, random = _defined(sample), np.random.default_rng(SEED)
        with self.make(sample.parties) as host, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of NumPy, of an overflow
            for use in PartyUse.all_of(sample, host):
                if op_def.may_fail(use.op):
                    continue
                for what, given in _hard_operands(use, random):
                    try:
                        use.run(host, given)
                    except MPLangError as error:
                        complain(
                            f"{sample} fails, and {sample.op} declares total=True",
                            expected=f"a result for {what}",
                            got=f"{error} ({error.__cause__!r})",
                            fix="give a result for all values, or leave total=True out: whether it "
                            "fails tells everyone of its operands",
                        )


def _defined(sample: PartySample) -> OpDef:
    op_def = op_defs.get(sample.op)
    if op_def is None:
        complain(
            f"there is no op {sample.op}",
            expected="an op of an installed plugin",
            got="none of that name",
            fix="correct the name, or bring the op by mplang_dialects",
        )
    return op_def


def _run(host: SimpHost, use: PartyUse, given: Sequence[PerParty]) -> list[PerParty]:
    """Return the results on operands that differ, or on the sample's, if it takes no others."""
    try:
        return use.run(host, given)
    except MPLangError as error:
        complain(
            f"{use.sample} does not run with other values to forward",
            expected="copies, whatever the values are",
            got=f"{error} ({error.__cause__!r})",
            fix="leave the interface Forwards out, if the op looks into them",
        )


# -- copies


def _told_apart(use: PartyUse, copied: set[int], random: np.random.Generator) -> Sequence[PerParty]:
    """Return the operands, of which those that are copied differ from party to party."""
    given = [list(values) for values in use.operands]
    for i, rank in use.holdings():
        if i in copied:
            other = another(use.kinds[i], given[i][rank], random)
            given[i][rank] = given[i][rank] if other is None else other
    return given


def _check_copies(
    use: PartyUse, given: Sequence[PerParty], output: int, sources: Sequence[int], values: PerParty
) -> None:
    kind = use.results[output]
    for rank, value in enumerate(values):
        if value is None:
            continue
        owners = _owners(use, sources, rank)
        copies = [given[use.operand(i)][owner] for i, owner in sorted(owners)]
        if not any(same(kind, copy, value) for copy in copies):
            told = " or ".join(f"operand {i} of party {owner}" for i, owner in sorted(owners))
            complain(
                f"{use.op.opcode} gives party {rank} something else than it forwards",
                expected=f"output {output} is a copy of {told or 'nothing that reaches it'}, as "
                f"its interface Forwards says by sources() = {tuple(sources)} and its messages",
                got=f"{str(value)[:200]}, and not {' or '.join(str(c)[:200] for c in copies)}",
                fix=f"correct sources() of {use.op.opcode}, or messages(); without Forwards an "
                "output counts as made of all that its party has",
            )


def _owners(use: PartyUse, sources: Sequence[int], rank: int) -> set[tuple[int, int]]:
    """Return operands and parties of which a party may have a copy, as the op declares."""
    communicates = interface_of(use.op, Communicates)
    messages = [] if communicates is None else communicates.messages(use.op, use.program.mask)
    return _owners_by(use, messages, sources, rank, frozenset())


def _owners_by(
    use: PartyUse,
    messages: Sequence[Message],
    sources: Sequence[int],
    rank: int,
    asked: frozenset[int],
) -> set[tuple[int, int]]:
    carriers = [
        each
        for each in messages
        if each.receiver == rank and each.operand in sources and each.type is None
    ]
    found: set[tuple[int, int]] = set()
    for each in carriers:
        position = each.operand or 0
        if use.operands[use.operand(position)][each.sender] is not None:
            found.add((position, each.sender))
        elif each.sender not in asked:  # it hands on what it got
            found |= _owners_by(use, messages, sources, each.sender, asked | {rank})
    if all(each.when for each in carriers):
        found |= {(i, rank) for i in sources if use.operands[use.operand(i)][rank] is not None}
    return found


# -- dependences


def followed(use: PartyUse) -> Followed:
    """Return what an op discloses, with labels that name the operands."""
    labels = [
        {rank: own(rank, f"operand {i}") for rank, value in enumerate(values) if value is not None}
        for i, values in enumerate(use.operands)
    ]
    return follow(use.program, labels)


def copies(use: PartyUse, sources: Iterable[Source]) -> set[tuple[int, int]]:
    """Return the operands and parties that sources of :func:`followed` are."""
    names = {f"operand {i}": i for i in range(len(use.operands))}
    return {(names[each.name], each.party) for each in sources if each.name in names}


def _reached(use: PartyUse) -> list[dict[int, set[tuple[int, int]]]]:
    """Return per result and party the copies of operands that it is made of, by the table."""
    return [
        {rank: copies(use, label.sources) for rank, label in fact.items()}
        for fact in followed(use).outputs
    ]


def _check_reached(
    use: PartyUse,
    copy: tuple[int, int],
    reached: Sequence[dict[int, set[tuple[int, int]]]],
    before: Sequence[PerParty],
    after: Sequence[PerParty],
) -> None:
    for i, kind in enumerate(use.results):
        for rank, (old, new) in enumerate(zip(before[i], after[i], strict=True)):
            told = reached[i].get(rank, set())
            if copy not in told and not same(kind, old, new):
                _unreached(use, copy, i, rank, told)


def _unreached(
    use: PartyUse, copy: tuple[int, int], output: int, rank: int, told: set[tuple[int, int]]
) -> NoReturn:
    operand, party = copy
    seen = ", ".join(f"operand {i} of party {p}" for i, p in sorted(told)) or "nobody's data"
    complain(
        f"{use.op.opcode} makes output {output} at party {rank} of operand {operand} of party "
        f"{party}, and does not say so",
        expected=f"what depends on {seen} alone, as its messages, interfaces and effects say",
        got=f"another value when operand {operand} of party {party} changes",
        fix=f"name operand {operand} in the Message that carries it (None for all that its sender "
        "has), and in sources() if it is copied; without Communicates everyone is taken to learn "
        "everything",
    )


def _all_same(use: PartyUse, one: Sequence[PerParty], other: Sequence[PerParty]) -> bool:
    return all(
        same(kind, a, b)
        for kind, mine, theirs in zip(use.results, one, other, strict=True)
        for a, b in zip(mine, theirs, strict=True)
    )


def _hard_operands(
    use: PartyUse, random: np.random.Generator
) -> Iterator[tuple[str, Sequence[PerParty]]]:
    """Yield operands of which one is of a hard value at all of its holders."""
    for i, values in enumerate(use.operands):
        present: Any = next((v for v in values if v is not None), None)
        if present is None:
            continue
        for what, hard in hard_values(use.kinds[i], present, random):
            given = [list(each) for each in use.operands]
            given[i] = [None if v is None else hard for v in values]
            yield f"operand {i} of {what}", given
