"""Graphs that no text can say: built in Python, held against the rules by the verifier."""

from __future__ import annotations

import numpy as np
import pytest

from mplang_core import Mask, MPType, TensorType, parse, verify
from mplang_core.errors import IRError, VerifyError
from mplang_core.ext import Forwards, PublicLiteral
from mplang_core.ir import Attr, Graph, Level, Location, OpDef, Operation, Program, Value, op_defs

I64 = TensorType("i64")
BOTH = Mask(0b11)


def held(mask: Mask | None = BOTH) -> Value:
    return Value(MPType(I64, mask))


def join(result: Value, *operands: Value, line: int | None = None) -> Operation:
    location = None if line is None else Location("/home/alice/secret/model.py", line)
    return Operation("simp.converge", operands, (result,), location=location)


def refusal(graph: Graph) -> str:
    with pytest.raises(VerifyError) as caught:
        verify(Program("p", BOTH, graph))
    assert isinstance(caught.value, IRError)
    assert isinstance(caught.value, TypeError)
    return str(caught.value)


def chain(length: int, wrong: int, line: int = 30) -> Graph:
    """Ops in a row; the one at ``wrong`` takes a value that is defined after it."""
    values = [held() for _ in range(length + 1)]
    late = held()
    ops = [join(values[i + 1], late if i == wrong else values[i]) for i in range(length)]
    ops[wrong].location = Location("/home/alice/secret/model.py", line)
    return Graph([values[0]], [*ops, join(late, values[-1])], [values[-1]])


# -- definitions and uses


def test_a_value_used_before_its_definition_is_refused():
    a, b, c = held(), held(), held()
    graph = Graph([a], [join(b, c, line=7), join(c, a)], [c])
    assert "simp.converge at model.py:7: operand 0 is used before its definition" in refusal(graph)


def test_a_value_that_nobody_defines_is_refused():
    assert "operand 0 is used before its definition" in refusal(Graph([], [join(held(), held())]))


def test_an_op_does_not_take_its_own_result():
    value = held()
    assert "operand 0 is used before its definition" in refusal(Graph([], [join(value, value)]))


def test_the_second_operand_is_named_as_the_second():
    a, b = held(Mask(1)), held(Mask(2))
    assert "operand 1 is used before its definition" in refusal(Graph([a], [join(held(), a, b)]))


def test_a_region_does_not_see_the_values_around_it():
    a, result = held(), held()
    body = Graph([held()], [], [])
    body.ops.append(join(held(), a))
    call = Operation("func.call", (a,), (result,), {"name": "f"}, {"body": body})
    assert "operand 0 is used before its definition" in refusal(Graph([a], [call], [result]))


def test_a_graph_that_returns_an_undefined_value_is_refused():
    a = held()
    message = refusal(Graph([a], [join(held(), a)], [held()]))
    assert "a graph returns a value that it does not define" in message
    assert "return %undefined" in message


def test_a_region_that_returns_an_outer_value_is_refused():
    a, inner = held(), held()
    call = Operation("func.call", (a,), (held(),), {"name": "f"}, {"body": Graph([inner], [], [a])})
    message = refusal(Graph([a], [call], []))
    assert "a graph returns a value that it does not define" in message


@pytest.mark.parametrize("where", ["inputs", "input and result", "two ops", "one op"])
def test_a_value_is_defined_once(where):
    a, b = held(), held()
    call = Operation("func.call", (a, a), (b, b), {"name": "f"}, {"body": identity(2)})
    graphs = {
        "inputs": Graph([a, a]),
        "input and result": Graph([a], [join(a, a)]),
        "two ops": Graph([a], [join(b, a), join(b, a)]),
        "one op": Graph([a], [call]),
    }
    assert "a value is defined twice" in refusal(graphs[where])


def test_the_same_op_twice_defines_its_value_twice():
    a = held()
    op = join(held(), a)
    assert "a value is defined twice" in refusal(Graph([a], [op, op]))


def test_a_second_definition_is_shown_with_its_op_and_its_line():
    a, b = held(), held()
    message = refusal(Graph([a], [join(b, a, line=3), join(b, a, line=4)], [b]))
    assert "simp.converge at model.py:4: a value is defined twice" in message
    assert message.splitlines()[-1].startswith("  > ")


def identity(inputs: int) -> Graph:
    values = [held() for _ in range(inputs)]
    return Graph(values, [], list(values))


# -- what the message shows


def test_the_message_shows_the_op_among_its_neighbours():
    message = refusal(chain(7, wrong=3))
    first, *shown = message.splitlines()
    assert first == "simp.converge at model.py:30: operand 0 is used before its definition"
    assert shown == [
        "    %2 = simp.converge(%1) : i64[]@{0, 1}",
        "    %3 = simp.converge(%2) : i64[]@{0, 1}",
        '  > %4 = simp.converge(%undefined) : i64[]@{0, 1} at "model.py:30"',
        "    %5 = simp.converge(%4) : i64[]@{0, 1}",
        "    %6 = simp.converge(%5) : i64[]@{0, 1}",
    ]


@pytest.mark.parametrize(("wrong", "before", "after"), [(0, 0, 2), (1, 1, 2), (6, 2, 1)])
def test_at_the_ends_of_a_graph_there_are_fewer_neighbours(wrong, before, after):
    lines = refusal(chain(7, wrong)).splitlines()[1:]
    (marked,) = (i for i, line in enumerate(lines) if line.startswith("  > "))
    assert (marked, len(lines) - marked - 1) == (before, after)


def test_the_message_has_the_name_of_the_file_but_not_its_path():
    message = refusal(chain(3, wrong=1))
    assert "model.py:30" in message
    assert "alice" not in message


def test_an_op_without_a_line_is_shown_without_one():
    assert refusal(Graph([], [join(held(), held())])).startswith("simp.converge: operand 0")


def test_inside_of_a_region_the_neighbours_are_those_of_the_region():
    program = parse(
        """program "p" on {0, 1} () {
          %0 = simp.pcall_static() {parties = {0, 1}} do () {
            %1 = toy.rank() : i64[] at "model.py:4"
            %2 = toy.scale(%1) {by = 2.5} : i64[] at "model.py:5"
            return %2
          } : i64[]@{0, 1} at "model.py:3"
          return %0
        }"""
    )
    message = refusal(program.graph).splitlines()
    assert message == [
        "toy.scale at model.py:5: attribute 'by': expected int, got float",
        '    %0 = toy.rank() : i64[] at "model.py:4"',
        '  > %1 = toy.scale(%0) {by = 2.5} : i64[] at "model.py:5"',
    ]


def test_neighbours_show_their_regions_in_short_and_constants_by_name():
    a = held()
    value = np.arange(1000)
    value.flags.writeable = False
    big = MPType(TensorType("i64", (1000,)), BOTH)
    constant = Operation("simp.constant", (), (Value(big),), {"value": value, "parties": BOTH})
    call = Operation("func.call", (a,), (held(),), {"name": "f"}, {"body": identity(1)})
    message = refusal(Graph([a], [constant, call, join(held(), held())]))
    assert "body { … }" in message
    assert "dense<i64[1000]>@" in message
    assert len(message) < 1000


# -- who is a party


def test_the_world_of_a_program_bounds_its_masks():
    value = held(Mask(0b111))
    with pytest.raises(VerifyError, match=r"i64\[\]@\{0, 1, 2\} names parties outside of \{0, 1\}"):
        verify(Program("p", BOTH, Graph([value], [], [value])))
    verify(Program("p", Mask(0b111), Graph([value], [], [value])))


def test_a_predicate_is_held_by_the_world_and_not_by_some_other_mask():
    flag = Value(MPType(TensorType("bool"), BOTH))
    regions = {"then": Graph(), "else": Graph()}
    cond = Operation("simp.uniform_cond", (flag,), (), {"verify_uniform": True}, regions)
    graph = Graph([flag], [cond])
    verify(Program("p", BOTH, graph))
    with pytest.raises(VerifyError, match=r"held by \{0, 1\}, but \{0, 1, 2\} take the branch"):
        verify(Program("p", Mask(0b111), graph))


def test_a_multi_party_type_and_a_base_type_are_never_taken_for_each_other():
    local = Value(I64)
    assert "has a MPType: i64[]" in refusal(Graph([local], [], [local]))
    body = Graph([held()], [], [])
    op = Operation("simp.pcall_static", (a := held(),), (), {"parties": BOTH}, {"do": body})
    assert "has a BaseType: i64[]@{0, 1}" in refusal(Graph([a], [op]))


# -- op definitions


@pytest.fixture
def picky():
    """An op whose definition refuses with the error that a test sets."""
    errors: list[Exception] = []

    def infer(op, world):
        if errors:
            raise errors[0]
        return []

    attrs = {"x": Attr((int, str), 3), "y": Attr(float, 1.0)}
    op_defs.add("irtest.picky", OpDef("irtest.picky", infer, Level.PARTY, attrs), provider="tests")
    yield errors
    op_defs.remove("irtest.picky")


@pytest.mark.parametrize("error", [TypeError("no such thing"), ValueError("no such thing")])
def test_why_an_op_definition_refuses_is_told(picky, error):
    op = Operation("irtest.picky", (), (), {"x": 3, "y": 1.0}, location=Location("m.py", 2))
    verify(Program("p", BOTH, Graph([], [op])))
    picky.append(error)
    assert refusal(Graph([], [op])).startswith("irtest.picky at m.py:2: no such thing\n  > ")


def test_attributes_are_completed_with_their_defaults_and_their_kind(picky):
    definition = op_defs.get("irtest.picky")
    assert definition.complete({}) == {"x": 3, "y": 1.0}
    full = definition.complete({"y": 2, "x": "a"})
    assert list(full.items()) == [("x", "a"), ("y", 2.0)]
    assert type(full["y"]) is float
    definition.check_attrs(full)


@pytest.mark.parametrize(
    ("attrs", "reason"),
    [
        ({"x": 1.5, "y": 1.0}, "attribute 'x': expected int or str, got float"),
        ({"x": True, "y": 1.0}, "attribute 'x': expected int or str, got bool"),
        ({"x": 1, "y": 1}, "attribute 'y': expected float, got int"),
        ({"x": 1}, "attributes missing: y"),
        ({"x": 1, "y": 1.0, "z": 0}, "unknown attribute 'z'; it has ['x', 'y']"),
    ],
)
def test_attributes_are_held_against_their_declaration(picky, attrs, reason):
    assert reason in refusal(Graph([], [Operation("irtest.picky", (), (), attrs)]))


# -- what interfaces say, against types


class Copies(Forwards):
    def __init__(self, *sources):
        self.found = sources

    def sources(self, op, output):
        return self.found


class Seven(PublicLiteral):
    def literal(self, op):
        return np.float32(7)


@pytest.mark.parametrize(
    ("interface", "reason"),
    [
        (Copies(0, 2), "output 0, i64[]@{0, 1}, is a copy of operand 2, which is not there"),
        (Copies(-1), "output 0, i64[]@{0, 1}, is a copy of operand -1, which is not there"),
        (Copies(1), "output 0, i64[]@{0, 1}, is a copy of operand 1, f32[2]; sources() names"),
        (Seven(), "its interface PublicLiteral has a literal not of type i64[]@{0, 1}"),
    ],
)
def test_an_interface_that_the_types_contradict_is_named(interface, reason):
    def infer(op, world):
        return [MPType(I64, BOTH)]

    told = OpDef("irtest.told", infer, Level.PARTY, interfaces=[interface])
    op_defs.add("irtest.told", told, provider="tests")
    try:
        inputs = [held(), Value(MPType(TensorType("f32", (2,)), BOTH))]
        op = Operation("irtest.told", tuple(inputs), (held(),))
        found = refusal(Graph(inputs, [op]))
    finally:
        op_defs.remove("irtest.told")
    assert found.startswith("irtest.told: its interface")
    assert reason in found
