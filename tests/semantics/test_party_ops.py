"""Ops among parties that are declared outside of the core: as good as its own."""

from __future__ import annotations

import numpy as np
import pytest
from mplang_cli.text import parse

import mplang_core as mp
from mplang_core.ext import (
    Attr,
    Communicates,
    Effects,
    Forwards,
    Level,
    Message,
    OpDef,
    check_parties,
    check_sendable,
    context_of,
    operand_types,
)
from mplang_core.ir import from_bytes, op_defs, to_bytes
from mplang_core.simp.passes import run_passes


class Broadcast(Communicates, Forwards):
    """One party sends its value to some others."""

    def messages(self, op, world):
        root = op.attrs["root"]
        return [Message(root, rank, 0) for rank in op.attrs["to"] - mp.Mask.of(root)]

    def sources(self, op, output):
        return (0,)


def infer(op, world):
    (x,) = operand_types(op)
    check_parties(op.attrs["to"], world)
    if x.pmask is None or op.attrs["root"] not in x.pmask:
        raise ValueError(f"the root {op.attrs['root']} does not hold {x}")
    check_sendable(x)
    return [mp.MPType(x.base, op.attrs["to"])]


op_defs.add(
    "demo.broadcast_static",
    OpDef(
        "demo.broadcast_static",
        infer,
        Level.PARTY,
        {"root": Attr(int), "to": Attr(mp.Mask)},
        effects=Effects.NONE,
        interfaces=[Broadcast()],
    ),
    provider="tests",
    override=True,
)
op_defs.add(
    "demo.opaque",
    OpDef(
        "demo.opaque",
        lambda op, world: [mp.MPType(operand_types(op)[0].base, world)],
        Level.PARTY,
        {"root": Attr(int), "to": Attr(mp.Mask)},
    ),
    provider="tests",
    override=True,
)


RUN_AT = []  # the ranks that ran the op


@mp.kernel("demo.broadcast_static", "demo.opaque")
def send_or_receive(ctx, x, *, root, to):
    """The opaque op does not tell anybody."""
    me, comm = ctx.interpreter.rank, ctx.interpreter.communicator
    RUN_AT.append(me)
    if me != root:
        return comm.recv(root, ctx.key)
    for rank in to - mp.Mask.of(root):
        comm.send(rank, ctx.key, x)
    return x if root in to or ctx.op.opcode == "demo.opaque" else None


def broadcast(x, root, to, name="demo.broadcast_static"):
    return context_of(x).emit(name, [x], {"root": root, "to": mp.Mask.from_ranks(to)})[0]


def ranks():
    return mp.simp.pcall_static((0, 1, 2), lambda x: x * 10, mp.constant(np.arange(2)))


def everywhere():
    return broadcast(ranks(), 1, (0, 1, 2)), broadcast(ranks(), 1, (0, 2)), mp.constant(1)


@pytest.mark.needs("jax")
@pytest.mark.parametrize("parties", [3, 4])
def test_it_runs_in_both_modes(simulate, mode, parties):
    sim = simulate(parties)
    found, others, _ = mp.fetch(sim, mp.evaluate(sim, everywhere, mode=mode))
    for held, expected in ((found, (0, 1, 2)), (others, (0, 2))):
        assert [i for i, x in enumerate(held) if x is not None] == list(expected)
        for i in expected:
            np.testing.assert_array_equal(held[i], [0, 10])


@pytest.mark.needs("jax")
@pytest.mark.parametrize("name", ["demo.broadcast_static", "demo.opaque"])
def test_its_messages_have_keys_of_their_own_in_each_turn(simulate, mode, name):
    def program(turns):
        def turn(state):
            i, x, y = state
            moved = broadcast(y, 0, (0, 1), name)
            return i + 1, broadcast(x, 1, (0, 1), name), moved

        start = (0, mp.constant([1, 2]), mp.constant([3, 4]))
        return mp.while_loop(lambda state: state[0] < turns, turn, start)[1:]

    sim = simulate(2)
    for value, expected in zip(
        mp.fetch(sim, mp.evaluate(sim, program, 3, mode=mode)), ([1, 2], [3, 4]), strict=True
    ):
        np.testing.assert_array_equal(value, [expected] * 2)


def program_of(name):
    return parse(f"""
    program "p" on {{0, 1, 2}} (%0: f32[3]@{{1}}) {{
      %1 = {name}(%0) {{root = 1, to = {{0, 1, 2}}}} : f32[3]@{{0, 1, 2}} at "a.py:1"
      return %1
    }}""")


def test_it_comes_back_from_bytes():
    program = program_of("demo.broadcast_static")
    assert from_bytes(to_bytes(program)).digest == program.digest


@pytest.mark.once
@pytest.mark.parametrize(
    ("name", "to"), [("demo.broadcast_static", (0, 1)), ("demo.opaque", (0, 1, 2))]
)
def test_only_those_run_it_who_take_part_and_all_if_it_does_not_tell(simulate, mode, name, to):
    RUN_AT.clear()
    sim = simulate(3)
    mp.evaluate(sim, lambda: broadcast(mp.constant(7, parties=0), 0, to, name), mode=mode)
    assert sorted(RUN_AT) == list(to)


def test_disclosure_costs_and_drawing_know_what_it_tells():
    program = program_of("demo.broadcast_static")
    rows = [row for row in mp.analysis.disclosure(program).rows if row.what != "result"]
    assert [(row.what, row.sender, row.receiver, row.discloses) for row in rows] == [
        ("move", 1, 0, (1,)),
        ("move", 1, 2, (1,)),
    ]
    costs = mp.analysis.costs(program)
    assert [(link.sender, link.receiver, link.bytes) for link in costs.links] == [
        (1, 0, 12),
        (1, 2, 12),
    ]
    assert (costs.rounds, costs.unknown) == (1, ())
    assert "1->0, 1->2" in str(mp.analysis.graph(program))


class Relay(Communicates, Forwards):
    """Party 0 sends to party 1, which hands it on to party 2."""

    def messages(self, op, world):
        return [Message(1, 2, 0, stage=1), Message(0, 1, 0)]

    def sources(self, op, output):
        return (0,)


def test_what_is_handed_on_is_the_data_of_the_one_who_sent_it_first():
    op_defs.add(
        "demo.relay",
        OpDef(
            "demo.relay",
            lambda op, world: [mp.MPType(operand_types(op)[0].base, world)],
            Level.PARTY,
            interfaces=[Relay()],
        ),
        provider="tests",
        override=True,
    )
    program = parse("""
    program "p" on {0, 1, 2} (%0: f32[3]@{0}) {
      %1 = demo.relay(%0) : f32[3]@{0, 1, 2}
      return %1
    }""")
    rows = [row for row in mp.analysis.disclosure(program).rows if row.what == "move"]
    assert [(row.sender, row.receiver, row.discloses) for row in rows] == [
        (1, 2, (0,)),
        (0, 1, (0,)),
    ]
    assert mp.analysis.costs(program).rounds == 2


def test_a_message_says_what_it_carries():
    with pytest.raises(ValueError, match="neither an operand nor a type"):
        Message(0, 1, None)


def test_without_interfaces_all_are_informed_and_costs_are_unknown():
    program = program_of("demo.opaque")
    rows = [row for row in mp.analysis.disclosure(program).rows if row.what == "reveal"]
    assert {row.receiver for row in rows if 1 in row.discloses} == {0, 2}
    assert {row.receiver for row in rows if {0, 2} & set(row.discloses)} == {0, 1, 2}  # it may read
    costs = mp.analysis.costs(program)
    assert [(each.op, each.line) for each in costs.unknown] == [("demo.opaque", "a.py:1")]
    assert "unknown" in str(costs)
    assert "at least 0" in str(costs)


def test_dead_code_elimination_and_fusion_know_it():
    def program():
        broadcast(mp.constant(1), 0, (0, 1))
        return mp.constant(2)

    traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program).program
    after = run_passes(traced)
    assert [op.opcode for op in after.graph.ops] == ["simp.constant"]


@pytest.mark.needs("jax")
def test_what_is_not_allowed_is_told_at_its_line(simulate):
    def program():
        x = mp.simp.pcall_dynamic(lambda x: x, mp.constant(1))
        return broadcast(x, 0, (0, 1))

    told = r"test_party_ops.py:\d+: demo.broadcast_static: the root 0"
    with pytest.raises(mp.errors.TraceError, match=told):
        mp.evaluate(simulate(2), program)


DECLARED = mp.MPType(mp.TensorType("f32", (2,)), mp.Mask.of([0, 1]))
op_defs.add(
    "demo.declared",
    OpDef("demo.declared", lambda op, world: [DECLARED], Level.PARTY, {"gives": Attr(str)}),
    provider="tests",
    override=True,
)


@mp.kernel("demo.declared")
def declared(ctx, x, *, gives):
    given = {"right": np.float32([1, 2]), "wide": np.float64([1, 2]), "long": np.float32([1, 2, 3])}
    return given.get(gives)


@pytest.mark.parametrize(
    ("gives", "told"), [("wide", r"got f64\[2\]"), ("long", r"got f32\[3\]"), ("nothing", None)]
)
def test_the_result_of_an_op_among_parties_is_of_its_declared_type(simulate, mode, gives, told):
    def program(x, gives):
        return context_of(x).emit("demo.declared", [x], {"gives": gives})[0]

    sim = simulate(2)
    mp.evaluate(sim, lambda: program(mp.constant(1), "right"), mode=mode)
    if told is None:  # a party may hold none of it
        mp.evaluate(sim, lambda: program(mp.constant(1), gives), mode=mode)
        return
    line = r"demo\.declared at .*test_party_ops\.py:\d+.*broke its promise: expected f32\[2\], "
    with pytest.raises(mp.MPLangError, match=line + told):
        mp.evaluate(sim, lambda: program(mp.constant(1), gives), mode=mode)
