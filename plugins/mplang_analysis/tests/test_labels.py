"""Labels: from program to program, through shares, and from peers who lie."""

from __future__ import annotations

import dataclasses
import timeit

import pytest
import toy
from disclosure_rows import SCALAR, at, trace
from mplang_analysis import PUBLIC, Guard, Label, Piece, Source, follow, own
from public_keys import (
    Half,
    PublicKey,
    Sealed,
    agree,
    encrypt,
    keypair,
    negate,
    run,
    send,
    shared,
    sum_shares,
)

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import TraceError, WireError


def program(fn, *types, parties=3):
    return trace(fn, *types, parties=parties).program


def told(followed, what="move"):
    rows = [row for row in followed.disclosure.rows if row.what == what]
    return [(row.sender, row.receiver, row.discloses) for row in rows]


MOVE = program(lambda x: send(x, 1, 0), at(SCALAR, 1))
DOUBLE = program(lambda x: run(0, toy.add, x, x), at(SCALAR, 0))
REVEAL = program(lambda x: send(x, 0, 2), at(SCALAR, 0))
SEAL = program(shared, at(SCALAR, 0))
SEAL_OTHER = program(lambda x: shared(x, 1), at(SCALAR, 1))
NEGATE = program(lambda x: run((0, 1), negate, x), at(Half(), 0, 1))
SUM = program(lambda x, y: run((0, 1), sum_shares, x, y), at(Half(), 0, 1), at(Half(), 0, 1))
HAND_OUT = program(lambda x: send(x, 0, 2), at(Half(), 0, 1))
HAND_OUT_OTHER = program(lambda x: send(x, 1, 2), at(Half(), 0, 1))


# -- chains


def test_a_value_is_still_the_data_of_the_party_that_it_came_from():
    moved = follow(MOVE, [{1: own(1, "patients")}])
    doubled = follow(DOUBLE, moved.outputs)
    last = follow(REVEAL, doubled.outputs)
    assert told(last) == [(0, 2, (1,))]
    assert told(last, "result") == [(2, "host", (1,))]
    (label,) = last.outputs[0].values()
    assert label.sources == {Source(1, mp.Mask.of(1), "patients")}
    assert label.program == REVEAL.digest
    assert told(follow(REVEAL)) == [(0, 2, (0,))]  # without labels it is its holder's own


def test_shares_remember_through_three_programs():
    sealed = follow(SEAL, [{0: own(0, "put")}])
    negated = follow(NEGATE, sealed.outputs)
    one = follow(HAND_OUT, negated.outputs)
    assert told(one) == [(0, 2, ())]
    both = program(lambda x: (send(x, 0, 2), send(x, 1, 2)), at(Half(), 0, 1))
    assert told(follow(both, negated.outputs)) == [(0, 2, (0,)), (1, 2, (0,))]


def test_what_a_party_got_in_an_earlier_program_meets_what_it_gets_now():
    sealed = follow(SEAL, [{0: own(0, "put")}])
    first = follow(HAND_OUT, sealed.outputs, sealed.held)
    assert told(first) == [(0, 2, ())]
    negated = follow(NEGATE, sealed.outputs, first.held)
    second = follow(HAND_OUT_OTHER, negated.outputs, negated.held)
    assert told(second) == [(1, 2, (0,))]
    assert told(follow(HAND_OUT_OTHER, negated.outputs)) == [(1, 2, ())]


def test_a_table_of_shares_alone_takes_others_to_have_had_anything():
    sealed = follow(SEAL, [{0: own(0, "put")}])

    def told_of(labels, held=None):
        rows = analysis.disclosure(HAND_OUT, labels=labels, held=held).rows
        return [row.discloses for row in rows if row.what == "move"]

    assert told_of(sealed.outputs) == [(0,)]  # party 2 may have the other share
    assert told_of(sealed.outputs, sealed.held) == [()]
    assert told_of([{0: PUBLIC}]) == [()]


def test_a_share_of_more_that_a_party_had_is_opened_by_a_share_of_less():
    """Party 2 has a share of what was computed on both; a share of one secret may open it."""
    a = follow(SEAL, [{0: own(0, "put")}])
    b = follow(SEAL_OTHER, [{1: own(1, "put")}], a.held)
    both = follow(SUM, [a.outputs[0], b.outputs[0]], b.held)
    first = follow(HAND_OUT, both.outputs, both.held)
    second = follow(HAND_OUT_OTHER, a.outputs, first.held)
    assert told(second) == [(1, 2, (0, 1))]


def test_a_key_opens_a_ciphertext_of_an_earlier_program():
    def make(x):
        private, public = run(0, keypair)
        return private, public, run(0, encrypt, x, public)

    made = follow(program(make, at(SCALAR, 0)), [{0: own(0, "put")}])
    private, public, sealed = made.outputs
    assert (private[0].parties, len(private[0].keys)) == (mp.Mask(), 1)
    assert private[0].keys == public[0].keys == sealed[0].keys

    given = follow(program(lambda x: send(x, 0, 1), at(Sealed(), 0)), [sealed], made.held)
    assert told(given) == [(0, 1, ())]

    def derive(public):
        return run(1, agree, run(1, keypair)[0], send(public, 0, 1))

    derived = program(derive, at(PublicKey(), 0))
    late = follow(derived, [public], given.held)
    assert told(late, "reveal") == [(None, 1, (0,))]
    assert told(follow(derived, [public]), "reveal") == []
    assert told(follow(derived, [public], late.held), "reveal") == []  # it was told

    more = program(lambda x, key: send(run(0, encrypt, x, key), 0, [1, 2]), at(SCALAR, 0),
                   at(PublicKey(), 0))  # fmt: skip
    after = follow(more, [{0: own(0, "put")}, public], late.held)
    assert told(after) == [(0, 1, (0,)), (0, 2, ())]


def test_keys_and_secrets_of_another_run_open_nothing():
    """Each run makes new ones, though their identities are the same from run to run."""

    def make(x):
        _, public = run(1, keypair)
        return send(run(0, encrypt, x, send(public, 1, 0)), 0, 2)

    once = follow(program(make, at(SCALAR, 0)), [{0: own(0, "put")}])
    again = follow(program(make, at(SCALAR, 0)), [{0: own(0, "put")}], once.held)
    assert told(again) == told(once) == [(1, 0, ()), (0, 2, ())]

    def outsider(x):
        y = shared(x)
        return send(y, 0, 2)

    def other(x):
        y = shared(x)
        return send(y, 1, 2)

    first = follow(program(outsider, at(SCALAR, 0)), [{0: own(0, "put")}])
    for fn in (outsider, other):
        assert told(follow(program(fn, at(SCALAR, 0)), None, first.held))[1][2] == ()


def test_labels_do_not_grow_with_the_number_of_runs():
    """A value in shares that each run adds a new secret to."""

    def step(state, x):
        return run((0, 1), sum_shares, state, shared(x))

    update = program(step, at(Half(), 0, 1), at(SCALAR, 0))
    state, held, data = follow(SEAL).outputs[0], {}, {0: own(0, "batch")}
    for turn in range(10_000):
        found = follow(update, [state, data], held)
        (state,), held = found.outputs, found.held
        if turn == 1:
            early = state, held
    assert (state, held) == early
    assert (len(state[0].pieces), len(state[0].derived)) == (0, 2)


def test_public_inputs_have_the_label_of_nobody():
    assert told(follow(MOVE, [{1: PUBLIC}])) == [(1, 0, ())]
    assert told(follow(MOVE, [{}])) == told(follow(MOVE)) == [(1, 0, (1,))]


def test_a_share_without_a_label_may_be_of_the_secret_of_one_with_a_label():
    labelled = follow(SEAL, [{0: own(0, "put")}]).outputs[0]
    meet = program(lambda x, y: (send(x, 0, 2), send(y, 1, 2)), at(Half(), 0, 1), at(Half(), 0, 1))
    assert told(follow(meet, [labelled, {}]))[1][2] == (0, 1)
    assert told(follow(meet, [{}, labelled])) == [(0, 2, (0, 1)), (1, 2, (0,))]
    separate = follow(SEAL_OTHER, [{1: own(1, "put")}]).outputs[0]
    assert told(follow(meet, [labelled, separate])) == [(0, 2, ()), (1, 2, ())]


def test_the_number_of_labels_is_checked():
    with pytest.raises(TraceError, match="expected labels of its 1 inputs, got 2"):
        follow(MOVE, [{}, {}])
    with pytest.raises(TraceError, match="expected labels"):
        analysis.disclosure(MOVE, labels=[])


def test_programs_that_differ_in_lines_only_have_their_own_tables():
    text = str(MOVE).replace(" at ", " at  ")
    here, there = (mp.parse(text.replace(":", f":{i}", 0)) for i in (1, 2))
    for op in there.graph.ops:
        op.location = None
    lines = {follow(each).disclosure.rows[0].line for each in (here, there)}
    assert here.digest == there.digest
    assert len(lines) == 2


def test_a_run_like_an_earlier_one_costs_microseconds():
    labels = [{1: own(1, "put")}]
    held = follow(MOVE, labels).held
    held = follow(MOVE, labels, held).held
    cost = min(timeit.repeat(lambda: follow(MOVE, labels, held), number=200, repeat=20)) / 200
    assert cost < 100e-6  # about 10 µs; an analysis takes 200


# -- on the wire


FULL = Label(
    frozenset([Source(1, mp.Mask.of([0, 1]), "input 0"), Source(0, mp.Mask.of(0), "put")]),
    frozenset([Piece("ab" * 16, 1), Piece("*", 0)]),
    frozenset([Piece("12" * 16, 2)]),
    frozenset(["cd" * 16, "*"]),
    "ef" * 32,
)


GUARD = Guard("guard", ("data set people.id",), 20, ("mean", "unit"), ("lower",))
BOUNDED = GUARD._replace(max_share=500_000)
GUARDED = Label(
    frozenset(
        [
            Source(1, mp.Mask.of(1), "data set people.id", (GUARD,)),
            Source(1, mp.Mask.of(1), "data set people.id", (BOUNDED,)),
            Source(1, mp.Mask.of(1), "data set people.id"),
        ]
    )
)


@pytest.mark.parametrize("label", [PUBLIC, FULL, GUARDED, own(3, "a table: age, pay")])
def test_labels_survive_the_wire(label):
    data = label.encode()
    assert Label.decode(data) == label
    assert Label.decode(label.encode()).encode() == data

    def plain(each):
        return type(each) in (int, str) or (type(each) is list and all(map(plain, each)))

    assert plain(data)


def test_labels_of_results_survive_the_wire():
    for fact in (*follow(SEAL).outputs, *follow(NEGATE).outputs):
        for label in fact.values():
            assert Label.decode(label.encode()) == label


def broken():
    """Yield encoded labels of peers that are damaged or lie."""
    encoded = PUBLIC.encode()

    def but(place, data):
        return [*encoded[:place], data, *encoded[place + 1 :]]

    yield from (None, 7, "text", [], {}, encoded[:4], [*encoded, 1], but(0, None), but(4, None))
    for party in (True, -1, 1 << 40, "0"):
        yield from (but(0, [[party, [0], "x", []]]), but(0, [[0, [party], "x", []]]))
    for source in ([0, [0]], [0, [0], "x", 2], [0, 0, "x", []], [0, [0] * 2000, "x", []], 7):
        yield but(0, [source])
    for name in ("x" * 201, b"x"):
        yield but(0, [[0, [0], name, []]])
    whole = ["guard", ["people.id"], 20, ["mean"], ["lower"]]
    assert Label.decode(but(0, [[0, [0], "x", [whole]]]))
    for i, wrong in ((0, 1), (1, "people.id"), (1, [1]), (2, -1), (2, True), (3, [["mean"]]),
                     (4, ["x" * 201]), (4, ["x"] * 257)):  # fmt: skip
        yield but(0, [[0, [0], "x", [[*whole[:i], wrong, *whole[i + 1 :]]]]])
    assert Label.decode(but(0, [[0, [0], "x", [[*whole, 999_999]]]]))
    for share in (1_000_000, -1, 0.5, True, None):
        yield but(0, [[0, [0], "x", [[*whole, share]]]])
    assert Label.decode(but(0, [[0, [0], "x", [[*whole, 1_000_000, 50, 3]]]]))
    for bounds in ([1, 0], [1, -1], [1, 1, 0], [1, 1, 1, 1], [1_000_000, 0, 0], [1, True]):
        yield but(0, [[0, [0], "x", [[*whole, *bounds]]]])
    for guards in ([whole[:4]], [whole] * 17, "guard", None):
        yield but(0, [[0, [0], "x", guards]])
    for piece in (["+" + "ab" * 16, 0], ["ab" * 16, -1], ["ab" * 16, 0, 0], ["ab" * 16], [0, 0]):
        yield from (but(1, [piece]), but(2, [piece]))
    for keys in (["AB" * 16], [7], ["ab" * 16] * 2, ["*"] * 4097):
        yield but(3, keys)
    yield from (but(3, [f"{i:032x}" for i in range(4097)]), but(4, "ef" * 31), but(4, "EF" * 32))


@pytest.mark.parametrize("data", list(broken()))
def test_damaged_labels_are_refused(data):
    with pytest.raises(WireError, match="label from a peer is malformed"):
        Label.decode(data)


def test_a_label_that_is_too_long_becomes_a_shorter_one_that_hides_nothing():
    many = range(5000)
    label = Label(
        frozenset(Source(i % 2, mp.Mask.of(i % 2), f"input {i}") for i in many),
        frozenset(Piece(f"{i:032x}", i % 3) for i in many),
        frozenset(Piece(f"{i:032x}", i % 2) for i in many),
        frozenset(f"{i:032x}" for i in many),
    )
    short = label.made_by("ef" * 32)
    assert Label.decode(short.encode()) == short
    assert short.parties == label.parties
    assert sorted(short.pieces) == [("*", 0), ("*", 1), ("*", 2)]
    assert sorted(short.derived) == [("*", 0), ("*", 1)]
    assert short.keys == {"*"}
    fact = {0: dataclasses.replace(short, sources=frozenset(own(0, "put").sources))}
    other = follow(SEAL, [{0: own(0, "put")}]).outputs[0]
    meet = program(lambda x, y: (send(x, 0, 2), send(y, 1, 2)), at(Half(), 0, 1), at(Half(), 0, 1))
    assert told(follow(meet, [fact, other]))[0][2] == (0,)
