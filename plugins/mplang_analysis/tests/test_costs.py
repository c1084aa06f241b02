"""What programs cost: ops, bytes per link, rounds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest
import toy
from mplang_analysis.type_size import bytes_of

import mplang_core as mp
from mplang_core import analysis
from mplang_core.ext import ConfigError, Location

SCALAR = mp.TensorType("i64")


def trace(fn, *types, parties: int = 2):
    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(parties)), fn, *types)


def at(base, *ranks: int) -> mp.MPType:
    return mp.MPType(base, mp.Mask.of(ranks))


def links(found: analysis.Costs):
    return [(x.sender, x.receiver, x.messages, x.bytes, x.per_iteration) for x in found.links]


def test_ping_pong_waits_and_messages_side_by_side_do_not():
    def chain(x):
        for turn in range(3):
            x = mp.pshfl_s(x, (turn + 1) % 2, [turn % 2])
        return x

    def beside(x):
        return [mp.pshfl_s(x, 1, [0]) for _ in range(3)]

    kind = at(mp.TensorType("f64", (10,)), 0)
    assert analysis.costs(trace(chain, kind)).rounds == 3
    assert links(analysis.costs(trace(chain, kind))) == [
        (0, 1, 2, 160, False),
        (1, 0, 1, 80, False),
    ]
    assert analysis.costs(trace(beside, kind)).rounds == 1


def test_only_what_depends_waits():
    def program(x, y):
        there = mp.pshfl_s(x, 1, [0])
        mp.pshfl_s(y, 0, [1])  # does not wait for it
        return mp.pshfl_s(mp.invoke(toy.add, there, y), 0, [1])

    assert analysis.costs(trace(program, at(SCALAR, 0), at(SCALAR, 1))).rounds == 2


def test_loops_are_counted_per_iteration():
    def program(x):
        def turn(state):
            i, y = state
            there = mp.pshfl_s(y, 1, [0])
            return mp.invoke(toy.add, i, mp.constant(1)), mp.pshfl_s(there, 0, [1])

        end = mp.while_loop(
            lambda state: mp.invoke(toy.less, state[0], mp.constant(3)), turn, (mp.constant(0), x)
        )
        return mp.pshfl_s(end[1], 1, [0])

    found = analysis.costs(trace(program, at(SCALAR, 0)))
    assert links(found) == [(0, 1, 1, 8, False), (0, 1, 2, 9, True), (1, 0, 2, 9, True)]
    assert found.rounds == 2  # to agree not to go round, and the last move
    (loop,) = found.loops
    assert loop.rounds == 3  # to agree, there, and back
    assert loop.line.startswith("test_costs.py:")
    counts = {count.op: (count.family, count.once, count.per_iteration) for count in found.ops}
    assert counts["toy.add"] == ("toy", 0, 1)
    assert counts["toy.less"] == ("toy", 0, 1)
    assert counts["simp.shuffle_static"] == ("simp", 1, 2)
    assert counts["simp.while_loop"] == ("simp", 1, 0)


def test_a_loop_in_a_loop_stands_apart():
    def program():
        def below(state):
            return mp.invoke(toy.less, state, mp.constant(3))

        def turn(i):
            mp.while_loop(below, lambda j: mp.invoke(toy.add, j, mp.constant(1)), mp.constant(0))
            return mp.invoke(toy.add, i, mp.constant(1))

        return mp.while_loop(below, turn, mp.constant(0))

    assert [loop.rounds for loop in analysis.costs(trace(program)).loops] == [2, 1]


def test_conditions_and_dynamic_shuffles_take_rounds():
    def program(x, pred):
        return mp.uniform_cond(
            pred, lambda: mp.pshfl(x, mp.constant(0, parties=1)), lambda: mp.constant(0, parties=1)
        )

    found = analysis.costs(trace(program, at(SCALAR, 0), at(mp.TensorType("bool"), 0, 1)))
    assert found.rounds == 3
    assert found.loops == ()
    assert links(found) == [(0, 1, 2, 9, False), (1, 0, 2, 2, False)]


def test_calls_are_part_of_the_chain():
    @mp.builtin_function
    def send(x):
        return mp.pshfl_s(x, 1, [0])

    assert analysis.costs(trace(lambda x: mp.pshfl_s(send(x), 0, [1]), at(SCALAR, 0))).rounds == 2


@pytest.mark.needs("spu", "jax")
def test_a_joint_computation_waits_for_all():
    def program(a):
        late = mp.seal(mp.pshfl_s(a, 1, [0]))
        return mp.reveal(mp.device("SP0")(lambda x: x + 1)(late), to="P0")

    found = analysis.costs(trace(program, at(SCALAR, 0)))
    assert found.rounds == 3  # over, shared out, revealed
    assert {count.family for count in found.ops} == {"simp", "spu"}


@mp.simple_op("costs.together", execution_model="multi_party", reads=(), total=True)
def together(x: mp.TensorType) -> mp.TensorType:
    """Stand for an op whose kernels send messages by themselves."""
    return x


@mp.simple_op("costs.alone", reads=(), total=True)
def alone(x: mp.TensorType) -> mp.TensorType:
    """Stand for an op that one party runs."""
    return x


def test_what_is_not_counted_is_a_row_with_line_and_parties():
    def program(x):
        for _ in range(3):
            x = mp.simp.pcall_static((0, 1), together, x)
        x = mp.simp.pcall_static((0, 1), alone, x)
        one = mp.simp.pcall_static((2,), together, mp.constant(1))
        return x, one

    found = analysis.costs(trace(program, at(SCALAR, 0, 1), parties=3))
    line = f"test_costs.py:{program.__code__.co_firstlineno + 2}"
    told = [(row.op, row.line, row.parties, row.count) for row in found.unknown]
    assert told == [("costs.together", line, (0, 1), 3)]
    shown = " ".join(str(found).split())
    assert f"among 0, 1 unknown unknown once: costs.together at {line}, 3 times" in shown
    assert "at least 0" in shown
    assert "those of costs.together are not counted" in shown
    assert "those of costs.together are not counted" in found._repr_html_()
    assert found.to_dict()["unknown"][0]["parties"] == (0, 1)


def test_what_is_not_counted_in_a_loop_is_told_per_iteration():
    def program(x):
        def turn(state):
            i, y = state
            joined = mp.simp.pcall_static((0, 1), together, y)
            return mp.invoke(toy.add, i, mp.constant(1)), joined

        below = lambda state: mp.invoke(toy.less, state[0], mp.constant(3))  # noqa: E731
        return mp.while_loop(below, turn, (mp.constant(0), x))

    (row,) = analysis.costs(trace(program, at(SCALAR, 0, 1))).unknown
    assert (row.op, row.count, row.per_iteration) == ("costs.together", 1, True)


def test_who_runs_it_is_known_only_at_run_time():
    def program(x):
        return mp.simp.pcall_dynamic(together, x)

    (row,) = analysis.costs(trace(program, at(SCALAR, 0, 1))).unknown
    assert row.parties == (0, 1)


def test_where_all_is_counted_nothing_is_said():
    found = analysis.costs(trace(lambda x: mp.pshfl_s(x, 1, [0]), at(SCALAR, 0)))
    assert found.unknown == ()
    assert "unknown" not in str(found)
    assert "lower bounds" not in str(found)


@pytest.mark.needs("spu", "jax")
def test_the_protocol_of_an_spu_is_not_counted_and_sharing_out_is():
    def program(a):
        return mp.reveal(mp.device("SP0")(lambda x: x + 1)(mp.seal(a)), to="P0")

    found = analysis.costs(trace(program, at(SCALAR, 0)))
    assert [(row.op, row.parties) for row in found.unknown] == [("spu.run_jax", (0, 1))]
    assert links(found) == [(0, 1, 1, 16, False), (1, 0, 1, 16, False)]


def test_sizes_that_types_do_not_tell():
    table = mp.TableType((("id", "int64"),))
    found = analysis.costs(trace(lambda x: mp.pshfl_s(x, 1, [0]), at(table, 0)))
    assert [(link.bytes, link.unknown) for link in found.links] == [(0, 1)]
    assert "0 + 1 of unknown size" in str(found)


def test_a_type_is_asked_for_its_size():
    @dataclass(frozen=True)
    class Sized(mp.BaseType):
        name: ClassVar[str] = "analysis.sized"
        nbytes: ClassVar[int] = 42

        def params(self):
            return ()

        @classmethod
        def from_params(cls, params):
            return cls()

    assert bytes_of(Sized()) == 42
    assert bytes_of(mp.TensorType("bf16", (2,))) == 4
    assert bytes_of(mp.TensorType("c128", (2,))) == 32


def test_it_is_plain_data_and_survives_json():
    found = analysis.costs(trace(lambda x: mp.pshfl_s(x, 1, [0]), at(SCALAR, 0)))
    assert json.loads(found.to_json()) == found.to_dict()
    assert str(found).splitlines()[:3] == [
        'Ops of "<lambda>"',
        "  family  op                   once  per iteration",
        "  simp    simp.shuffle_static  1     0",
    ]
    assert "&lt;lambda&gt;" in found.to_html()


def costs_of_counted(op, network):
    line = Location("inner.py", 7)
    steps = (
        analysis.StepCost("multiply", line, 3, messages=6, bytes=600, rounds=3, in_turn=300),
        analysis.StepCost("compare", None, messages=4, bytes=100, seconds=0.5, spread=0.5),
        analysis.StepCost("sort", None, known=False),
        analysis.StepCost("turn", None, turns_known=False, messages=2, bytes=20),
    )
    keys = analysis.StepCost("keys", messages=2, bytes=50, seconds=network.rtt)
    return analysis.OpCosts(steps, (keys,), "softspoken")


@mp.simple_op(
    "costs.counted",
    execution_model="multi_party",
    reads=(),
    total=True,
    interfaces=[analysis.CostRule(costs_of_counted)],
)
def counted(x: mp.TensorType) -> mp.TensorType:
    """Stand for an op whose protocol tells what it takes."""
    return x


def test_protocols_are_asked_if_a_network_is_given():
    def program(x):
        x = mp.simp.pcall_static((0, 1), counted, x)
        return mp.simp.pcall_static((0, 1), counted, x)

    kind = at(SCALAR, 0, 1)
    line = f"test_costs.py:{program.__code__.co_firstlineno + 1}"
    assert len(analysis.costs(trace(program, kind)).unknown) == 2
    found = analysis.costs(trace(program, kind), link={"rtt": 2, "rate": 8})
    assert found.unknown == ()
    times, first, turn, *_, keys = found.lines
    assert (times.line, times.steps, times.messages) == ("inner.py:7", ("multiply 6×",), 12)
    assert times.network_seconds == pytest.approx(6 * 0.001 + 600 / 1e6)
    assert (first.line, first.known, first.spread) == (line, False, 0.5)
    assert (turn.per_iteration, turn.messages) == (True, 2)
    assert (keys.set_up, keys.seconds) == (True, 2)  # once, whoever needs them
    shown = " ".join(str(found).split())
    assert "at least 4 ± 50% at least 100 ± 50% 500 ms" in shown
    assert "once a session" in shown
    assert "Oblivious transfers by softspoken." in shown
    assert found.seconds == pytest.approx(2 + 2 * 0.5 + times.network_seconds)
    assert json.loads(found.to_json())["network"] == {"rtt": 2, "rate": 8}


def test_networks_at_a_terminal():
    assert analysis.network_named("wan") == analysis.network_of("wan")
    assert analysis.network_named("5,50") == analysis.Network(rtt=5, rate=50)
    for wrong in ("moon", "5,", "5,fast", "5,0"):
        with pytest.raises(ConfigError):
            analysis.network_named(wrong)
