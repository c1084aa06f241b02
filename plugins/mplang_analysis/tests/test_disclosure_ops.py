"""Disclosures by ops of plugins: unknown ones, shares, ciphertexts; and by the demo."""

from __future__ import annotations

import importlib.util
import pathlib
import re

import pytest
from disclosure_rows import SCALAR, at, rows, trace
from mplang_analysis import Words, words

import mplang_core as mp
from mplang_core import analysis
from mplang_core.ext import VerifyError

ROOT = pathlib.Path(__file__).parents[3]


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
        ("reveal", None, 1, "plain", (0, 1), (0,), "once"),
        ("move", 0, 1, "plain", (0, 1), (0,), "any number of times"),
        ("reveal", None, 1, "plain", (0, 1), (0,), "once"),
        ("result", 1, "host", "plain", (0, 1), (0, 1), "once"),
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
        ("plain", (0,)),  # a number may be out of range, and make_shares fail
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
        ("move", 0, 1, "ciphertext", (0,), (0,)),
        ("reveal", None, 1, "plain", (0,), (0,)),
        ("result", 1, "host", "plain", (0,), (0,)),
        ("failure", 0, "everyone", "plain", (0,), (0,)),
        ("failure", 1, "everyone", "plain", (0,), (0,)),
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
        ("move", 0, 1, "ciphertext", (0, 1), (0,), "once"),
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
    written = re.findall(r"^\| (?:move|reveal|result|failure|change) \|.*$", text, re.MULTILINE)
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
    (row,) = [row for row in new if row.form == "plain" and row.what != "failure"]
    assert (row.what, row.sender, row.receiver, row.discloses) == ("move", 1, 0, (1,))
    assert str(row.type) == "f32[455]"
    assert row.line == "vertical_lr.py:87"


def test_messages_to_parties_beyond_those_of_a_pcall():
    program = mp.parse("""
        program "gossip" on {0, 1, 2} (%0: i64[]@{0, 1}) {
          %2 = simp.pcall_static(%0) {parties = {0, 1}} do (%1: i64[]) {
            %3 = opaque.gossip(%1) : i64[] at "here.py:3"
            return %3
          } : i64[]@{0, 1}
          return %2
        }
    """)
    told = {row[1:3] for row in rows(program) if row[0] == "move"}
    assert told >= {(0, 1), (0, 2), (1, 0), (1, 2)}


RAIN = """
    program "rain" on {0, 1} (%0: i64[]@{0, 1}) {
      %2 = simp.pcall_static(%0) {parties = {0, 1}} do (%1: i64[]) {
        %3 = opaque.rain(%1) : i64[] at "here.py:3"
        return %3
      } : i64[]@{0, 1}
      return %2
    }
"""


def test_a_condition_of_messages_that_no_package_declares_is_refused():
    """No rule could name it, and the report would say it in words of nobody."""
    with pytest.raises(VerifyError, match="sent 'if it rains', which no installed package") as told:
        rows(mp.parse(RAIN))
    assert "opaque.rain at here.py:3" in str(told.value)
    assert "Words(times=…) of an entry point of mplang.words" in str(told.value)


def test_a_condition_that_a_package_declares_is_told(monkeypatch):
    rain = Words(times={"if it rains": "on rainy days"})
    monkeypatch.setattr(words, "installed", lambda: [("weather", rain)])
    assert ("move", 0, 1, "plain", (0,), (0,), "if it rains") in rows(mp.parse(RAIN))
    assert "on rainy days" in str(analysis.disclosure(mp.parse(RAIN)))


@pytest.mark.parametrize("op", ["silent", "silent_copy"])
def test_an_output_at_a_party_that_gets_no_message_is_taken_to_tell_all(op):
    """The types of such an op contradict what it says of its messages."""
    program = mp.parse(f"""
        program "told" on {{0, 1, 2}} (%0: i64[]@{{1}}) {{
          %1 = opaque.{op}(%0) : i64[]@{{0, 1, 2}} at "here.py:3"
          return %1
        }}
    """)
    found = rows(program, results=True)
    assert {row[1:6] for row in found if row[0] == "reveal"} == {
        (None, rank, "plain", (1,), (1,)) for rank in (0, 2)
    }
    assert ("result", 0, "host", "plain", (1,), (1,), "once") in found
    assert "Nobody learns anything" not in str(mp.analysis.disclosure(program))
