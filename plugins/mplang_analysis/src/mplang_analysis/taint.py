"""Taint analysis: abstract interpretation of a program over sets of data owners."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Literal, TypeAlias

from mplang_analysis import op_traits
from mplang_analysis.subject import line_of
from mplang_core import BaseType, DType, Form, Mask, MPType, Program, TensorType
from mplang_core.ext import (
    Branch,
    Call,
    Forwards,
    Graph,
    Location,
    Loop,
    Message,
    Operation,
    PartyCall,
    PublicLiteral,
    Value,
    control_of,
    holders_of,
    interface_of,
    messages_of,
)

What: TypeAlias = Literal["move", "reveal", "predicate", "index", "result"]

Piece: TypeAlias = tuple[tuple[int, int], int]
"""A share: which secret it is of, and which one of its shares it is."""


@dataclass(frozen=True, slots=True)
class Taint:
    """What flowed into the copy of a value that one party holds.

    Attributes:
        sources: per private datum the parties that know it from the beginning.
        pieces: the shares that it may be; of a value that is no share, nothing.
    """

    sources: frozenset[Mask] = frozenset()
    pieces: frozenset[Piece] = frozenset()

    def __or__(self, other: Taint) -> Taint:
        return Taint(self.sources | other.sources, self.pieces | other.pieces)

    @property
    def parties(self) -> Mask:
        """The parties whose data it is."""
        return reduce(or_, self.sources, Mask())

    def news_to(self, rank: int | None) -> Mask:
        """Return the parties whose data a party did not know; to the host all is news."""
        return reduce(or_, (s for s in self.sources if rank not in s), Mask())

    def made_of(self) -> Taint:
        """Return the taint of something that is made of it, and is no share."""
        return Taint(self.sources)


Fact: TypeAlias = Mapping[int, Taint]
"""Per holder of a value the taint of its copy."""

NOTHING = Taint()


def _union(taints: Sequence[Taint]) -> Taint:
    return reduce(or_, taints, NOTHING)


def _merge(facts: Sequence[Fact]) -> Fact:
    """Join facts of which each party's copy may come."""
    ranks = sorted({rank for fact in facts for rank in fact})
    return {rank: _union([fact[rank] for fact in facts if rank in fact]) for rank in ranks}


@dataclass(frozen=True, slots=True)
class Event:
    """Something of a program that another party learns of.

    Attributes:
        what: a ``move`` of a value; a ``reveal``, by which something protected becomes plain
            at a party; a ``predicate`` that parties compare; the ``index`` by which a party
            asks for a value; a ``result`` that the host may fetch.
        sender: the party that sends; nobody in a reveal.
        receiver: the party that receives or reveals; ``None`` for the host.
        type: what crosses.
        taint: what flowed into it.
        location: the user's line.
        when: how often, as far as that is not once.
        sent: whether a message carries it.
    """

    what: What
    sender: int | None
    receiver: int | None
    type: BaseType
    taint: Taint
    location: Location | None
    when: tuple[str, ...]
    sent: bool = True


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where the walk is: who runs it, under whose influence, at which line, how often."""

    parties: Mask
    control: Taint = NOTHING
    location: Location | None = None
    when: tuple[str, ...] = ()

    def at(self, op: Operation) -> _Scope:
        return dataclasses.replace(self, location=line_of(op, self.location))

    def among(self, parties: Mask) -> _Scope:
        return dataclasses.replace(self, parties=parties)

    def under(self, control: Taint, when: str) -> _Scope:
        scopes = self.when if when in self.when else (*self.when, when)
        return dataclasses.replace(self, control=self.control | control, when=scopes)


BOOL = TensorType(DType.BOOL)


@dataclass(slots=True)
class Flow:
    """The flow of data through a verified program.

    Args:
        program: the program.
        uniform_inputs: whether a plain input of several parties is the same at all of them,
            and so known to all of them from the beginning; else each has its own.

    Attributes:
        events: what others learn of, in the order of the program.
    """

    program: Program
    uniform_inputs: bool = True
    events: list[Event] = field(default_factory=list)
    _held: dict[int, set[Piece]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        scope = _Scope(self.program.mask)
        graph = self.program.graph
        outs = self._walk(graph, list(map(self._input, graph.inputs)), scope)
        lines = {value: op.location for op in graph.ops for value in op.outputs}
        for value, fact in zip(graph.outputs, outs, strict=True):
            here = dataclasses.replace(scope, location=lines.get(value))
            for rank, taint in sorted(fact.items()):
                self._record("result", rank, None, op_traits.base_of(value.type), taint, here)

    def opened_by(self, event: Event) -> bool:
        """Tell whether a share comes to a party that has another share of the same secret."""
        if event.receiver is None:
            return False
        held = self._held[event.receiver]
        return any(
            secret == other and piece != another
            for secret, piece in event.taint.pieces
            for other, another in held
        )

    # -- where data comes from

    def _input(self, value: Value) -> Fact:
        assert isinstance(value.type, MPType)
        world, base, pmask = self.program.mask, value.type.base, value.type.pmask
        holders = world if pmask is None else pmask
        if base.form in op_traits.PROTECTED:  # of an earlier program; it may be anyone's
            anyone = frozenset(map(Mask.of, world))
            secret = (id(value), 0)
            return {rank: Taint(anyone, frozenset([(secret, rank)])) for rank in holders}
        if pmask is None or not self.uniform_inputs:
            return {rank: _own(rank) for rank in holders}
        public = holders == world and len(world) > 1
        return dict.fromkeys(holders, NOTHING if public else Taint(frozenset([holders])))

    # -- walking

    def _walk(self, graph: Graph, facts: Sequence[Fact], scope: _Scope) -> list[Fact]:
        env: dict[Value, Fact] = dict(zip(graph.inputs, facts, strict=True))
        self._hold(env)
        for op in graph.ops:
            outs = self._step(op, [env[value] for value in op.inputs], scope.at(op))
            found = dict(zip(op.outputs, outs, strict=True))
            self._hold(found)
            env.update(found)
        return [env[value] for value in graph.outputs]

    def _step(self, op: Operation, ins: Sequence[Fact], scope: _Scope) -> list[Fact]:
        control = control_of(op)
        match control:
            case Call():
                return self._walk(op.regions[control.region], ins, scope)
            case PartyCall():
                return self._party_call(op, control, ins, scope)
            case Branch():
                return self._branch(op, control, ins, scope)
            case Loop():
                return self._loop(op, control, ins, scope)
        if interface_of(op, PublicLiteral) is not None:
            return [
                dict.fromkeys(holders_of(value.type, scope.parties), NOTHING)
                for value in op.outputs
            ]
        messages = messages_of(op, self.program.mask)
        if messages is not None:
            return self._exchange(op, messages, ins, scope)
        return self._apply(op, ins, scope)

    def _hold(self, facts: Mapping[Value, Fact]) -> None:
        """Note which shares are at whom."""
        for value, fact in facts.items():
            if op_traits.base_of(value.type).form is Form.SHARE:
                for rank, taint in fact.items():
                    self._held[rank] |= taint.pieces

    def _record(
        self,
        what: What,
        sender: int | None,
        receiver: int | None,
        kind: BaseType,
        taint: Taint,
        scope: _Scope,
        *when: str,
        sent: bool = True,
    ) -> None:
        seen = taint | scope.control
        place, often = scope.location, (*scope.when, *when)
        self.events.append(Event(what, sender, receiver, kind, seen, place, often, sent))

    # -- ops that stay at a party, or that plugins bring

    def _apply(self, op: Operation, ins: Sequence[Fact], scope: _Scope) -> list[Fact]:
        """Have each output depend on all operands at the same party; if they mix, of all."""
        seen = {rank: _union([fact.get(rank, NOTHING) for fact in ins]) for rank in scope.parties}
        together = len(scope.parties) > 1 and op_traits.acts_together(op)
        if together:
            self._inform_all(op, scope, seen)
        if together or op.regions:
            everything = self._regions(op, _union(list(seen.values())), scope)
            seen = dict.fromkeys(scope.parties, everything)
        return self._outputs(op, seen, scope, together)

    def _outputs(self, op: Operation, seen: Fact, scope: _Scope, together: bool) -> list[Fact]:
        outs = [self._output(op, i, seen) for i in range(len(op.outputs))]
        for value, out in zip(op.outputs, outs, strict=True):
            kind = op_traits.base_of(value.type)
            if op_traits.opens(op, kind) or (together and kind.form is Form.PLAIN):
                for rank, taint in out.items():
                    self._record("reveal", None, rank, kind, taint, scope, sent=False)
        return outs

    def _inform_all(self, op: Operation, scope: _Scope, seen: Fact) -> None:
        """Record that an op among parties which does not tell its messages may send all it has."""
        everything = _union(list(seen.values()))
        for value in op.inputs:
            if isinstance(value.type, MPType):
                for rank in scope.parties - holders_of(value.type, scope.parties):
                    self._record(
                        "reveal", None, rank, value.type.base, everything, scope, sent=False
                    )

    def _regions(self, op: Operation, taint: Taint, scope: _Scope) -> Taint:
        """Run the regions of an op of which nothing is known: anything may go anywhere."""
        inner, mark = scope.under(taint.made_of(), "any number of times"), len(self.events)
        found = [taint]
        for region in op.regions.values():
            fact = dict.fromkeys(scope.parties, taint)
            for out in self._walk(region, [fact] * len(region.inputs), inner):
                found += out.values()
        wider = _union(found)
        if wider == taint:
            return taint
        del self.events[mark:]
        return self._regions(op, wider, scope)

    def _output(self, op: Operation, i: int, seen: Fact) -> Fact:
        kind = op.outputs[i].type
        holders = kind.pmask if isinstance(kind, MPType) else None
        out = {rank: taint for rank, taint in seen.items() if holders is None or rank in holders}
        if op_traits.reads_own_data(op, i):
            out = {rank: taint | _own(rank) for rank, taint in out.items()}
        match op_traits.base_of(kind).form:
            case Form.PLAIN | Form.KEY:
                return {rank: taint.made_of() for rank, taint in out.items()}
            case Form.SHARE:
                return {rank: _as_share(op, i, rank, taint) for rank, taint in out.items()}
        return out

    # -- ops that tell which messages they send

    def _exchange(
        self, op: Operation, messages: Sequence[Message], ins: Sequence[Fact], scope: _Scope
    ) -> list[Fact]:
        arrived: dict[int, list[tuple[Message, Taint]]] = defaultdict(list)
        carried: dict[Message, Taint] = {}
        for each in sorted(messages, key=lambda message: message.stage):
            found = _carried(each, ins, arrived[each.sender])
            if found is not None:  # a party that does not hold it is asked in vain
                carried[each] = found
                arrived[each.receiver].append((each, found))
        for each in (message for message in messages if message in carried):
            kind = each.type or op_traits.base_of(op.inputs[each.operand or 0].type)
            often = [each.when] if each.when else []
            self._record(each.what, each.sender, each.receiver, kind, carried[each], scope, *often)
        forwards = interface_of(op, Forwards)
        if forwards is None:
            return self._computed(op, ins, arrived, scope)
        return [
            {
                rank: taint
                for rank in holders_of(value.type, scope.parties)
                if (taint := _forwarded(forwards.sources(op, i), ins, arrived[rank], rank))
                is not None
            }
            for i, value in enumerate(op.outputs)
        ]

    def _computed(
        self,
        op: Operation,
        ins: Sequence[Fact],
        arrived: Mapping[int, Sequence[tuple[Message, Taint]]],
        scope: _Scope,
    ) -> list[Fact]:
        """Let each output depend on all operands at its party, and on all that arrived there."""
        seen = {
            rank: _union(
                [
                    *(fact.get(rank, NOTHING) for fact in ins),
                    *(taint for _, taint in arrived.get(rank, ())),
                ]
            )
            for rank in scope.parties
        }
        return self._outputs(op, seen, scope, together=False)

    # -- ops that tell how they run their regions

    def _party_call(
        self, op: Operation, call: PartyCall, ins: Sequence[Fact], scope: _Scope
    ) -> list[Fact]:
        parties = call.parties
        if parties is None:
            everywhere = [rank for rank in scope.parties if all(rank in fact for fact in ins)]
            parties = Mask.from_ranks(everywhere)
        here = [{rank: fact.get(rank, NOTHING) for rank in parties} for fact in ins]
        return self._walk(op.regions[call.region], here, scope.among(parties))

    def _branch(
        self, op: Operation, branch: Branch, ins: Sequence[Fact], scope: _Scope
    ) -> list[Fact]:
        pred, *args = ins
        self._agree(branch.compared, pred, scope)
        inner = scope.under(_union(list(pred.values())), "in a branch")
        branches = [self._walk(op.regions[name], args, inner) for name, _ in branch.taken]
        return [_under(_merge(outs), inner.control) for outs in zip(*branches, strict=True)]

    def _loop(self, op: Operation, loop: Loop, ins: Sequence[Fact], scope: _Scope) -> list[Fact]:
        """Go round until nothing new flows; what is recorded is of the last turn."""
        size, mark = len(op.outputs), len(self.events)
        state, captures = list(ins[:size]), list(ins[size:])
        inner = scope.under(NOTHING, "per iteration")
        while True:
            (pred,) = self._walk(op.regions[loop.condition], state + captures, inner)
            self._agree(loop.compared, pred, inner)
            wider = inner.under(_union(list(pred.values())), "per iteration")
            after = self._walk(op.regions[loop.body], state + captures, wider)
            merged = [_merge(pair) for pair in zip(state, after, strict=True)]
            if merged == state and wider == inner:
                return [_under(fact, inner.control) for fact in state]
            del self.events[mark:]
            state, inner = merged, wider

    def _agree(self, compared: bool, pred: Fact, scope: _Scope) -> None:
        """Everyone acts on the predicate, so everyone learns it, compared or not."""
        for rank, taint in pred.items():
            for other in scope.parties:
                if other != rank:
                    self._record("predicate", rank, other, BOOL, taint, scope, sent=compared)


def _carried(
    message: Message, ins: Sequence[Fact], before: Sequence[tuple[Message, Taint]]
) -> Taint | None:
    """Return what flows into a message; ``None`` if it is sent only by those who hold more."""
    earlier = [(m, taint) for m, taint in before if m.stage < message.stage]
    if message.operand is None:
        held = [fact.get(message.sender, NOTHING) for fact in ins]
        return _union([*held, *(taint for _, taint in earlier)]).made_of()
    found = [taint for m, taint in earlier if m.operand in (message.operand, None)]
    fact = ins[message.operand]
    if message.sender in fact:
        found.append(fact[message.sender])
    if message.when and not found:
        return None
    return _union(found) if message.type is None else _union(found).made_of()


def _forwarded(
    sources: Sequence[int], ins: Sequence[Fact], arrived: Sequence[tuple[Message, Taint]], rank: int
) -> Taint | None:
    """Return the taint of a party's copy: what arrived, or its own, and what decides on it."""
    carriers = [m for m in arrived if m[0].operand in sources and m[0].type is None]
    found = [taint for _, taint in carriers]
    if all(message.when for message, _ in carriers):
        found += [ins[i][rank] for i in sources if rank in ins[i]]
    if not found:
        return None
    deciding = [fact[rank] for i, fact in enumerate(ins) if i not in sources and rank in fact]
    return _union([*found, *deciding])


def _own(rank: int) -> Taint:
    return Taint(frozenset([Mask.of(rank)]))


def _as_share(op: Operation, output: int, rank: int, taint: Taint) -> Taint:
    """Name a share. Of what is computed on shares, each party has one; else one party all."""
    if any(op_traits.base_of(value.type).form is Form.SHARE for value in op.inputs):
        return Taint(taint.sources, frozenset([((id(op), output), rank)]))
    if taint.pieces:
        return taint  # it was encrypted, and is the same share again
    return Taint(taint.sources, frozenset([((id(op), -1 - rank), output)]))


def _under(fact: Fact, control: Taint) -> Fact:
    return {rank: taint | control for rank, taint in fact.items()}
