"""The table of disclosures, row by row."""

from __future__ import annotations

import importlib.util
import io
import json
import pathlib
import re

import numpy as np
import pytest
import toy
from rich.console import Console

import mplang_core as mp
from mplang_core import analysis
from mplang_core.edsl.peval import run_program
from mplang_core.errors import MPLangError, TraceError, VerifyError
from mplang_core.ir import Level, OpDef, op_defs
from mplang_core.simp.projection import project

ROOT = pathlib.Path(__file__).parents[3]
SCALAR, VECTOR, BOOL = (mp.TensorType("i64"), mp.TensorType("f32", (3,)), mp.TensorType("bool"))

op_defs.add(
    "opaque.mix",
    OpDef("opaque.mix", lambda op, world: [SCALAR], doc="Has no feop: nothing is known of it."),
    provider="tests",
)
op_defs.add(
    "opaque.maybe",
    OpDef(
        "opaque.maybe",
        lambda op, world: [value.type for value in op.regions["body"].outputs],
        Level.PARTY,
        regions={"body": Level.PARTY},
    ),
    provider="tests",
)


def at(base: mp.BaseType, *ranks: int) -> mp.MPType:
    return mp.MPType(base, mp.Mask.of(ranks))


def trace(fn, *types, parties: int = 2):
    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(parties)), fn, *types)


def rows(subject, *, results: bool = False, **options):
    """Return the rows without bytes and types, and without lines."""
    return [
        (row.what, row.sender, row.receiver, row.form, row.inputs, row.discloses, row.when)
        for row in analysis.disclosure(subject, **options).rows
        if results or row.what != "result"
    ]


def line_of(fn, offset: int) -> str:
    return f"test_disclosure.py:{fn.__code__.co_firstlineno + offset}"


# -- moves


def test_a_plain_value_sent_where_a_share_was_meant():
    def program(x):
        return mp.pshfl_s(x, 1, [0])

    (move, result) = analysis.disclosure(trace(program, at(VECTOR, 0))).rows
    assert move == analysis.DisclosureRow(
        what="move",
        sender=0,
        receiver=1,
        type="f32[3]",
        payload="f32[3]",
        form="plain",
        bytes=12,
        inputs=(0,),
        discloses=(0,),
        line=line_of(program, 1),
        when="once",
    )
    assert (result.what, result.sender, result.receiver) == ("result", 1, "host")


def test_what_stays_or_goes_back_discloses_nothing():
    def program(x):
        there = mp.pshfl_s(x, [0, 1], [0, 0])
        return mp.pshfl_s(there, 0, [1])

    assert rows(trace(program, at(SCALAR, 0))) == [
        ("move", 0, 1, "plain", (0,), (0,), "once"),
        ("move", 1, 0, "plain", (0,), (), "once"),
    ]


def test_taint_is_kept_apart_by_party_and_goes_through_ops():
    def program(x, y):
        both = mp.pconv([x, y])
        more = mp.simp.pcall_static((0, 1), toy.add, both, both)
        return mp.pshfl_s(more, [0, 1, 2], [1, 1, 0])

    assert rows(trace(program, at(SCALAR, 0), at(SCALAR, 1), parties=3)) == [
        ("move", 1, 0, "plain", (1,), (1,), "once"),
        ("move", 0, 2, "plain", (0,), (0,), "once"),
    ]


def test_literals_are_public():
    def program():
        return mp.pshfl_s(mp.constant([1.0], parties=0), 1, [0])

    assert rows(trace(program), results=True) == [
        ("move", 0, 1, "plain", (), (), "once"),
        ("result", 1, "host", "plain", (), (), "once"),
    ]


def test_an_op_that_takes_nothing_gives_data_of_its_party():
    def program():
        return mp.pshfl_s(mp.simp.pcall_static((0, 1), toy.rank), 0, [1])

    assert rows(trace(program)) == [("move", 1, 0, "plain", (1,), (1,), "once")]


@pytest.mark.needs("jax")
def test_compiled_code_that_takes_nothing_is_public():
    def program():
        made = mp.registry.get("jax.compile")(lambda: np.float32(3), mp.FeSignature((), {}))
        return mp.pshfl_s(run_program(made, mp.Mask.of(0)), 1, [0])

    assert rows(trace(program)) == [("move", 0, 1, "plain", (), (), "once")]


def test_a_dynamic_shuffle_asks_and_may_be_answered_by_anyone():
    def program(x, index):
        return mp.pshfl(x, index)

    def table(fn, *types):
        return rows(trace(fn, *types, parties=3), results=True, uniform_inputs=False)

    assert table(program, at(SCALAR, 0, 1, 2), at(SCALAR, 2)) == [
        ("index", 2, 0, "plain", (2,), (2,), "once"),
        ("index", 2, 1, "plain", (2,), (2,), "once"),
        ("move", 0, 2, "plain", (0,), (0,), "if asked for"),
        ("move", 1, 2, "plain", (1,), (1,), "if asked for"),
        ("result", 2, "host", "plain", (0, 1, 2), (0, 1, 2), "once"),
    ]


def test_values_whose_holders_are_unknown():
    def program(x, y):
        both = mp.simp.pcall_dynamic(toy.add, x, y)
        return mp.simp.pcall_dynamic(toy.add, both, mp.constant(1))

    types = at(SCALAR, 0, 1), mp.MPType(SCALAR, None)
    assert rows(trace(program, *types, parties=3), results=True) == [
        ("result", 0, "host", "plain", (0, 1), (0, 1), "once"),
        ("result", 1, "host", "plain", (0, 1), (0, 1), "once"),
    ]


# -- inputs of several holders


def test_an_input_of_several_is_known_to_all_of_them_and_a_note_says_so():
    def program(x):
        return mp.pshfl_s(x, [0, 1, 2], [1, 0, 0])

    some = trace(program, at(SCALAR, 0, 1), parties=3)
    assert rows(some) == [
        ("move", 1, 0, "plain", (0, 1), (), "once"),
        ("move", 0, 1, "plain", (0, 1), (), "once"),
        ("move", 0, 2, "plain", (0, 1), (0, 1), "once"),
    ]
    assert rows(some, uniform_inputs=False) == [
        ("move", 1, 0, "plain", (1,), (1,), "once"),
        ("move", 0, 1, "plain", (0,), (0,), "once"),
        ("move", 0, 2, "plain", (0,), (0,), "once"),
    ]
    (note,) = analysis.disclosure(some).notes
    assert "Input 0, i64[]@{0, 1}, is taken as the same" in note
    assert analysis.disclosure(some, uniform_inputs=False).notes == ()
    everyone = trace(program, 7, parties=3)
    assert all(row.inputs == () for row in analysis.disclosure(everyone).rows)
    assert "public" in analysis.disclosure(everyone).notes[0]


def test_a_world_of_one_has_its_own_data():
    def program(x):
        return x

    assert rows(trace(program, at(SCALAR, 0), parties=1), results=True) == [
        ("result", 0, "host", "plain", (0,), (0,), "once")
    ]


# -- control flow


def everyone(x, frm: int = 0):
    return mp.pshfl_s(x, [0, 1], [frm, frm])


def test_a_predicate_is_learned_and_flows_into_what_depends_on_it():
    def program(secret):
        pred = mp.pconv([secret, mp.constant(True, parties=1)])
        return mp.uniform_cond(
            pred,
            lambda: mp.pshfl_s(mp.constant(1, parties=1), 0, [1]),
            lambda: mp.constant(2, parties=0),
        )

    assert rows(trace(program, at(BOOL, 0)), results=True) == [
        ("predicate", 0, 1, "plain", (0,), (0,), "once"),
        ("predicate", 1, 0, "plain", (), (), "once"),
        ("move", 1, 0, "plain", (0,), (), "in a branch"),
        ("result", 0, "host", "plain", (0,), (0,), "once"),
    ]


def test_a_predicate_that_is_not_compared_is_learned_all_the_same():
    def program(secret):
        return mp.uniform_cond(
            everyone(secret), lambda: mp.constant(1), lambda: mp.constant(2), verify_uniform=False
        )

    traced = trace(program, at(BOOL, 0))
    assert [row[:3] for row in rows(traced)] == [
        ("move", 0, 1),
        ("predicate", 0, 1),
        ("predicate", 1, 0),
    ]
    assert [link.messages for link in analysis.costs(traced).links] == [1]


def test_a_loop_goes_to_its_fixpoint_and_is_shown_once():
    """What comes in by the third variable reaches the first only in the third turn."""

    def program(secret):
        def step(state):
            i, a, b, c = state
            sent = mp.pshfl_s(a, 1, [0])
            back = mp.pshfl_s(sent, 0, [1])
            return mp.invoke(toy.add, i, mp.constant(1)), b, c, mp.invoke(toy.add, back, c)

        zero = mp.constant(0, parties=0)
        return mp.while_loop(
            lambda state: mp.invoke(toy.less, state[0], mp.constant(5)),
            step,
            (mp.constant(0), zero, mp.constant(1, parties=0), secret),
        )[1]

    assert rows(trace(program, at(SCALAR, 0)), results=True) == [
        ("predicate", 0, 1, "plain", (), (), "per iteration"),
        ("predicate", 1, 0, "plain", (), (), "per iteration"),
        ("move", 0, 1, "plain", (0,), (0,), "per iteration"),
        ("move", 1, 0, "plain", (0,), (), "per iteration"),
        ("result", 0, "host", "plain", (0,), (0,), "once"),
    ]


def test_the_number_of_turns_flows_into_the_state():
    def program(secret):
        limit = everyone(secret)

        def step(i):
            return mp.invoke(toy.add, i, mp.constant(1))

        return mp.while_loop(lambda i: mp.invoke(toy.less, i, limit), step, 0)

    assert rows(trace(program, at(SCALAR, 0)), results=True) == [
        ("move", 0, 1, "plain", (0,), (0,), "once"),
        ("predicate", 0, 1, "plain", (0,), (0,), "per iteration"),
        ("predicate", 1, 0, "plain", (0,), (), "per iteration"),
        ("result", 0, "host", "plain", (0,), (0,), "once"),
        ("result", 1, "host", "plain", (0,), (0,), "once"),
    ]


def test_nested_regions_and_calls_keep_the_inner_line():
    @mp.builtin_function
    def hand_over(x):
        return mp.pshfl_s(x, 1, [0])

    def program(x):
        def turn(state):
            i, y = state
            done = mp.uniform_cond(
                mp.invoke(toy.less, i, mp.constant(2)), lambda: hand_over(x), lambda: y
            )
            return mp.invoke(toy.add, i, mp.constant(1)), done

        start = mp.constant(0), mp.constant(0, parties=1)
        return mp.while_loop(
            lambda state: mp.invoke(toy.less, state[0], mp.constant(3)), turn, start
        )[1]

    table = analysis.disclosure(trace(program, at(SCALAR, 0)))
    (move,) = (row for row in table.rows if row.what == "move")
    assert move.when == "per iteration, in a branch"
    assert move.discloses == (0,)
    assert move.line == line_of(hand_over.__wrapped__, 2)


# -- ops of plugins


def test_an_op_of_which_nothing_is_known_is_taken_to_mix():
    program = mp.parse("""
        program "opaque" on {0, 1} (%0: i64[]@{0}, %1: i64[]@{1}) {
          %2 = simp.converge(%0, %1) : i64[]@{0, 1}
          %5 = simp.pcall_static(%2) {parties = {0, 1}} do (%3: i64[]) {
            %4 = opaque.mix(%3) : i64[] at "here.py:3"
            return %4
          } : i64[]@{0, 1} at "around.py:1"
          return
        }""")
    assert rows(program) == [
        ("reveal", None, 0, "plain", (0, 1), (1,), "once"),
        ("reveal", None, 1, "plain", (0, 1), (0,), "once"),
    ]
    assert analysis.disclosure(program).rows[0].line == "here.py:3"


def test_regions_of_an_op_of_which_nothing_is_known():
    program = mp.parse("""
        program "opaque" on {0, 1} (%0: i64[]@{0}) {
          %4 = opaque.maybe(%0) body (%1: i64[]@{0}) {
            %2 = simp.shuffle_static(%1) {routing = [[1, 0]]} : i64[]@{1} at "in.py:2"
            return %2
          } : i64[]@{1} at "around.py:1"
          return %4
        }""")
    assert rows(program, results=True) == [
        ("reveal", None, 1, "plain", (0,), (0,), "once"),
        ("move", 0, 1, "plain", (0,), (0,), "any number of times"),
        ("reveal", None, 1, "plain", (0,), (0,), "once"),
        ("result", 1, "host", "plain", (0,), (0,), "once"),
    ]
    assert analysis.graph(program).regions


@pytest.mark.needs("spu", "jax")
def test_shares_are_followed_through_a_joint_computation():
    def program(a, b):
        return mp.reveal(mp.device("SP0")(lambda a, b: a + b)(a, b), to="P2")

    types = at(SCALAR, 0), at(SCALAR, 1)
    assert rows(trace(program, *types, parties=3)) == [
        ("move", 0, 1, "share", (0,), (), "once"),
        ("move", 0, 2, "share", (0,), (), "once"),
        ("move", 1, 0, "share", (1,), (), "once"),
        ("move", 1, 2, "share", (1,), (), "once"),
        ("move", 0, 2, "share", (0, 1), (0, 1), "once"),
        ("move", 1, 2, "share", (0, 1), (0, 1), "once"),
        ("reveal", None, 2, "plain", (0, 1), (0, 1), "once"),
    ]


@pytest.mark.needs("spu")
def test_all_shares_to_one_party_disclose_without_a_reveal():
    from mplang_spu import ShareType, make_shares
    from mplang_spu.config import SpuConfig

    config = SpuConfig(parties=(0, 1), protocol="CHEETAH")

    def program(x):
        one, two = mp.invoke(make_shares, x, share=ShareType.of(SCALAR, config), rmask=0)
        return mp.pshfl_s(one, 1, [0]), mp.pshfl_s(two, 1, [0])

    table = analysis.disclosure(trace(program, at(SCALAR, 0)))
    assert [(row.form, row.discloses) for row in table.rows] == [
        ("share", (0,)),
        ("share", (0,)),
        ("share", ()),
        ("share", ()),
    ]


@pytest.mark.needs("spu")
def test_shares_of_an_earlier_program_may_be_of_anyone():
    text = 'spu.share<i64[], {0, 1}, "CHEETAH", "FM64", 18>'
    program = mp.parse(f"""
        program "later" on {{0, 1}} (%0: {text}@{{0, 1}}) {{
          %1 = simp.shuffle_static(%0) {{routing = [[1, 0]]}} : {text}@{{1}}
          return
        }}""")
    assert rows(program) == [("move", 0, 1, "share", (0, 1), (0,), "once")]


@pytest.mark.needs("crypto")
def test_a_ciphertext_discloses_where_it_is_decrypted():
    from mplang_crypto import agree, decrypt, encrypt, keypair

    def program(x):
        sk0, pk0 = mp.device("P0")(keypair)()
        sk1, pk1 = mp.device("P1")(keypair)()
        k0 = mp.device("P0")(agree)(sk0, mp.put("P0", pk1), info="test")
        k1 = mp.device("P1")(agree)(sk1, mp.put("P1", pk0), info="test")
        sealed = mp.device("P0")(encrypt)(x, k0)
        return mp.device("P1")(decrypt)(mp.put("P1", sealed), k1)

    table = analysis.disclosure(trace(program, at(SCALAR, 0)))
    assert [(r.what, r.sender, r.receiver, r.form, r.inputs, r.discloses) for r in table.rows] == [
        ("move", 1, 0, "plain", (), ()),
        ("move", 0, 1, "plain", (), ()),
        ("move", 0, 1, "ciphertext", (0,), ()),
        ("reveal", None, 1, "plain", (0,), (0,)),
        ("result", 1, "host", "plain", (0,), (0,)),
    ]
    assert table.rows[0].bytes is None
    assert "?" in table.rows[0].texts()


@pytest.mark.needs("crypto", "spu")
def test_an_encrypted_share_is_still_a_share_when_it_is_decrypted():
    share = 'spu.share<i64[], {0, 1}, "CHEETAH", "FM64", 18>'
    sealed = f"crypto.ciphertext<{share}>"
    key = "crypto.symmetric_key<>"
    program = mp.parse(f"""
        program "sealed" on {{0, 1}} (%0: {share}@{{0, 1}}, %1: {key}@{{0, 1}}) {{
          %5 = simp.pcall_static(%0, %1) {{parties = {{0}}}} do (%2: {share}, %3: {key}) {{
            %4 = crypto.encrypt(%2, %3) : {sealed}
            return %4
          }} : {sealed}@{{0}}
          %6 = simp.shuffle_static(%5) {{routing = [[1, 0]]}} : {sealed}@{{1}}
          %10 = simp.pcall_static(%6, %1) {{parties = {{1}}}} do (%7: {sealed}, %8: {key}) {{
            %9 = crypto.decrypt(%7, %8) : {share}
            return %9
          }} : {share}@{{1}}
          return
        }}""")
    assert rows(program) == [
        ("move", 0, 1, "ciphertext", (0, 1), (), "once"),
        ("reveal", None, 1, "share", (0, 1), (0,), "once"),
    ]


# -- the demo


def demo(change=lambda text: text):
    spec = importlib.util.spec_from_file_location("vertical_lr", ROOT / "examples/vertical_lr.py")
    module = importlib.util.module_from_spec(spec)
    text = change((ROOT / "examples/vertical_lr.py").read_text(encoding="utf-8"))
    exec(compile(text, str(ROOT / "examples/vertical_lr.py"), "exec"), module.__dict__)
    shapes = {"a_train": (455, 15), "a_test": (114, 15), "b_train": (455, 15)}
    shapes |= {"b_test": (114, 15), "y_train": (455,), "y_test": (114,)}
    types = {
        name: at(mp.TensorType("f32", shape), 0 if name.startswith("a_") else 1)
        for name, shape in shapes.items()
    }
    context = mp.TraceContext(mp.ClusterSpec.simple(2))
    return mp.trace(context, module.make_program(2, 30), **types)


@pytest.mark.needs("spu", "jax")
def test_the_demo_discloses_what_the_document_explains():
    pytest.importorskip("sklearn")
    text = (ROOT / "docs/disclosure.md").read_text(encoding="utf-8")
    written = re.findall(r"^\| (?:move|reveal|result) \|.*$", text, re.MULTILINE)
    found = ["| " + " | ".join(row.texts()) + " |" for row in analysis.disclosure(demo()).rows]
    assert written == found
    explained = re.findall(r"^(\d+)\. ", text, re.MULTILINE)
    assert explained == [str(i + 1) for i in range(len(found))]


@pytest.mark.needs("spu", "jax")
def test_a_plain_array_in_the_demo_where_a_share_was_meant_shows_up_with_its_line():
    pytest.importorskip("sklearn")
    before = analysis.disclosure(demo()).rows
    mistaken = demo(lambda text: text.replace("mp.seal(y_train)", 'mp.put("P0", y_train)'))
    new = [row for row in analysis.disclosure(mistaken).rows if row not in before]
    (row,) = [row for row in new if row.form == "plain"]
    assert (row.what, row.sender, row.receiver, row.discloses) == ("move", 1, 0, (1,))
    assert str(row.type) == "f32[455]"
    assert row.line == "vertical_lr.py:87"


# -- what may be analysed, and how it is shown


def test_programs_and_functions_are_taken():
    def program(x):
        return mp.pshfl_s(x, 1, [0])

    traced = trace(program, at(SCALAR, 0))
    compiled = mp.compile(program, at(SCALAR, 0), cluster_spec=mp.ClusterSpec.simple(2))
    found = [analysis.disclosure(subject) for subject in (traced, traced.program, compiled)]
    assert found[0] == found[1] == found[2]
    assert found[0].digest == traced.program.digest


@pytest.mark.parametrize("ask", [analysis.disclosure, analysis.costs, analysis.graph])
def test_others_are_refused(ask):
    for subject in (7, lambda x: x, mp.compile(lambda x: x)):
        with pytest.raises(TraceError):
            ask(subject)
    wrong = mp.parse('program "p" on {0} (%0: i64[]@{5}) {\n return %0\n}')
    with pytest.raises(VerifyError):
        ask(wrong)
    assert issubclass(VerifyError, MPLangError)


def hostile() -> mp.Program:
    return mp.parse(r"""
        program "<script>alert(1)</script>" on {0, 1} (%0: i64[]@{0}) {
          %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : i64[]@{1} at "<img>[red].py:1"
          return %1
        }""")


def test_it_is_plain_data_and_survives_json():
    table = analysis.disclosure(hostile())
    assert json.loads(table.to_json()) == table.to_dict()
    assert list(table.rows[0].to_dict()) == [
        "what", "from", "to", "type", "payload", "form", "bytes",
        "inputs", "discloses", "line", "when",
    ]  # fmt: skip
    assert table.of(0) == table.rows
    assert table.of(1) == ()


def test_it_is_shown_as_text_and_in_a_terminal():
    table = analysis.disclosure(hostile())
    assert str(table).splitlines() == [
        "What <script>alert(1)</script> discloses",
        "  what    from  to    type   form   bytes  inputs  discloses  line             when",
        "  move    0     1     i64[]  plain  8      0       0          <img>[red].py:1  once",
        "  result  1     host  i64[]  plain  8      0       0          <img>[red].py:1  once",
    ]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table)
    assert "<img>[red].py:1" in console.export_text()


@pytest.mark.parametrize("ask", [analysis.disclosure, analysis.costs])
def test_pages_escape_what_they_show_and_load_nothing(ask):
    for page in (ask(hostile()).to_html(), ask(hostile())._repr_html_()):
        assert "<script>alert" not in page
        assert "<img" not in page
        assert not re.search(r"(src|href)\s*=|https?:|@import|url\(", page)
    assert "default-src 'none'" in ask(hostile()).to_html()


# -- what cannot be judged, or only with care


def test_the_part_of_one_party_is_refused_and_says_what_to_ask():
    """It does not show what the others do: an empty table would say that nothing is disclosed."""
    whole = trace(lambda x: mp.put("P1", x), at(VECTOR, 0)).program
    for rank in (0, 1):
        part = project(whole, rank)
        with pytest.raises(TraceError) as error:
            analysis.disclosure(part)
        told = str(error.value)
        assert re.search(rf"simp\.(send|recv) at test_disclosure.py:\d+: .* party {rank} in", told)
        assert "Ask for the disclosure of the whole program" in told
    assert [row[0] for row in rows(whole)] == ["move"]


def test_a_part_that_only_names_its_place_is_refused():
    """The `pcall` that several parties run together has its place in a part, and no message."""
    pfunc = mp.PFunction("opaque.mix", (SCALAR,), (SCALAR,), {})

    def program(x):
        return mp.peval(pfunc, [x], rmask=mp.Mask.all(2))[0]

    part = project(trace(program, at(SCALAR, 0, 1)).program, 0)
    with pytest.raises(TraceError, match="simp.pcall_static at .* the part of party 0"):
        analysis.disclosure(part)


def test_a_program_for_one_party_is_whole():
    found = trace(lambda x: mp.invoke(toy.add, x, x), at(SCALAR, 0), parties=1)
    assert rows(found, results=True) == [("result", 0, "host", "plain", (0,), (0,), "once")]


def test_where_it_is_not_known_who_asks_everyone_may():
    """The mask of the index is known at run time only, so every party is answered."""
    index = mp.MPType(SCALAR, None)
    found = rows(trace(lambda x, i: mp.pshfl(x, i), at(VECTOR, 0), index, parties=3))
    asked = {(sender, receiver) for what, sender, receiver, *_ in found if what == "index"}
    assert asked == {(to, other) for to in range(3) for other in range(3) if to != other}
    moved = {(receiver, when) for what, _, receiver, _, _, _, when in found if what == "move"}
    assert moved == {(1, "if asked for"), (2, "if asked for")}
