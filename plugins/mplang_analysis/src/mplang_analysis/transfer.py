"""Transfer functions of the taint analysis: labels of messages, copies and results of an op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from mplang_analysis import op_traits
from mplang_analysis.labels import OUTSIDE, PUBLIC, Label, own, own_key, union
from mplang_core import BaseType, Form, Mask
from mplang_core.ext import Message, Operation

Fact: TypeAlias = Mapping[int, Label]
"""Per holder of a value the label of its copy."""

Arrived: TypeAlias = Sequence[tuple[Message, Label]]
"""The messages of an op that a party received, with their labels."""


_OUTSIDE = Label(keys=frozenset([OUTSIDE]))


def read_at(op: Operation, rank: int) -> Label:
    """Return the label of what an op reads of its party's data."""
    names = op_traits.reads(op)
    return union(own(rank, name) for name in names) if names else PUBLIC


def seen(
    op: Operation,
    ins: Sequence[Fact],
    arrived: Mapping[int, Arrived],
    parties: Mask,
    copied: frozenset[int] = frozenset(),
) -> Fact:
    """Return what parties have of an op, by operands and messages.

    Args:
        op: the op; what it encrypts has no part in who can decrypt it.
        ins: the operands.
        arrived: per party its messages.
        parties: the parties.
        copied: the positions of operands that the op only copies; they are left out.
    """
    inner = op_traits.contents(op)
    kept = [
        {rank: replace(label, keys=frozenset()) for rank, label in fact.items()}
        if i in inner
        else fact
        for i, fact in enumerate(ins)
        if i not in copied
    ]
    found = {rank: [fact[rank] for fact in kept if rank in fact] for rank in parties}
    # others may be told of messages, too, in the body of a pcall
    for rank, labels in found.items():
        labels += [label for m, label in arrived.get(rank, ()) if m.operand not in copied]
    return {rank: union(labels) for rank, labels in found.items()}


def from_outside(kind: BaseType, label: Label) -> Label:
    """Return the label of a value whose keys are not made by the program, or are those of a label.

    If it may have keys, and none is known, then anybody may have what opens the ciphertexts.
    """
    if op_traits.has_keys(kind):
        return label if label.keys else label | _OUTSIDE
    return replace(label, keys=frozenset()) if kind.form is Form.PLAIN and label.keys else label


def sent_by(sender: int, label: Label) -> Label:
    """Return the label of a public key that arrives: the sender may have sent one of its own."""
    return label | Label(keys=frozenset([own_key(sender)]))


def carried(op: Operation, message: Message, ins: Sequence[Fact], before: Arrived) -> Label | None:
    """Return what flows into a message; ``None`` if it is sent only by those who hold more."""
    earlier = [(m, label) for m, label in before if m.stage < message.stage]
    if message.operand is None:
        held = [fact.get(message.sender, PUBLIC) for fact in ins]
        own_data = read_at(op, message.sender)
        return union([own_data, *held, *(label for _, label in earlier)])
    found = [label for m, label in earlier if m.operand in (message.operand, None)]
    fact = ins[message.operand]
    if message.sender in fact:
        found.append(fact[message.sender])
    if message.when and not found:
        return None
    return union(found)


def forwarded(
    sources: Sequence[int], ins: Sequence[Fact], arrived: Arrived, rank: int
) -> Label | None:
    """Return the label of a party's copy: what arrived, or its own, and what decides on it."""
    carriers = [m for m in arrived if m[0].operand in sources and m[0].type is None]
    found = [label for _, label in carriers]
    if all(message.when for message, _ in carriers):
        found += [ins[i][rank] for i in sources if rank in ins[i]]
    if not found:
        return None
    deciding = [
        fact[rank].data() for i, fact in enumerate(ins) if i not in sources and rank in fact
    ]
    return union([*found, *deciding])


def merge(facts: Sequence[Fact]) -> Fact:
    """Join facts of which each party's copy may come."""
    ranks = sorted({rank for fact in facts for rank in fact})
    return {rank: union(fact[rank] for fact in facts if rank in fact) for rank in ranks}


def under(fact: Fact, control: Label) -> Fact:
    """Return a fact that also depends on what decided on it."""
    return {rank: label | control for rank, label in fact.items()}


def opened(op: Operation, outs: Sequence[Fact]) -> list[Fact]:
    """Return the labels of an op's results that have something plain in them, in any share."""
    return [
        {rank: label.opened(rank) for rank, label in fact.items()}
        if op_traits.base_of(value.type).form is Form.SHARE
        else fact
        for value, fact in zip(op.outputs, outs, strict=True)
    ]
