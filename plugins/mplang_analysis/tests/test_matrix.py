"""The matrix of who learns what: it says what the sentences say, and fits where it is shown."""

from __future__ import annotations

import io
import itertools
import re

import pytest
from drawings import SVG, assert_drawn_apart, roots
from mplang_analysis.html_page import ALERT
from mplang_analysis.text_cells import width
from rich.console import Console
from shown_programs import HOSTILE, random_table, row, shown, table

NOTHING = ("its own", "nothing", "nothing else")


@pytest.fixture(params=shown())
def found(request):
    return shown()[request.param]


def cells(found):
    """Return the cells of a matrix by owner and learner."""
    matrix = found.matrix()
    return {
        (owner, learner): text
        for owner, texts in zip(matrix.owners, matrix.cells, strict=True)
        for names, text in zip(matrix.learners, texts, strict=True)
        for learner in names
    }


def test_a_cell_says_what_somebody_learns_of_whose_data():
    found = table(
        row(payload="f32[15]"), row(payload="i64[]"), row("result", 1, "host", inputs=(0, 1)),
        row("failure", 0, "everyone", when="if an op fails"), row("move", 2, 1, inputs=(2,)),
        row(receiver=2, form="share", discloses=()),
    )  # fmt: skip
    assert cells(found) == {
        ("bank", "bank"): "its own",
        ("bank", "shop"): "15 numbers, and 1 number",
        ("bank", "clinic"): "nothing else",
        ("bank", "the host"): "1 number",
        ("bank", "everyone"): "whether an op of bank fails",
        ("shop", "bank"): "nothing",
        ("shop", "shop"): "its own",
        ("shop", "clinic"): "nothing",
        ("shop", "the host"): "1 number",
        ("shop", "everyone"): "nothing",
        ("clinic", "bank"): "nothing",
        ("clinic", "shop"): "1 number",
        ("clinic", "clinic"): "its own",
        ("clinic", "the host"): "nothing",
        ("clinic", "everyone"): "nothing",
    }


@pytest.mark.parametrize("seed", range(100))
def test_who_learns_nothing_in_it_learns_nothing_by_any_row(seed):
    check_rows(random_table(seed))


def test_shown_tables_and_their_matrices_agree(found):
    check_rows(found)


def check_rows(found):
    texts = cells(found)
    told = {(owner, r.receiver) for r in found.rows for owner in r.discloses}
    for owner, learner in itertools.product(found.parties, [*found.parties, "host"]):
        text = texts.get((found.name_of(owner), found.name_of(learner)))
        if text is None:
            assert (owner, learner) not in told, "of whom there is no data"
        elif text != "its own":
            assert (text not in NOTHING) == ((owner, learner) in told)
            assert (text == "nothing") <= ((owner, "everyone") not in told)


def test_it_says_the_amounts_of_the_sentences():
    found = table(
        row(form="share"), row("reveal", None, 1), row("reveal", None, 1, payload="f32[3]"),
        row("match", 0, 1, line="p.py:2"), row("size", 0, 1, payload="table<>", line="p.py:3"),
        row(line="p.py:4", when="per iteration"),
    )  # fmt: skip
    said, text = " ".join(found.sentences()), cells(found)["bank", "shop"]
    assert text.split("; ") == [
        "1 number, and 3 numbers",
        "which keys it has in common with bank, and how many",
        "1 number, each time around a loop, however often",
        "the size of what bank sends it",
    ]
    for each in text.split("; "):
        assert each.partition(",")[0] in said


def test_learners_of_the_same_are_one_column():
    matrix = shown()["twelve"].matrix()
    assert len(matrix.learners) < 5
    assert sum(map(len, matrix.learners)) == 13


def test_without_data_nobody_learns_anything():
    assert set(cells(shown()["one"]).values()) <= set(NOTHING)


# -- in characters


@pytest.mark.parametrize("columns", [100, 80, 60, 40])
def test_it_fits_a_terminal(found, columns):
    lines = found.matrix().text(columns).split("\n")
    assert max(map(width, lines[1:])) <= columns
    assert "".join(lines).isprintable()
    console = Console(width=columns, record=True, force_terminal=True, file=io.StringIO())
    console.print(found.matrix())
    shown = console.export_text().rstrip("\n").split("\n")[-len(lines) + 1 :]
    assert [each.rstrip() for each in shown] == lines[1:]


def test_a_column_for_each_learner_where_they_fit_and_else_a_list():
    found = table(row(payload="f32[15]"), row("result", 1, "host", inputs=(0,)))
    assert found.matrix().text(80).split("\n")[1:] == [
        "             bank     shop        clinic   the host",
        "bank's data  its own  15 numbers  nothing  1 number",
    ]
    assert found.matrix().text(40).split("\n")[1:] == [
        "bank's data",
        "  bank: its own",
        "  shop: 15 numbers",
        "  clinic: nothing",
        "  the host: 1 number",
    ]


# -- as SVG


def test_nothing_overlaps_and_all_is_inside(found):
    for root in roots(found.matrix()):
        assert_drawn_apart(root)


def test_what_is_learned_is_red_and_bold_and_has_a_bar(found):
    matrix = found.matrix()
    alerts = [text for texts in matrix.cells for text in texts if matrix.alert(text)]
    for root in roots(matrix):
        red = [each for each in root.findall(f"{SVG}text") if each.get("fill") == ALERT]
        assert {each.get("font-weight") for each in red} <= {"bold"}
        words = re.sub(r"\s", "", "".join(each.text for each in red))
        assert all(re.sub(r"\s", "", text) in words for text in alerts)
        bars = [each for each in root.findall(f"{SVG}rect") if each.get("width") == "4"]
        assert len(bars) == len(alerts)


def test_hostile_names_are_no_markup():
    svg = table(row()).named(["bank", HOSTILE, "clinic"]).matrix().svg()
    assert "<img" not in svg
    assert "\x1b" not in svg
