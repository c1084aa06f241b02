"""Results that a party can change unnoticed: which programs have rows of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import toy
from disclosure_rows import SCALAR, VECTOR, at, line_of, trace
from mplang_analysis import ChangeRule, Changes, HasChanges, Label, own
from mplang_analysis.effort import MAX_EFFORT, PER_OP
from mplang_analysis.labels import EVERY, MAX_ENTRIES, Changer
from public_keys import decrypt, encrypt, keypair, run, send

import mplang_core as mp
from mplang_core import BaseType, Form, Mask, analysis
from mplang_core.errors import AdmissionError, WireError
from mplang_core.ext import Effects


@dataclass(frozen=True)
class Half(BaseType):
    """A share of a tensor."""

    name: ClassVar[str] = "joint.half"
    form: ClassVar[Form] = Form.SHARE

    plain: mp.TensorType

    def params(self):
        return (self.plain,)

    @classmethod
    def from_params(cls, params):
        return cls(*params)


def opening(name, *rules):
    """Return an op that makes something plain of halves."""

    @mp.simple_op(f"joint.{name}", reads=(), total=True, interfaces=rules)
    def joins(x: Half) -> mp.TensorType:
        """Joins."""
        return x.plain

    return joins


silent = opening("silent")
by_two = opening("by_two", ChangeRule(lambda op: Changes(Mask.of([1, 2, 7]), "JOINT")))
checked = opening("checked", ChangeRule(lambda op: Changes(by=Mask())))


@mp.simple_op("joint.split", effects=Effects.FRESH, reads=(), total=True)
def split(x: mp.TensorType) -> Half:
    """Splits."""
    return Half(x)


@mp.simple_op("joint.sum", execution_model="multi_party", reads=(), total=True)
def summed(x: mp.TensorType) -> mp.TensorType:
    """Adds up what parties have; it says nothing of how."""
    return x


@mp.simple_op(
    "joint.checked_sum",
    execution_model="multi_party",
    reads=(),
    total=True,
    interfaces=[ChangeRule(lambda op: Changes(Mask.of([0, 1]), "SUM"))],
)
def said_sum(x: mp.TensorType) -> mp.TensorType:
    """Adds up what parties have."""
    return x


def changed(fn, *types, parties=3):
    """Return who can change what parties get."""
    return [
        (row.sender, row.receiver, row.payload, row.form, row.protocol, row.inputs)
        for row in analysis.disclosure(trace(fn, *types, parties=parties)).rows
        if row.what == "change" and row.receiver != "host"
    ]


def pairs(rows):
    return [(row.sender, row.receiver) for row in rows if row.what == "change"]


def joined(op, at_rank=0, kind=SCALAR):
    return (lambda x: mp.keep(run(at_rank, op, send(run(1, split, x), 1, at_rank)))), at(kind, 1)


def test_an_op_says_which_parties_can_change_what_it_makes_plain():
    assert changed(*joined(by_two)) == [
        (1, 0, "i64[]", "plain", "JOINT", (1,)),
        (2, 0, "i64[]", "plain", "JOINT", (1,)),
    ]
    assert changed(*joined(by_two, at_rank=2)) == [(1, 2, "i64[]", "plain", "JOINT", (1,))]


def test_of_an_op_that_opens_shares_and_says_nothing_every_party_can():
    assert changed(*joined(silent)) == [(None, 0, "i64[]", "plain", "", (1,))]
    assert changed(lambda x: run(0, silent, run(0, split, x)), at(SCALAR, 0), parties=1) == []


def test_an_op_that_notices_every_change_has_no_row():
    assert changed(*joined(checked)) == []


@pytest.mark.parametrize("op", [summed, said_sum])
def test_an_op_that_parties_run_together_is_asked_as_well(op):
    def program(x, y):
        return mp.simp.pcall_static([0, 1], op, mp.pconv([x, y]))

    found = changed(program, at(SCALAR, 0), at(SCALAR, 1))
    if op is summed:
        assert found == [(None, 0, "i64[]", "plain", "", (0, 1)),
                         (None, 1, "i64[]", "plain", "", (0, 1))]  # fmt: skip
    else:
        assert found == [(1, 0, "i64[]", "plain", "SUM", (0, 1)),
                         (0, 1, "i64[]", "plain", "SUM", (0, 1))]  # fmt: skip


def test_a_plain_message_and_what_is_decrypted_have_no_row():
    """A party may always send another value than its own, whatever the protocol."""

    def program(x):
        private, public = run(0, keypair)
        sealed = run(1, encrypt, x, send(public, 0, 1))
        mp.keep(run(0, toy.scale, send(x, 1, 0)))
        return run(0, decrypt, send(sealed, 1, 0), private)

    assert changed(program, at(SCALAR, 1)) == []


def test_what_is_nobodys_data_can_be_changed_too():
    found = changed(lambda: run(0, by_two, run(0, split, mp.constant(3))))
    assert found == [(1, 0, "i64[]", "plain", "JOINT", ()), (2, 0, "i64[]", "plain", "JOINT", ())]


def test_one_row_stands_for_all_lines_of_a_type_and_comes_last():
    def program(x, y):
        x, y = send(run(1, split, x), 1, 0), send(run(1, split, y), 1, 0)
        one = mp.simp.pcall_static(0, by_two, x)
        other = mp.simp.pcall_static(0, by_two, y)
        return mp.keep((one, other, mp.simp.pcall_static(0, by_two, x)))

    rows = analysis.disclosure(trace(program, at(SCALAR, 1), at(VECTOR, 1), parties=3)).rows
    found = [row for row in rows if row.what == "change"]
    assert list(rows[-4:]) == found
    lines = tuple(line_of(program, i) for i in (2, 3, 4))
    assert [(row.sender, row.payload, row.line, row.lines, row.when) for row in found] == [
        (1, "i64[]", lines[0], (lines[0], lines[2]), "if it deviates"),
        (2, "i64[]", lines[0], (lines[0], lines[2]), "if it deviates"),
        (1, "f32[3]", lines[1], (lines[1],), "if it deviates"),
        (2, "f32[3]", lines[1], (lines[1],), "if it deviates"),
    ]


def test_nobody_learns_anything_by_it():
    def program(x):
        return mp.keep(run(1, by_two, run(1, split, x)))

    found = analysis.disclosure(trace(program, at(SCALAR, 1), parties=3))
    assert [(row.what, row.sender, row.discloses) for row in found.rows] == [
        ("reveal", None, ()),
        ("change", 2, ()),
    ]
    assert found.sentences()[0] == "Nobody learns anything of anyone else's data."
    assert found.of(1) == ()


def test_what_is_made_of_it_can_be_changed_at_whoever_gets_it():
    def program(x):
        opened = run(1, by_two, run(1, split, x))  # 2 can change it
        made = run(1, toy.add, opened, opened)
        return send(run(0, toy.scale, send(made, 1, 0)), 0, 2)

    rows = analysis.disclosure(trace(program, at(SCALAR, 1), parties=3)).rows
    assert pairs(rows) == [(2, 1), (1, 0), (2, 0), (1, 2), (1, "host"), (2, "host")]


def test_it_is_remembered_where_it_is_encrypted_and_where_it_is_shared_again():
    def sealed(x):
        private, public = run(0, keypair)
        opened = run(1, by_two, run(1, split, x))
        return mp.keep(
            run(0, decrypt, send(run(1, encrypt, opened, send(public, 0, 1)), 1, 0), private)
        )

    def shared(x):
        opened = run(1, by_two, run(1, split, x))
        return mp.keep(run(0, checked, send(run(1, split, opened), 1, 0)))

    for program in (sealed, shared):
        rows = analysis.disclosure(trace(program, at(SCALAR, 1), parties=3)).rows
        assert pairs(rows) == [(2, 1), (1, 0), (2, 0)]


def test_what_a_changed_predicate_decides_can_be_changed():
    def program(x):
        opened = run(0, by_two, run(0, split, x))
        pred = send(run(0, toy.less, opened, opened), 0, [0, 1, 2])
        return mp.uniform_cond(pred, lambda: mp.constant(1), lambda: mp.constant(2))

    rows = analysis.disclosure(trace(program, at(SCALAR, 0), parties=3)).rows
    found = pairs(rows)
    assert {(2, 1), (1, 2), (1, 0), (2, 0), (1, "host"), (2, "host")} <= {*found}


def test_it_is_remembered_from_program_to_program():
    def opens(x):
        return mp.keep(run(1, by_two, run(1, split, x)))

    def sends(x):
        return mp.keep(send(x, 1, 0))

    first = analysis.follow(trace(opens, at(SCALAR, 1), parties=3).program, [{1: own(1, "put")}])
    (label,) = first.outputs[0].values()
    assert label.changers == {Changer(1, "JOINT"), Changer(2, "JOINT"), Changer(7, "JOINT")}
    assert Label.decode(label.encode()) == label
    second = analysis.follow(trace(sends, at(SCALAR, 1), parties=3).program, first.outputs)
    assert pairs(second.disclosure.rows) == [(1, 0), (2, 0)]  # 7 takes no part


def test_of_very_many_every_party_is_left():
    many = frozenset(Changer(0, f"P{i}") for i in range(MAX_ENTRIES + 1))
    assert Label(changers=many).made_by("").changers == {Changer(EVERY, "")}


@pytest.mark.parametrize(
    "changers",
    [
        7, "x", [7], [[0]], [[0, "A", 1]], [["0", "A"]], [[True, "A"]], [[-2, "A"]], [[1024, "A"]],
        [[0.0, "A"]], [[-1.0, "A"]], [[0, 7]], [[0, "A" * 201]], [[0, "A"], [0, "A"]],
        [[0, f"P{i}"] for i in range(MAX_ENTRIES + 1)],
    ],
)  # fmt: skip
def test_malformed_ones_of_a_peer_are_refused(changers):
    good = Label(changers=frozenset([Changer(EVERY, ""), Changer(3, "A")])).encode()
    assert Label.decode(good).changers == {Changer(EVERY, ""), Changer(3, "A")}
    assert Label.decode(good[:-1]) == Label()  # as those without any are encoded
    with pytest.raises(WireError, match="a label from a peer is malformed"):
        Label.decode([*good[:-1], changers])


def test_what_a_loop_opens_is_one_row_however_often():
    def program(x):
        def less(total):
            return send(run(0, toy.less, total, total), 0, [0, 1, 2])

        return mp.while_loop(less, lambda total: run(0, by_two, run(0, split, total)), x)

    found = [(row[0], row[1], row[2]) for row in changed(program, at(SCALAR, 0))]
    assert len(found) == len(set(found))
    assert [each for each in found if each[1:] == (0, "i64[]")] == [
        (1, 0, "i64[]"),
        (2, 0, "i64[]"),
    ]


def test_rows_count_for_the_effort_of_the_analysis(monkeypatch):
    """Parties times parties of them could be asked for by one op."""
    many = opening("by_many", ChangeRule(lambda op: Changes(Mask.all(60), "JOINT")))

    def program(x):
        return mp.simp.pcall_static(
            range(60), many, mp.pconv([run(i, split, x) for i in range(60)])
        )

    monkeypatch.setattr("mplang_analysis.recorder.MAX_EFFORT", 60 * 59 * PER_OP)
    assert MAX_EFFORT > 60 * 59 * PER_OP
    with pytest.raises(AdmissionError, match="too complex to compute"):
        changed(program, at(SCALAR, *range(60)), parties=60)


def test_a_rule_is_the_interface():
    assert isinstance(ChangeRule(lambda op: Changes()), HasChanges)
