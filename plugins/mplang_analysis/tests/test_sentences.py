"""What a table of disclosures says in sentences."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mplang_analysis import Disclosure
from mplang_analysis.party_names import read_names
from mplang_analysis.phrases import MOST_COLUMNS, amount, amounts
from mplang_analysis.sentences import EXCEPTIONS
from shown_programs import HOSTILE, exchange, hostile, random_table, row, shown, table
from test_disclosure_ops import ROOT, demo

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import ConfigError

PROGRAM = """
program "p" on {0, 1} (%0: f32[3]@{0}) {
  %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : f32[3]@{1} at "p.py:7"
  return
}"""

DEMO = [
    "hospital_b learns: 114 numbers made of hospital_a's data and its own (vertical_lr.py:92).",
    "The host may fetch: 1 number made of hospital_a's and hospital_b's data (vertical_lr.py:93).",
    "Only hospital_b and the host learn anything of hospital_a's data, except whether an op fails.",
    "Only the host learns anything of hospital_b's data, except whether an op fails.",
    "hospital_a learns nothing of anyone else's data, except whether an op fails.",
    "Everyone learns: whether an op of hospital_a fails, which depends on hospital_a's data "
    "(vertical_lr.py:85 and 1 other line).",
    "Everyone learns: whether an op of hospital_b fails, which depends on hospital_b's data "
    "(vertical_lr.py:85 and 2 other lines).",
    "hospital_a can change what hospital_b gets, unnoticed: CHEETAH is semi-honest "
    "(vertical_lr.py:92).",
    "hospital_a and hospital_b can each change what the host gets, unnoticed: CHEETAH is "
    "semi-honest (vertical_lr.py:93).",
]


def said(*rows, **more):
    return table(*rows, **more).sentences()


# -- the demo


@pytest.mark.needs("spu", "jax")
def test_the_demo_says_what_a_director_asks():
    pytest.importorskip("sklearn")
    assert analysis.disclosure(demo(), names=["hospital_a", "hospital_b"]).sentences() == DEMO


def test_the_document_has_the_sentences_of_the_demo():
    text = (ROOT / "docs/disclosure.md").read_text(encoding="utf-8")
    written = " ".join(re.findall(r"^> (.*)\n", text, re.MULTILINE))
    assert [re.sub(r"\s+", " ", each).strip() for each in written.split("- ")[1:]] == DEMO


# -- what the program itself tells everyone


def program_of(fn, size=2):
    return mp.compile(fn, cluster_spec=mp.ClusterSpec.simple(size)).program


def literals_of(fn, size=2):
    found = analysis.disclosure(program_of(fn, size), names=["bank", "shop", "clinic"][:size])
    return [each for each in found.sentences() if "in the program itself" in each]


def test_literals_of_a_party_are_told_as_everyone_reads_them():
    def added():
        a, b = mp.put("P0", [1, 2]), mp.put("P1", np.ones((3, 2)))
        return a, b

    [told] = literals_of(added)
    assert re.fullmatch(
        r"Everyone reads in the program itself: 2 numbers for bank \(test_sentences.py:\d+\) and "
        r"3 × 2 numbers for shop \(test_sentences.py:\d+\)\.",
        told,
    )


def test_a_program_alone_tells_its_literals_after_who_learns_nothing():
    told = analysis.disclosure(program_of(lambda: mp.put("P0", 7))).sentences()
    assert told[0] == "Nobody learns anything of anyone else's data."
    assert told[1].startswith("Everyone reads in the program itself: 1 number for party 0")


@pytest.mark.needs("spu")
def test_literals_that_are_sealed_are_told():
    def sealed():
        return mp.reveal(mp.put("SP0", [4, 5]), to="P1")

    [told] = literals_of(sealed, 3)
    assert "2 numbers to be sealed (test_sentences.py:" in told


def test_of_many_literals_the_number_is_told():
    [told] = literals_of(lambda: [mp.put("P0", [i + 1]) for i in range(6)])
    assert told.count("numbers for bank") + told.count("number for bank") == 4
    assert told.endswith("and 2 more.")


@pytest.mark.needs("jax")
def test_literals_in_loops_are_told():
    def turn(i):
        mp.put("P1", [9])
        return mp.simp.pcall_static((0, 1), lambda x: x + 1, i)

    def turns():
        less = lambda i: mp.simp.pcall_static((0, 1), lambda x: x < 3, i)  # noqa: E731
        return mp.while_loop(less, turn, mp.constant(0))

    [told] = literals_of(turns)
    assert "1 number for shop" in told


@pytest.mark.parametrize(
    "fn",
    [lambda: mp.constant([1, 2]), lambda: mp.put("P0", np.zeros(3)), lambda: None],
    ids=["public", "zeros", "none"],
)
def test_literals_that_are_nobodys_data_are_not_told(fn):
    assert not literals_of(fn)


# -- a sentence per receiver and line


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([row()], "shop learns: 1 number made of bank's data (p.py:1)."),
        ([row(line="")], "shop learns: 1 number made of bank's data."),
        ([row(inputs=(0, 1))], "shop learns: 1 number made of bank's data and its own (p.py:1)."),
        (
            [row(inputs=(0, 1, 2), discloses=(0,))],
            "shop learns: 1 number made of bank's data, its own and what it knew of clinic's data "
            "(p.py:1).",
        ),
        (
            [row(when="per iteration")],
            "shop learns: 1 number made of bank's data, each time around a loop, however often "
            "(p.py:1).",
        ),
        (
            [row(when="in a branch")],
            "shop learns: 1 number made of bank's data, in a branch (p.py:1).",
        ),
        (
            [row(), row(payload="f32[4, 2]"), row()],
            "shop learns: 2 times 1 number, and 4 × 2 numbers made of bank's data (p.py:1).",
        ),
        (
            [row(), row("move", 2, inputs=(2,))],
            "shop learns: 1 number made of bank's data; 1 number made of clinic's data (p.py:1).",
        ),
        (
            [row(), row(receiver=2)],
            "shop and clinic each learn: 1 number made of bank's data (p.py:1).",
        ),
        (
            [row("result", 1, "host", inputs=(0, 1))],
            "The host may fetch: 1 number made of bank's and shop's data (p.py:1).",
        ),
        (
            [row("result", 1, "host"), row("move", 1, "host")],
            "The host learns: 2 times 1 number made of bank's data (p.py:1).",
        ),
        (
            [row("predicate", payload="bool[]"), row("predicate", 2, payload="bool[]")],
            "shop learns: which way a condition or a loop goes, which depends on bank's data "
            "(p.py:1).",
        ),
        (
            [row("index", payload="bool[]")],
            "shop learns: which party is asked for a value, which depends on bank's data (p.py:1).",
        ),
        (
            [row(form="share"), row("move", 2, form="share")],
            "shop learns: 2 shares of 1 number, which it can put together, made of bank's data "
            "(p.py:1).",
        ),
        (
            [row(form="ciphertext")],
            "shop learns: 1 ciphertext of 1 number, which it can decrypt, made of bank's data "
            "(p.py:1).",
        ),
        (
            [row("novel", form="handle", payload="odd<3>")],
            'shop learns: 1 handle of a value of type "odd<3>", which it can open, made of bank\'s '
            "data (p.py:1).",
        ),
        ([row("novel")], "shop learns: 1 number (novel) made of bank's data (p.py:1)."),
        (
            [row("reveal", None, "everyone")],
            "Everyone learns: 1 number made of bank's data (p.py:1).",
        ),
    ],
)  # fmt: skip
def test_each_kind_of_row_has_its_words(rows, sentence):
    assert said(*rows)[0] == sentence


def test_shares_of_what_is_revealed_have_no_words_of_their_own_but_others_have():
    share, reveal = row(form="share"), row("reveal", None)
    plain = "shop learns: 1 number made of bank's data (p.py:1)."
    assert said(share, row("move", 2, form="share"), reveal)[0] == plain
    more = "1 number made of bank's data (p.py:1)"
    for extra in (
        row(form="share", payload="f32[2]"),  # another value
        row(form="share", when="per iteration"),
        row("move", 2, form="share", inputs=(0, 2)),  # whose data is in it, too
    ):
        assert "which it can put together" in said(share, extra, reveal)[0]
    assert "2 shares of 1 number" in said(share, share, reveal)[0]  # of two, one is revealed
    assert "1 share of" in said(share, row())[0]  # a plain message is not a reveal of it
    assert more in said(share, share, reveal)[0]


# -- who learns nothing


def test_a_program_that_discloses_nothing_says_so():
    nothing = ["Nobody learns anything of anyone else's data."]
    assert said() == nothing
    assert said(row(form="share", discloses=())) == nothing


def test_it_says_who_learns_nothing_and_who_alone():
    assert said(row(inputs=(0, 2), discloses=(0,)))[1:] == [
        "Only shop learns anything of bank's data.",
        "Nobody else learns anything of clinic's data.",
        "bank and clinic learn nothing of anyone else's data.",
    ]
    three = row("result", 1, "host"), row("move", 0, 2), row("move", 1, 0, inputs=(1,))
    assert said(*three)[3:] == [
        "Only clinic and the host learn anything of bank's data.",
        "Only bank learns anything of shop's data.",
        "shop learns nothing of anyone else's data.",
    ]  # fmt: skip


def test_nobody_is_told_to_learn_nothing_of_what_everyone_learns():
    told = " ".join(said(row("reveal", None, "everyone")))
    assert "nothing" not in told
    assert "Only" not in told
    assert "Nobody" not in told


def test_failures_are_told_last_and_are_an_exception_to_what_nobody_learns():
    lines = ("p.py:9", "p.py:9", "p.py:11")
    failure = row("failure", 0, "everyone", when="if an op fails", line="p.py:9", lines=lines)
    fails = (
        "Everyone learns: whether an op of bank fails, which depends on bank's data (p.py:9 and 1 "
        "other line)."
    )
    assert said(failure) == [
        "Nobody learns anything of anyone else's data, except whether an op fails.",
        fails,
    ]
    assert said(failure, row(), row("move", 2, inputs=(2,))) == [
        "shop learns: 1 number made of bank's data; 1 number made of clinic's data (p.py:1).",
        "Only shop learns anything of bank's data, except whether an op fails.",
        "Only shop learns anything of clinic's data.",
        "bank and clinic learn nothing of anyone else's data, except whether an op fails.",
        fails,
    ]


def test_sizes_and_durations_are_exceptions_and_nobody_learns_nothing_by_them():
    size = row("size", payload="table<>", line="p.py:3")
    assert said(size) == [
        "Nobody else learns anything of bank's data, except by its size.",
        "bank, shop and clinic learn nothing of anyone else's data, except by its size.",
        "shop learns: the size of what bank sends it, which depends on bank's data (p.py:3).",
    ]
    long = row("duration", 0, "everyone", payload="f64[]", line="p.py:5")
    assert said(long, row())[1:] == [
        "Only shop learns anything of bank's data, except by its duration.",
        "bank and clinic learn nothing of anyone else's data, except by its duration.",
        "Everyone learns: how long ops of bank take, which depends on bank's data (p.py:5).",
    ]
    together = (
        row("duration", None, "everyone", payload="f64[]"),
        row("size", None, payload="i8[9]"),
    )
    assert said(*together)[-2:] == [
        "Everyone learns: how often a loop turns, or which branch is taken, by the time, which "
        "depends on bank's data (p.py:1).",
        "shop learns: the number and sizes of messages, which depends on bank's data (p.py:1).",
    ]


def change(sender, receiver, line="p.py:1", protocol="ABY3", **more):
    fields = {"inputs": (0,), "discloses": (), "when": "if it deviates", "protocol": protocol}
    return row("change", sender, receiver, line=line, **{**fields, **more})


@pytest.mark.parametrize(
    ("rows", "sentences"),
    [
        (
            [change(1, 0), change(2, 0)],
            ["shop and clinic can each change what bank gets, unnoticed: ABY3 is semi-honest "
             "(p.py:1)."],
        ),
        (
            [change(1, 0), change(1, 2)],
            ["shop can change what bank and clinic get, unnoticed: ABY3 is semi-honest (p.py:1)."],
        ),
        (
            [change(1, 0), change(0, 1)],
            ["Each of bank and shop can change what the other one gets, unnoticed: ABY3 is "
             "semi-honest (p.py:1)."],
        ),
        (
            [change(b, a) for a in range(3) for b in range(3) if a != b],
            ["Each of bank, shop and clinic can change what the others get, unnoticed: ABY3 is "
             "semi-honest (p.py:1)."],
        ),
        (
            [change(1, 0), change(0, 1), *(change(i, who) for who in (2, "host") for i in (0, 1))],
            ["Each of bank and shop can change what the other one gets, unnoticed: ABY3 is "
             "semi-honest (p.py:1).",
             "bank and shop can each change what clinic and the host get, unnoticed: ABY3 is "
             "semi-honest (p.py:1)."],
        ),
        (
            [change(1, 0), change(0, "host"), change(1, "host")],
            ["shop can change what bank gets, unnoticed: ABY3 is semi-honest (p.py:1).",
             "bank and shop can each change what the host gets, unnoticed: ABY3 is semi-honest "
             "(p.py:1)."],
        ),
        (
            [change(1, 0), change(1, 0, payload="i8[3]", lines=("p.py:4", "p.py:5"))],
            ["shop can change what bank gets, unnoticed: ABY3 is semi-honest (p.py:1 and 2 other "
             "lines)."],
        ),
        (
            [change(1, 0), change(1, 2, line="p.py:3"), change(2, 0, protocol="x! y")],
            ["shop can change what bank gets, unnoticed: ABY3 is semi-honest (p.py:1).",
             "shop can change what clinic gets, unnoticed: ABY3 is semi-honest (p.py:3).",
             'clinic can change what bank gets, unnoticed: "x! y" is semi-honest (p.py:1).'],
        ),
        (
            [change(None, 0, protocol=""), change(None, 1, protocol="", line="")],
            ["Every other party can change what bank gets, unnoticed (p.py:1).",
             "Every other party can change what shop gets, unnoticed."],
        ),
    ],
)  # fmt: skip
def test_who_can_change_what_whom_gets_is_told_last(rows, sentences):
    nothing = "Nobody learns anything of anyone else's data."
    assert said(*rows) == [nothing, *sentences]  # nobody learns by it
    assert said(*rows, row())[-len(sentences) :] == sentences


@pytest.mark.parametrize("name", shown())
def test_they_claim_no_more_safety_than_the_rows(name):
    check_safe(shown()[name])


@pytest.mark.parametrize("seed", range(300))
def test_they_claim_no_more_safety_than_random_rows(seed):
    check_safe(random_table(seed))


def check_safe(found):
    """Each row that discloses has a sentence, and no sentence about nothing contradicts one."""
    text = found.sentences()
    for each in found.rows:
        for owner in each.discloses:
            receiver, data = found.name_of(each.receiver), found.name_of(owner)
            line = each.line.rpartition(":")[2]
            assert [
                s for s in text
                if re.search(r"\b(learns|learn|may fetch): ", s) and f":{line}" in s
                and receiver.lower() in s.partition(": ")[0].lower() and f"{data}'s" in s
            ]  # fmt: skip
            about = [s for s in text if re.match("Nobody|Only", s) and re.search(told_of(data), s)]
            idle = [s for s in text if "nothing of anyone" in s and receiver in s]
            nobody = [s for s in text if s.startswith("Nobody learns")]
            if each.what in EXCEPTIONS:
                told = f"except .*{EXCEPTIONS[each.what]}"
                assert all(re.search(told, s) for s in about + idle + nobody)
                assert each.what == "failure" or not nobody
            else:
                assert all(s.startswith("Only") and receiver in s for s in about)
                assert not idle + nobody


def told_of(data):
    return rf"anything of .*{re.escape(data)}'s"


def test_the_check_of_safety_finds_a_row_that_is_left_out(monkeypatch):
    """Each sentence of a table is needed by a row."""
    found = table(row(), row("result", 1, "host"), row("failure", 2, "everyone", inputs=(2,)))
    check_safe(found)
    whole = found.sentences()
    for left_out in whole[:2] + whole[-1:]:
        told = [s for s in whole if s != left_out]
        monkeypatch.setattr(Disclosure, "sentences", lambda self, told=told: told)
        with pytest.raises(AssertionError):
            check_safe(found)
    for false in ("Nobody else learns anything of bank's data.", "shop learns nothing of anyone"):
        monkeypatch.setattr(Disclosure, "sentences", lambda self, false=false: [*whole, false])
        with pytest.raises(AssertionError):
            check_safe(found)


# -- words for types


def test_types_are_words():
    assert amount("f32[0]") == "0 numbers"
    assert amount("f32[1]") == "1 number"
    assert amount("c64[2]") == "2 complex numbers"
    assert amount("bool[]") == "1 yes-or-no answer"
    assert amount("bool[2, 2]") == "2 × 2 yes-or-no answers"
    assert amount("table<>") == "a table"
    many = mp.TableType(tuple((f"c{i}", "int64") for i in range(MOST_COLUMNS + 3)))
    assert amount(str(many)).endswith(f"c{MOST_COLUMNS - 1}, and 3 more")
    assert amount("no type at all]") == 'a value of type "no type at all]"'
    assert amounts(["bool[]", "i8[2]", "bool[]"]) == "2 times 1 yes-or-no answer, and 2 numbers"


# -- names


def test_names_come_from_the_cluster_of_a_compiled_function():
    def program(x):
        return mp.put("P1", x)

    spec = mp.ClusterSpec.from_dict({"nodes": [{"name": "bank"}, {"name": "shop"}]})
    given = mp.MPType(mp.TensorType("f32"), mp.Mask.of(0))
    compiled = mp.compile(program, given, cluster_spec=spec)
    assert analysis.disclosure(compiled).names == ("bank", "shop")
    assert analysis.disclosure(compiled.program).names == ("party 0", "party 1")
    assert analysis.disclosure(compiled.program, names={1: "x"}).names == ("party 0", "x")
    assert analysis.disclosure(compiled, names=["a"]).names == ("a", "party 1")
    assert analysis.disclosure(compiled).to_dict()["names"] == ["bank", "shop"]


@pytest.mark.parametrize("names", ["bank", [b"bank"], {0: 7}])
def test_names_are_texts_by_rank(names):
    with pytest.raises(ConfigError, match="names of parties are texts by rank"):
        analysis.disclosure(mp.parse(PROGRAM), names=names)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bank", "bank"), ("Hôpital-1.fr", "Hôpital-1.fr"), ("", "party 0"),
        ("host", '"host" (party 0)'), ("The host", '"The host" (party 0)'),
        ("Nobody", '"Nobody" (party 0)'), ("everyone", '"everyone" (party 0)'),
        ("party_1", '"party_1" (party 0)'), ("SHOP", '"SHOP" (party 0)'),
        ('x" learns', '"x\\x22 learns" (party 0)'), ("a\nb", '"a\\nb" (party 0)'),
        ("\u202ebank", '"\\u202ebank" (party 0)'),
    ],
)  # fmt: skip
def test_a_name_stands_for_its_party_only(name, told):
    assert read_names([name, "shop"], [0, 1])[0] == told


def test_hostile_texts_are_in_quotes_and_escaped():
    found = analysis.disclosure(hostile(), names=["bank", HOSTILE])
    for text in (*found.sentences(), str(found)):
        assert all(mark.isprintable() or mark == "\n" for mark in text)
    first = found.sentences()[0]
    assert first.startswith('"x\\x1b[31m learns nothing. <img src=x>\\u202e" (party 1) learns: ')
    assert first.endswith('("y.py:3). Nobody learns anything. (<img src=x>\\x1b[2J.py":1).')


# -- where they are shown


def test_they_are_above_the_table_in_text_html_and_json():
    found = analysis.disclosure(exchange(), names=["bank", "shop", "<clinic>"])
    first = found.sentences()[0]
    text, html = str(found), found._repr_html_()
    assert text.index(first) < text.index("line by line") < text.index("What exchange discloses")
    shown = first.replace('"', "&quot;").replace("'", "&#x27;")
    shown = shown.replace("<", "&lt;").replace(">", "&gt;")
    assert html.index(shown) < html.index("<svg") < html.index("<table")
    assert found.to_dict()["sentences"] == found.sentences()


def test_ipython_shows_text_in_a_terminal():
    class Printer:
        shown = ""

        def text(self, text):
            self.shown += text

    printer, found = Printer(), analysis.disclosure(mp.parse(PROGRAM))
    found._repr_pretty_(printer, False)
    assert printer.shown == repr(found)
    assert str(found).startswith(printer.shown.partition("\n\n")[0])
