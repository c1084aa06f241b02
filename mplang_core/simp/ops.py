"""The ops of the ``simp`` dialect: what they take and what they give."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mplang_core.ir import AnyType, Attr, Effects, Graph, Level, OpDef, Operation, op_defs
from mplang_core.ir.opdef import OPTIONAL
from mplang_core.ir.place import PLACE, place_of
from mplang_core.mask import Mask
from mplang_core.types import BaseType, DType, Form, MPType, TensorType

__all__ = ["check_predicate", "check_sendable"]


def _mp(op: Operation) -> list[MPType]:
    types = [value.type for value in op.inputs]
    for i, found in enumerate(types):
        if not isinstance(found, MPType):
            raise TypeError(f"operand {i} has no mask: {found}")
    return types  # type: ignore[return-value]


def _locals(graph: Graph) -> list[BaseType]:
    return [value.type for value in graph.outputs if isinstance(value.type, BaseType)]


def _check_body(op: Operation) -> None:
    expected = [found.base for found in _mp(op)]
    taken = [value.type for value in op.regions["do"].inputs]
    if expected != taken:
        raise TypeError(f"the body takes ({_list(taken)}), the operands are ({_list(expected)})")


def _pcall_static(op: Operation, world: Mask) -> Sequence[AnyType]:
    parties: Mask = op.attrs["parties"]
    if place_of(op) is not None:  # in a projection, the others are outside of this world
        parties &= world
    _check_parties(parties, world)
    _check_body(op)
    for i, found in enumerate(_mp(op)):
        if found.pmask is not None and not parties <= found.pmask:
            raise ValueError(
                f"the parties {parties - found.pmask} run it, but do not hold operand {i}, "
                f"{found}; move it there first, or choose parties among {found.pmask}"
            )
    return [MPType(kind, parties) for kind in _locals(op.regions["do"])]


def _pcall_dynamic(op: Operation, world: Mask) -> Sequence[AnyType]:
    _check_body(op)
    return [MPType(kind, None) for kind in _locals(op.regions["do"])]


def _shuffle_static(op: Operation, world: Mask) -> Sequence[AnyType]:
    (src,) = _mp(op)
    routing = op.attrs["routing"]
    if not all(
        isinstance(route, tuple) and len(route) == 2 and all(type(r) is int for r in route)
        for route in routing
    ):
        raise TypeError("a routing is a list of [to, from] ranks")
    for rank in (rank for route in routing for rank in route):
        if rank < 0:
            raise ValueError(f"a rank is not negative, got {rank}")
        if rank >= world.bits.bit_length():
            raise ValueError(f"the parties {{{rank}}} are not among {world}")
    targets = [to for to, _ in routing]
    if len(set(targets)) != len(targets):
        raise ValueError(f"a party receives once, got the targets {targets}")
    out = Mask.from_ranks(targets)
    _check_parties(out, world)
    sources = Mask.from_ranks(frm for _, frm in routing)
    if not sources <= (world if src.pmask is None else src.pmask):
        raise ValueError(f"the sources are {sources}, but the value is {src}")
    check_sendable(src)
    return [MPType(src.base, out)]


def _shuffle_dynamic(op: Operation, world: Mask) -> Sequence[AnyType]:
    src, index = _mp(op)
    if not (isinstance(index.base, TensorType) and index.base.dtype.is_integer) or index.base.shape:
        raise TypeError(f"the index is an integer scalar, got {index}")
    check_sendable(src)
    if "askers" in op.attrs and place_of(op) is None:
        raise TypeError("attribute 'askers': only projections have it; elsewhere the index says it")
    return [MPType(src.base, index.pmask)]


def check_sendable(src: AnyType) -> None:
    """Check that a value may leave its party.

    Raises:
        TypeError: it is a key, or not held by parties.
    """
    if not isinstance(src, MPType):
        raise TypeError(f"the operand has no mask: {src}")
    if src.base.form.value == "key":
        raise TypeError(f"a key stays with its party: {src}")


def _converge(op: Operation, world: Mask) -> Sequence[AnyType]:
    types = _mp(op)
    if not types:
        raise TypeError("converge takes at least one operand")
    for i, found in enumerate(types):
        if found.base != types[0].base:
            raise TypeError(f"operand {i} is {found}, operand 0 is {types[0]}: one type expected")
    union, known = Mask(), True
    for found in types:
        if found.pmask is None:
            known = False
        elif found.pmask & union:
            raise ValueError(
                f"the masks overlap in {found.pmask & union}: {_list(types[:20])}; "
                "each party holds one of the values at most"
            )
        else:
            union |= found.pmask
    return [MPType(types[0].base, union if known else None)]


def check_predicate(pred: AnyType, world: Mask) -> None:
    """Check that a type is that of a predicate which all parties hold.

    Raises:
        TypeError or ValueError: it is not.
    """
    if isinstance(pred, MPType) and pred.base.form is not Form.PLAIN:
        raise TypeError(
            "the predicate is secret, so nobody knows which branch to take; if it may be known, "
            "mp.reveal it"
        )
    if not isinstance(pred, MPType) or pred.base != TensorType(DType.BOOL):
        raise TypeError(f"a predicate is a bool scalar, got {pred}")
    if pred.pmask is not None and pred.pmask != world:
        raise ValueError(
            f"the predicate is held by {pred.pmask}, but {world} take the branch together; "
            "reveal it to all of them first"
        )


def _uniform_cond(op: Operation, world: Mask) -> Sequence[AnyType]:
    if not op.inputs:
        raise TypeError("uniform_cond takes a predicate")
    check_predicate(op.inputs[0].type, world)
    args = [value.type for value in op.inputs[1:]]
    results = []
    for name in ("then", "else"):
        branch = op.regions[name]
        taken = [value.type for value in branch.inputs]
        if taken != args:
            raise TypeError(f"branch {name!r} takes ({_list(taken)}), got ({_list(args)})")
        results.append([value.type for value in branch.outputs])
    if results[0] != results[1]:
        raise TypeError(
            f"the branches differ: then gives ({_list(results[0])}), "
            f"else gives ({_list(results[1])})"
        )
    return results[0]


def _while_loop(op: Operation, world: Mask) -> Sequence[AnyType]:
    args = [value.type for value in op.inputs]
    for name in ("cond", "body"):
        taken = [value.type for value in op.regions[name].inputs]
        if taken != args:
            raise TypeError(f"region {name!r} takes ({_list(taken)}), got ({_list(args)})")
    preds = [value.type for value in op.regions["cond"].outputs]
    if len(preds) != 1:
        raise TypeError(f"a condition gives one value, got ({_list(preds)})")
    check_predicate(preds[0], world)
    state = [value.type for value in op.regions["body"].outputs]
    if state != args[: len(state)]:
        raise TypeError(
            f"the body changes the state: it is ({_list(args[: len(state)])}), "
            f"the body gives ({_list(state)})"
        )
    return state


def _constant(op: Operation, world: Mask) -> Sequence[AnyType]:
    _check_parties(op.attrs["parties"], world)
    return [MPType(TensorType.of(op.attrs["value"]), op.attrs["parties"])]


def _check_parties(parties: Mask, world: Mask) -> None:
    if not parties:
        raise ValueError("no party is named")
    if not parties <= world:
        raise ValueError(f"the parties {parties - world} are not among {world}")


def _list(types: Sequence[object]) -> str:
    return ", ".join(map(str, types))


_VERIFY = Attr(bool, True, "whether the parties compare their predicates")

for _op in (
    OpDef(
        "simp.constant",
        _constant,
        Level.PARTY,
        {"value": Attr(np.ndarray, doc="the tensor"), "parties": Attr(Mask, doc="who holds it")},
        doc="A literal, known to the parties that are named.",
        effects=Effects.NONE,
    ),
    OpDef(
        "simp.pcall_static",
        _pcall_static,
        Level.PARTY,
        {"parties": Attr(Mask, doc="who runs it"), "place": PLACE},
        {"do": Level.LOCAL},
        "Runs a body at the parties that are named; the others hold no result.",
        Effects.NONE,
    ),
    OpDef(
        "simp.pcall_dynamic",
        _pcall_dynamic,
        Level.PARTY,
        {"place": PLACE},
        {"do": Level.LOCAL},
        "Runs a body at every party that has all operands when it runs.",
        Effects.NONE,
    ),
    OpDef(
        "simp.shuffle_static",
        _shuffle_static,
        Level.PARTY,
        {"routing": Attr(tuple, doc="[to, from] ranks, one per receiver")},
        doc="Moves a value along a routing that is known beforehand.",
        effects=Effects.NONE,
    ),
    OpDef(
        "simp.shuffle_dynamic",
        _shuffle_dynamic,
        Level.PARTY,
        {
            "place": PLACE,
            "askers": Attr(Mask, OPTIONAL, "in a projection: who may hold the index, and so ask"),
        },
        doc="Moves a value: each party that has an index pulls from that rank.",
        effects=Effects.NONE,
    ),
    OpDef(
        "simp.converge",
        _converge,
        Level.PARTY,
        doc="Joins values of one type that are held by different parties.",
        effects=Effects.NONE,
    ),
    OpDef(
        "simp.uniform_cond",
        _uniform_cond,
        Level.PARTY,
        {"verify_uniform": _VERIFY, "place": PLACE},
        {"then": Level.PARTY, "else": Level.PARTY},
        "All parties take the same branch. Operands: predicate, then those of the branches.",
        Effects.NONE,
    ),
    OpDef(
        "simp.while_loop",
        _while_loop,
        Level.PARTY,
        {"verify_uniform": _VERIFY, "place": PLACE},
        {"cond": Level.PARTY, "body": Level.PARTY},
        "All parties loop together. Operands: the state, then what both regions capture.",
        Effects.NONE,
    ),
):
    op_defs.add(_op.name, _op, provider="mplang-core")
