"""How projections run: together, with what fails, with engines; and what a worker refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mplang_cli.text import parse
from mplang_passes import eliminate_dead_code
from mplang_simulator import Simulator
from mplang_testing import dialect
from passes.party_parts import PartHost, neighbour, survives, trace

import mplang_core as mp
from mplang_core.errors import PartyError, VerifyError
from mplang_core.ir import Attr, Level, OpDef, op_defs, print_program
from mplang_core.simp.passes import run_passes
from mplang_core.simp.projection import held, project


@pytest.fixture(params=[(), (1,)], ids=["all parts", "one whole"])
def parts(request):
    with PartHost(mp.ClusterSpec.simple(3), whole=request.param, timeout=5.0) as made:
        yield made


def results(on, fn, *args):
    return mp.fetch(on, mp.evaluate(on, fn, *args, mode="launch"))


def ranks(parties=(0, 1, 2)):
    return mp.simp.pcall_static(parties, dialect.rank)


# -- running


def test_what_parties_run_together_meets_under_one_key_in_each_turn_of_a_loop(parts):
    """The op among parties has another position at each of them, and so at first two keys."""

    def program():
        only_here = mp.simp.pcall_static([0], dialect.add, mp.constant(1, parties=0), ranks([0]))

        def turn(state):
            i, x = state
            mp.simp.pcall_static([2], dialect.add, x, x)
            moved = mp.simp.pcall_static([0, 1, 2], neighbour, x)
            return mp.invoke(dialect.add, i, mp.constant(1)), moved

        below = lambda state: mp.invoke(dialect.less, state[0], mp.constant(2))  # noqa: E731
        return mp.while_loop(below, turn, (mp.constant(0), ranks()))[1], only_here

    around, here = results(parts, program)
    assert around == [2, 0, 1]
    assert here == [1, None, None]


def test_inputs_and_results_are_those_that_a_party_may_hold(parts):
    def program(x, y):
        return mp.invoke(dialect.add, x, y), x, mp.pshfl_s(y, 2, [1])

    x = mp.evaluate(parts, lambda: ranks([0, 1]))
    y = mp.evaluate(parts, lambda: mp.invoke(dialect.add, ranks([1]), ranks([1])))
    assert results(parts, program, x, y) == ([None, 3, None], [0, 1, None], [None, None, 2])
    whole = trace(program, x.type, y.type)
    assert [held(whole.graph.inputs, rank) for rank in range(3)] == [[0], [0, 1], []]
    assert [held(whole.graph.outputs, rank) for rank in range(3)] == [[1], [0, 1], [2]]


def fails_in_a_kernel():
    return mp.pshfl_s(mp.invoke(dialect.fail_at, ranks(), party=1), [0, 1, 2], [1, 2, 0])


def pulls_from_one_that_has_nothing():
    return mp.pshfl(ranks([0, 1]), mp.constant(2, parties=1))


def sends_what_it_does_not_have():
    x = mp.simp.pcall_dynamic(dialect.add, ranks([0, 1]), ranks([1]))
    return mp.pshfl_s(x, [2], [0])


def runs_without_an_operand():
    x = mp.simp.pcall_dynamic(dialect.add, ranks([0, 1]), ranks([1]))
    return mp.simp.pcall_static([0, 1], dialect.add, x, x)


def keeps_what_it_does_not_have():
    x = mp.simp.pcall_dynamic(dialect.add, ranks([0, 1]), ranks([1]))
    return mp.pshfl_s(x, [0], [0])


def holds_two_to_converge():
    x = mp.simp.pcall_dynamic(dialect.add, ranks([0, 1]), ranks([1]))
    return mp.pconv([x, ranks([1])])


def disagrees():
    flag = mp.invoke(dialect.less, ranks(), mp.constant(1))
    return mp.uniform_cond(flag, lambda: mp.constant(1), lambda: mp.constant(2))


FAILING = [
    fails_in_a_kernel,
    pulls_from_one_that_has_nothing,
    sends_what_it_does_not_have,
    runs_without_an_operand,
    keeps_what_it_does_not_have,
    holds_two_to_converge,
    disagrees,
]


@pytest.mark.parametrize("program", FAILING)
def test_what_fails_in_the_whole_fails_in_the_parts_by_the_same_words(parts, program):
    with Simulator(mp.ClusterSpec.simple(3), timeout=5.0) as whole:
        with pytest.raises(PartyError) as expected:
            results(whole, program)
        with pytest.raises(PartyError) as found:
            results(parts, program)
    where = f" at {Path(__file__).name}:"
    assert where in str(found.value)
    assert found.value.location == expected.value.location
    mine, theirs = (str(each.value).partition(": ")[2] for each in (found, expected))
    assert mine == theirs or program is disagrees
    assert results(parts, lambda: mp.constant(1)) == [1, 1, 1]


def test_what_arrives_is_held_against_its_type():
    programs = [
        "simp.send(%0) {place = 0, to = {1}} return",
        "%1 = simp.recv() {kind = f32[], place = 0, source = 0} : f32[]@{1} return %1",
    ]
    with Simulator(mp.ClusterSpec.simple(2), timeout=5.0) as host:
        host._begin("run")
        futures = [
            host._submit(
                rank,
                "run",
                parse(f'program "p" on {{{rank}}} (%0: i64[]@{{{rank}}}) {{ {text} }}'),
                [np.int64(7)],
            )
            for rank, text in enumerate(programs)
        ]
        with pytest.raises(mp.errors.RunError, match=r"party 0 sent something else: expected f32"):
            futures[1].result(5.0)


@pytest.mark.needs("jax", "spu")
def test_spu_computes_with_each_party_running_its_part():
    def program(x):
        secret = mp.seal(x)
        return mp.reveal(secret * secret + mp.seal(x))

    cluster = mp.ClusterSpec.simple(2)
    with PartHost(cluster, timeout=30.0) as parts:
        x = np.arange(3)
        for mode in ("launch", "standard"):
            for value in mp.fetch(parts, mp.evaluate(parts, program, x, mode=mode)):
                np.testing.assert_array_equal(value, x * x + x)
        whole = trace(program, x, parties=2)
        found = run_passes(whole)
        survives(found)
        with parts.options(mode="launch"):
            (result,) = parts.evaluate(found, [parts.lift(x)])
        np.testing.assert_array_equal(parts.fetch(result)[0], x * x + x)


@pytest.mark.needs("crypto")
def test_two_fresh_keys_stay_two_and_keys_that_nobody_needs_go():
    from mplang_crypto import encrypt, keygen

    def program():
        x = mp.put("P0", 7)
        keys = [mp.device("P0")(keygen)() for _ in range(3)]
        return [mp.put("P1", mp.device("P0")(encrypt)(x, key)) for key in keys[:2]]

    after = run_passes(trace(program, parties=2))
    opcodes = [op.opcode for op in after.graph.walk()]
    assert opcodes.count("crypto.keygen") == opcodes.count("crypto.encrypt") == 2
    assert "crypto" not in print_program(project(after, 1)).replace("crypto.ciphertext", "")


# -- what is refused


def test_only_a_party_of_the_program_has_a_part():
    with pytest.raises(ValueError, match=r"party 3 does not take part; .* for \{0, 1, 2\}"):
        project(trace(ranks), 3)


def declare(name, infer):
    op_defs.add(name, OpDef(name, infer, Level.PARTY), provider="tests", override=True)
    return parse(f'program "p" on {{0, 1}} () {{ {name}() at "a.py:1" return }}')


def test_an_op_that_does_not_tell_how_it_projects_is_run_whole_by_all():
    part = project(declare("parts.together", lambda op, world: []), 1)
    assert [(op.opcode, op.attrs) for op in part.graph.ops] == [("parts.together", {"place": 0})]


def test_an_op_that_does_not_tell_and_cannot_be_run_by_one_party_is_refused():
    def infer(op, world):
        if len(world) < 2:
            raise ValueError("it takes two")
        return []

    with pytest.raises(VerifyError, match=r"parts.pair at a.py:1.* it takes two; .* Projects"):
        project(declare("parts.pair", infer), 0)


def test_the_attribute_of_projections_is_not_for_others():
    with pytest.raises(ValueError, match="parts.wrong: the attribute 'place'"):
        OpDef("parts.wrong", lambda op, world: [], Level.PARTY, {"place": Attr(int)})


REFUSED = {
    "simp.send(%0) {to = {1}}": "attributes missing: place",
    "simp.send(%0) {place = -1, to = {1}}": "place -1, after",
    "simp.send(%0) {place = 0, to = {}}": "sent to no party",
    "simp.send() {place = 0, to = {1}}": "expected 1 operands, got 0",
    "%2 = simp.recv() {kind = i64[], source = 1} : i64[]@{0}": "attributes missing: place",
    "%2 = simp.recv() {kind = i64[], place = 0, source = -1} : i64[]@{0}": "not negative",
    "%2 = simp.recv(%0) {kind = i64[], place = 0, source = 1} : i64[]@{0}": "expected 0 operands",
    "%2 = simp.recv() {kind = i64[], place = 0, source = 1} : i64[]@{1}": "its outputs are",
    "%2 = simp.nothing() {kind = i64[]} : i64[]@{0}": "its outputs are",
    "simp.send(%0) {place = 0, to = {1}} simp.send(%0) {place = 0, to = {2}}": "places ascend",
    "simp.send(%0) {place = 1, to = {1}} simp.send(%0) {place = 0, to = {2}}": "places ascend",
    "simp.pcall_static(%0) {parties = {1}, place = 0} do (%2: i64[]) { return }": "no party",
    "simp.pcall_static(%0) {parties = {0, 1}} do (%2: i64[]) { return }": "not among",
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_a_part_that_breaks_a_rule_is_refused(text, reason):
    program = f'program "p" on {{0}} (%0: i64[]@{{0}}) {{ {text} return }}'
    with pytest.raises(VerifyError, match=reason):
        mp.verify(parse(program))


def test_receipts_stand_in_programs_of_one_party():
    text = "%0 = simp.recv() {kind = i64[], place = 0, source = 1} : i64[]@{0, 1}"
    with pytest.raises(VerifyError, match=r"program of one party, not of \{0, 1\}"):
        mp.verify(parse(f'program "p" on {{0, 1}} () {{ {text} return }}'))


def test_a_projection_loses_its_waste_but_no_message():
    def program():
        return mp.pshfl_s(mp.pconv([ranks([0]), ranks([1])]), [0, 1], [1, 0]), ranks([2])

    part = project(trace(program), 0)
    part.graph.outputs.clear()
    after = eliminate_dead_code(part)
    opcodes = [op.opcode for op in after.graph.ops]
    assert opcodes == ["simp.pcall_static", "simp.send", "simp.recv"]
