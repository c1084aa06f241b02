"""Taint analysis: abstract interpretation of a program over labels instead of values."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from mplang_analysis import op_traits, transfer
from mplang_analysis.changes import NOBODY, changes_of
from mplang_analysis.event import Event
from mplang_analysis.guarding import Splits
from mplang_analysis.guards import Guards, has_guards
from mplang_analysis.holdings import Holding, Holdings, contains
from mplang_analysis.labels import (
    ANY,
    NEW,
    OUTSIDE,
    PUBLIC,
    Label,
    Piece,
    Source,
    own,
    own_key,
    union,
)
from mplang_analysis.recorder import BOOL, Recorder
from mplang_analysis.scope import Scope
from mplang_analysis.side_channels import NONE, side_channels_of
from mplang_analysis.source_names import input_name, stored_name
from mplang_analysis.storage import Stored, use_of
from mplang_analysis.transfer import Arrived, Fact
from mplang_analysis.vouched import words_of_message
from mplang_analysis.words import What, When
from mplang_core import BaseType, Form, Mask, MPType, Program
from mplang_core.ext import (
    MAX_DIRECT,
    Branch,
    Call,
    Forwards,
    Graph,
    Loop,
    Message,
    Operation,
    PartyCall,
    PublicLiteral,
    Value,
    control_of,
    holders_of,
    interface_of,
    kept_outputs,
    messages_of,
)


@dataclass
class Flow:
    """The flow of data through a verified program.

    Args:
        program: the program.
        labels: per input and holder the label of its copy. A plain value without one is its
            holder's own; a protected one may be anyone's.
        before: per party what it had before.
        uniform_inputs: whether a plain input of several parties that has no label is the same
            at all of them, and so known to all of them from the beginning.
        stored: the labels of what the parties have in storage, by name; of what is loaded and not
            there, nothing is known.

    Attributes:
        told: what others learn of.
        events: all of it, in the order of the program.
        outputs: per output and holder the label of its copy.
        stores: the labels of what it leaves in storage.
        held: the holdings of the parties.
        guards: what its guards use up, and why some do not count.
    """

    program: Program
    labels: Sequence[Fact] = ()
    before: Mapping[int, Holding] = field(default_factory=dict)
    uniform_inputs: bool = False
    stored: Stored = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.held = Holdings(self.before)
        self.guards = Guards(has_guards(self.program))
        self.stores: dict[str, dict[int, Label]] = {}
        self.told = Recorder(self.program, self.held)
        scope, graph = Scope(self.program.mask), self.program.graph
        self.outputs = self._walk(graph, list(map(self._input, range(len(graph.inputs)))), scope)
        self.held.settle()
        self.told.unlock()
        lines = {value: op.location for op in graph.ops for value in op.outputs}
        kept = kept_outputs(graph)
        for i, (value, fact) in enumerate(zip(graph.outputs, self.outputs, strict=True)):
            if i in kept:
                continue  # the host does not get it
            here = scope._replace(location=lines.get(value))
            for rank, label in sorted(fact.items()):
                kind = op_traits.base_of(value.type)
                self.told.record(What.RESULT, rank, "host", kind, label, here)
        self.events = self.told.all_events()

    # -- where data comes from

    def _input(self, index: int) -> Fact:
        """Return the labels of an input, and record what its holders have by it."""
        value = self.program.graph.inputs[index]
        given = self.labels[index] if self.labels else {}
        kind = op_traits.base_of(value.type)
        fact = {
            rank: transfer.from_outside(kind, dataclasses.replace(given[rank], program=""))
            if rank in given
            else self._careful_input(index, rank)
            for rank in holders_of(value.type, self.program.mask)
        }
        for rank, label in fact.items():
            self.held.begin(rank, kind, label)
        return fact

    def _careful_input(self, index: int, rank: int) -> Label:
        """Return the label of a party's copy of an input of which nothing is known."""
        kind, name = self.program.graph.inputs[index].type, input_name(index)
        assert isinstance(kind, MPType)
        plain = kind.base.form is Form.PLAIN
        if not plain or kind.pmask is None or not self.uniform_inputs:
            return self._careful(kind.base, rank, name)
        label = Label(frozenset(Source(each, kind.pmask, name) for each in kind.pmask))
        public = kind.pmask == self.program.mask and len(kind.pmask) > 1
        return transfer.from_outside(kind.base, PUBLIC if public else label)

    def _careful(self, kind: BaseType, rank: int, name: str) -> Label:
        """Return the label of a value of a party of which nothing is known."""
        match kind.form:
            case Form.SHARE | Form.CIPHERTEXT | Form.HANDLE:
                anyone = union(own(party, name) for party in self.program.mask)
                pieces, keys = frozenset([Piece(ANY, rank)]), frozenset([ANY])
                return Label(anyone.sources, pieces, keys=keys)
            case Form.KEY:
                return own(rank, name) | Label(keys=frozenset([ANY]))
        return transfer.from_outside(kind, own(rank, name))

    def _anyones(self, kind: BaseType, rank: int, name: str) -> Label:
        """Return the label of a value that a party has, and that may be made of anyone's data."""
        sources = (Source(each, Mask.of(each) | Mask.of(rank), name) for each in self.program.mask)
        if kind.form is not Form.PLAIN:
            return self._careful(kind, rank, name)
        return transfer.from_outside(kind, Label(frozenset(sources)))

    def _load(self, op: Operation, name: str, scope: Scope) -> list[Fact]:
        """Return the labels of what parties have in storage, as of inputs."""
        known = self.stored.get(name, {})
        facts: list[Fact] = []
        for value in op.outputs:
            kind, fact = op_traits.base_of(value.type), dict[int, Label]()
            for rank in scope.parties:
                label = known.get(rank)
                if label is None:
                    label = self._anyones(kind, rank, stored_name(name))
                found = transfer.from_outside(kind, dataclasses.replace(label, program=""))
                fact[rank] = found | scope.control
                self.held.begin(rank, kind, fact[rank])
            facts.append(fact)
        return facts

    def _store(self, name: str, seen: Fact, scope: Scope) -> None:
        """Record what parties store; a loader cannot tell its values apart."""
        stores = self.stores.setdefault(name, {})
        for rank, label in seen.items():
            found = label | scope.control
            stores[rank] = stores[rank] | found if rank in stores else found

    def _identity(self, path: str) -> str:
        """Return the identity of a secret or a key by its place, the same at all parties."""
        text = f"{self.program.digest}{path}"
        return NEW + blake2b(text.encode(), digest_size=16).hexdigest()

    # -- walking

    def _walk(self, graph: Graph, facts: Sequence[Fact], scope: Scope) -> list[Fact]:
        env: dict[Value, Fact] = dict(zip(graph.inputs, facts, strict=True))
        for index, op in enumerate(graph.ops):
            ins, here = [env[value] for value in op.inputs], scope.at(op, index)
            self.told.spend([label for fact in ins for label in fact.values()], here)
            outs = self._step(op, ins, here)
            for value, fact in zip(op.outputs, outs, strict=True):
                env[value] = fact
                self._hold(op_traits.base_of(value.type), fact)
        return [env[value] for value in graph.outputs]

    def _step(self, op: Operation, ins: Sequence[Fact], scope: Scope) -> list[Fact]:
        control = control_of(op)
        match control:
            case Call():
                return self._walk(op.regions[control.region], ins, scope.within(control.region))
            case PartyCall():
                return self._party_call(op, control, ins, scope)
            case Branch():
                return self._branch(op, control, ins, scope)
            case Loop():
                return self._loop(op, control, ins, scope)
        beside = side_channels_of(op)
        if beside is NONE:
            return self._results(op, ins, scope)
        self.told.note_side_channels(op, beside, ins, scope)
        outs = self._results(op, ins, scope)
        if not beside.multiplies:
            return outs
        return [{rank: each.multiply() for rank, each in fact.items()} for fact in outs]

    def _results(self, op: Operation, ins: Sequence[Fact], scope: Scope) -> list[Fact]:
        """Return the labels of the results of an op that is not control flow."""
        messages = messages_of(op, self.program.mask)
        if messages is None:
            return self._apply(op, ins, scope)
        if messages or interface_of(op, PublicLiteral) is None:
            return self._exchange(op, messages, ins, scope)
        return [
            dict.fromkeys(holders_of(value.type, scope.parties), PUBLIC) for value in op.outputs
        ]

    def _hold(self, kind: BaseType, fact: Fact) -> None:
        if kind.form is not Form.PLAIN:
            for rank, label in fact.items():
                self.held.add(rank, kind, label)

    # -- ops that stay at a party, or that plugins bring

    def _apply(self, op: Operation, ins: Sequence[Fact], scope: Scope) -> list[Fact]:
        """Taint each output with all operands at the same party; if they mix, at all parties."""
        action, name = use_of(op)
        if action == "load":
            return self._load(op, name, scope)
        seen = self._had(op, ins, {}, scope)
        if action == "store":
            self._store(name, seen, scope)
        together = len(scope.parties) > 1 and op_traits.acts_together(op)
        published = False
        if together:
            self._inform_all(op, scope, seen)
            published = op_traits.is_declared(op) and self.told.publish(op, ins, scope)
        if together or op.regions:
            everything = self._regions(op, self._brought(seen, scope), scope)
            if op_traits.is_declared(op):  # each party's shares stay its own
                everything = everything.plain()
            seen = {rank: label | everything for rank, label in seen.items()}
        self.told.note_failures(op, seen, scope)
        outs = self._outputs(op, seen, scope, together)
        if published:
            outs = transfer.opened(op, outs)
        if together or op.regions:
            return self.guards.on_shares(op, ins, outs, scope)
        return self.guards.refine(op, ins, outs, scope)

    def _brought(self, seen: Fact, scope: Scope) -> Label:
        """Return the label of what parties make together; each may bring a key of its own."""
        found = union(seen.values())
        if not found.keys:
            return found
        for rank in scope.parties:
            self.held.add_key(rank, own_key(rank))
            found = transfer.sent_by(rank, found)
        return found

    def _had(
        self, op: Operation, ins: Sequence[Fact], arrived: Mapping[int, Arrived], scope: Scope
    ) -> Fact:
        """Return what parties have of an op, with what it reads of their data."""
        seen = transfer.seen(op, ins, arrived, scope.parties)
        return {rank: label | transfer.read_at(op, rank) for rank, label in seen.items()}

    def _outputs(self, op: Operation, seen: Fact, scope: Scope, together: bool) -> list[Fact]:
        takes = op_traits.forms(op.inputs)
        outs = [self._output(op, i, takes, seen, scope, together) for i in range(len(op.outputs))]
        changes, line = changes_of(op, together=together), scope.location
        for i, value in enumerate(op.outputs):
            kind = op_traits.base_of(value.type)
            kept = kind.form in (Form.SHARE, Form.HANDLE) and op_traits.is_declared(op)
            told = (together and not kept) or op_traits.opens(takes, kind)
            changed = changes is not NOBODY and kind.form is Form.PLAIN
            if changed:
                outs[i] = {rank: label | changes.label for rank, label in outs[i].items()}
            for rank, label in outs[i].items() if told or changed else ():
                if told:
                    self.told.record(What.REVEAL, None, rank, kind, label, scope)
                else:
                    event = Event(What.CHANGE, None, rank, kind, label | scope.control, line)
                    self.told.note_changes(event, scope)
        return outs

    def _inform_all(self, op: Operation, scope: Scope, seen: Fact) -> None:
        """Record that an op among parties which does not tell its messages may send all it has."""
        everything = union(seen.values())
        for value in op.inputs:
            if isinstance(value.type, MPType):
                for rank in scope.parties - holders_of(value.type, scope.parties):
                    self.told.record(What.REVEAL, None, rank, value.type.base, everything, scope)
                    self.held.add(rank, value.type.base, everything, received=True)

    def _regions(self, op: Operation, label: Label, scope: Scope) -> Label:
        """Run the regions of an op of which nothing is known: anything may go anywhere."""
        inner, mark = scope.under(label, When.ANY_NUMBER), len(self.told.events)
        if op.regions:
            self.told.note_duration(label, scope)
        found = [label]
        for name, region in op.regions.items():
            fact = dict.fromkeys(scope.parties, label)
            for out in self._walk(region, [fact] * len(region.inputs), inner.within(name)):
                found += out.values()
        wider = union(found)
        if wider == label:
            return label
        del self.told.events[mark:]
        return self._regions(op, wider, scope)

    def _output(
        self, op: Operation, i: int, takes: Sequence[Form], seen: Fact, scope: Scope, together: bool
    ) -> Fact:
        kind = op.outputs[i].type
        among = isinstance(kind, MPType)
        holders = holders_of(kind, scope.parties) if among else scope.parties
        out = {}
        for rank in (rank for rank in seen if rank in holders):
            path = scope.path if together or among else f"{scope.path}@{rank}"
            label, form = seen[rank].unlike(), op_traits.base_of(kind).form
            if interface_of(op, Splits) is None:  # what was made for a guard is changed
                label = label.settled()
            keys = self._keys(op, takes, op_traits.base_of(kind), label, path)
            if keys != label.keys:
                label = dataclasses.replace(label, keys=keys)
            if Form.SHARE in takes:
                label = label.computed()
            if form is Form.PLAIN:
                label = label.plain()
            elif form is Form.SHARE and self._splits(op, label, together):
                label |= Label(pieces=self._split(path, rank if together or among else i))
            out[rank] = label
        return out

    def _splits(self, op: Operation, label: Label, together: bool) -> bool:
        """Return whether an output is a share of a new secret, not only of those of operands."""
        return not (label.pieces or label.derived) or (len(op.outputs) > 1 and not together)

    def _split(self, path: str, index: int) -> frozenset[Piece]:
        """Return a share of the secret that is split at a position of the program."""
        return frozenset([Piece(self._identity(path), index)])

    def _keys(
        self, op: Operation, takes: Sequence[Form], kind: BaseType, label: Label, path: str
    ) -> frozenset[str]:
        """Return the keys of an output: those of the operands, and new ones of a key's maker."""
        keys, reads = label.keys, bool(op_traits.reads(op))
        if Form.KEY in op_traits.forms(op.outputs):
            if op_traits.makes_fresh(op):
                return keys | {self._identity(path)}
            keys |= {ANY} if reads or not keys else set()
        if kind.form is Form.CIPHERTEXT:
            return keys or frozenset([ANY])
        if Form.CIPHERTEXT in takes and kind.form is not Form.KEY:
            keys = frozenset()  # decrypted
        if kind.form is Form.PLAIN and reads:
            keys |= {OUTSIDE}
        return transfer.from_outside(kind, Label(keys=keys)).keys

    # -- ops that tell which messages they send

    def _exchange(
        self, op: Operation, messages: Sequence[Message], ins: Sequence[Fact], scope: Scope
    ) -> list[Fact]:
        arrived: dict[int, list[tuple[Message, Label]]] = defaultdict(list)
        carried: dict[int, Label] = {}
        matched = self.guards.in_messages(op, ins, scope.location)
        for i, each in sorted(enumerate(messages), key=lambda item: item[1].stage):
            flown = transfer.carried(op, each, ins, arrived[each.sender])
            if flown is not None:  # a party that does not hold it is asked in vain
                if each.operand is not None and each.operand in matched:
                    flown = flown.guarded(matched[each.operand])
                carried[i] = self._sent(op, flown, each, scope)
                arrived[each.receiver].append((each, carried[i]))
        for i, content in sorted(carried.items()):
            each = messages[i]
            kind = each.type or op_traits.base_of(op.inputs[each.operand or 0].type)
            what, often = words_of_message(op, each)
            who = each.sender, each.receiver
            self.told.record(what, *who, kind, content, scope, *often, sent=True)
            self.held.add(each.receiver, kind, content, received=True)
        untold = self._untold(op, ins, arrived, scope)
        forwards = interface_of(op, Forwards)
        if forwards is None:  # each output depends on all that its party has of it
            seen = {**self._had(op, ins, arrived, scope), **untold}
            self.told.note_failures(op, seen, scope)
            outs = self._outputs(op, seen, scope, together=False)
            return self.guards.of_matched(op, ins, outs, matched)
        sources = [forwards.sources(op, i) for i in range(len(op.outputs))]
        copied = frozenset(i for found in sources for i in found)
        if op_traits.may_fail(op):
            self.told.note_failures(
                op, transfer.seen(op, ins, arrived, scope.parties, copied), scope
            )
        return [
            {
                rank: label
                for rank in holders_of(value.type, scope.parties)
                if (label := transfer.forwarded(found, ins, arrived[rank], rank)) is not None
            }
            | {r: label for r, label in untold.items() if r in op_traits.certain(value.type)}
            for value, found in zip(op.outputs, sources, strict=True)
        ]

    def _untold(
        self, op: Operation, ins: Sequence[Fact], arrived: Mapping[int, Arrived], scope: Scope
    ) -> Fact:
        """Return what parties get of an op whose messages it does not tell, though its types do.

        A party that holds an output, but no operand, and gets no message, has it of the others: it
        is taken to get all that they have.
        """
        get = {
            rank
            for value in op.outputs
            for rank in op_traits.certain(value.type)
            if not arrived.get(rank)
            and not any(rank in fact for fact in ins)
            and rank in scope.parties
        }
        if not get or not op.inputs or op_traits.makes_fresh(op):
            return {}
        for value, fact in zip(op.inputs, ins, strict=True):
            kind, label = op_traits.base_of(value.type), union(fact.values())
            for rank in sorted(get):
                self.told.record(What.REVEAL, None, rank, kind, label, scope)
                self.held.add(rank, kind, label, received=True)
        return dict.fromkeys(sorted(get), union(label for fact in ins for label in fact.values()))

    def _sent(self, op: Operation, label: Label, message: Message, scope: Scope) -> Label:
        """Return the label of a message: of the operand itself, or of what is made of it."""
        kind = message.type or op_traits.base_of(op.inputs[message.operand or 0].type)
        if (kind.form is Form.PLAIN and label.keys) or contains(kind, Form.KEY):
            self.held.add_key(message.sender, own_key(message.sender))
            label = transfer.sent_by(message.sender, label)
        if kind.form is Form.CIPHERTEXT:
            label = self.held.in_place_of(message.sender, label)
        if message.type is None:
            return label
        if message.type.form is Form.SHARE and not (label.pieces or label.derived):
            return label | Label(pieces=self._split(scope.path, message.receiver))
        return label if message.type.form is not Form.PLAIN else label.plain()

    # -- ops that tell how they run their regions

    def _party_call(
        self, op: Operation, call: PartyCall, ins: Sequence[Fact], scope: Scope
    ) -> list[Fact]:
        parties = call.parties
        if parties is None:
            everywhere = [rank for rank in scope.parties if all(rank in fact for fact in ins)]
            parties = Mask.from_ranks(everywhere)
        here = [{rank: fact.get(rank, PUBLIC) for rank in parties} for fact in ins]
        inner = scope.among(parties).within(call.region)
        return self._walk(op.regions[call.region], here, inner)

    def _branch(
        self, op: Operation, branch: Branch, ins: Sequence[Fact], scope: Scope
    ) -> list[Fact]:
        pred, *args = ins
        self._agree(op, branch.compared, pred, scope)
        inner = scope.under(union(pred.values()), When.IN_A_BRANCH)
        branches = [
            self._walk(op.regions[name], args, inner.within(name)) for name, _ in branch.taken
        ]
        merged = map(transfer.merge, zip(*branches, strict=True))
        return [transfer.under(fact, inner.control) for fact in merged]

    def _loop(self, op: Operation, loop: Loop, ins: Sequence[Fact], scope: Scope) -> list[Fact]:
        """Go round until nothing new flows; what is recorded is of the last turn."""
        size, mark = len(op.outputs), len(self.told.events)
        state, captures = list(ins[:size]), list(ins[size:])
        inner = scope.under(PUBLIC, When.PER_ITERATION)
        condition, body = op.regions[loop.condition], op.regions[loop.body]
        while True:
            held = self.held.size
            (pred,) = self._walk(condition, state + captures, inner.within(loop.condition))
            self._agree(op, loop.compared, pred, inner)
            wider = inner.under(union(pred.values()), When.PER_ITERATION)
            after = self._walk(body, state + captures, wider.within(loop.body))
            merged = [transfer.merge(pair) for pair in zip(state, after, strict=True)]
            if merged == state and wider == inner and held == self.held.size:
                return [transfer.under(fact, inner.control) for fact in state]
            del self.told.events[mark:]
            state, inner = merged, wider

    def _agree(self, op: Operation, compared: bool, pred: Fact, scope: Scope) -> None:
        """Everyone acts on the predicate, so everyone learns it, compared or not.

        The host, which is told of no predicate, learns by the duration.
        """
        self.told.note_duration(union(pred.values()), scope)
        direct = len(scope.parties) <= MAX_DIRECT  # else by way of party 0
        for rank, label in pred.items():
            for other in scope.parties:
                if other != rank:
                    sent = compared and (direct or 0 in (rank, other))
                    self.told.record(What.PREDICATE, rank, other, BOOL, label, scope, sent=sent)
        if compared:
            self.told.note_failures(op, dict.fromkeys(scope.parties, union(pred.values())), scope)
