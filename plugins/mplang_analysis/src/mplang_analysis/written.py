"""Literals that a program gives to some of its parties, or seals: everyone reads them there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mplang_analysis.op_traits import base_of, forms
from mplang_analysis.party_names import PartyNames, quoted_line
from mplang_analysis.phrases import amount, listed
from mplang_core import Form, Mask, Program
from mplang_core.ext import (
    Graph,
    PartyCall,
    PublicLiteral,
    Value,
    control_of,
    holders_of,
    interface_of,
)

MOST = 4
"""Literals that a sentence names; of others it has the number."""


class Written(NamedTuple):
    """A literal that looks like data of one party.

    Attributes:
        type: its type.
        holders: who gets it; nobody where it is sealed at once.
        line: the user's line; empty if unknown.
    """

    type: str
    holders: Mask
    line: str


def written(program: Program) -> list[Written]:
    """Return the literals that a program gives to some of its parties alone, or seals.

    Its author may have meant them as that party's data, but all parties receive the program. Zeros
    are what a model begins with, and left out.

    Args:
        program: the program.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.parse('''
        ... program "demo" on {0, 1} () {
        ...   %0 = simp.constant() {parties = {1}, value = dense<i64[2]>[4, 5]} : i64[2]@{1}
        ...   return %0
        ... }''')
        >>> written(program)
        [Written(type='i64[2]', holders=Mask.from_ranks([1]), line='')]
    """
    return list(_written(program.graph, program.mask))


def _written(graph: Graph, parties: Mask) -> Iterator[Written]:
    sealed = _sealed(graph)
    for op in graph.ops:
        literal = interface_of(op, PublicLiteral)
        if literal is not None:
            if not literal.literal(op).any():
                continue  # zeros to begin with are nobody's data
            for value in op.outputs:
                holders = holders_of(value.type, parties)
                if holders != parties or value in sealed:
                    to = Mask() if holders == parties else holders
                    yield Written(str(base_of(value.type)), to, str(op.location or ""))
        elif not isinstance(control_of(op), PartyCall):
            for region in op.regions.values():
                yield from _written(region, parties)


def _sealed(graph: Graph) -> set[Value]:
    """Return the values that parties seal, and use for nothing else."""
    sealed, used = set[Value](), set[Value](graph.outputs)
    for op in graph.ops:
        control = control_of(op)
        if isinstance(control, PartyCall):
            inner = op.regions[control.region]
            protects = _protected(inner)
            for value, inside in zip(op.inputs, inner.inputs, strict=True):
                (sealed if inside in protects else used).add(value)
        else:
            used.update(op.inputs)
    return sealed - used


def _protected(graph: Graph) -> set[Value]:
    """Return the values of which a party makes shares or ciphertexts alone."""
    protected, used = set[Value](), set[Value](graph.outputs)
    for op in graph.ops:
        made = forms(op.outputs)
        (protected if made and Form.PLAIN not in made else used).update(op.inputs)
    return protected - used


def sentence(literals: Sequence[Written], names: PartyNames) -> Iterator[str]:
    """Yield the sentence that tells of such literals, if there are any.

    Args:
        literals: the literals.
        names: the names of the parties.

    Example:
        >>> names = PartyNames((0, 1), ("shop", "bank"))
        >>> print(*sentence([Written("i64[2]", Mask.of(1), "demo.py:7")], names))
        Everyone reads in the program itself: 2 numbers for bank (demo.py:7).
    """
    texts = [_text(each, names) for each in literals[:MOST]]
    if len(literals) > MOST:
        texts.append(f"{len(literals) - MOST} more")
    if texts:
        yield f"Everyone reads in the program itself: {listed(texts)}."


def _text(each: Written, names: PartyNames) -> str:
    to = f"for {listed(map(names.of, each.holders))}" if each.holders else "to be sealed"
    return f"{amount(each.type)} {to}" + (f" ({quoted_line(each.line)})" if each.line else "")
