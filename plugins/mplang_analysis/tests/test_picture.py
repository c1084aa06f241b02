"""The picture of a program: each row is in it, nothing overlaps, nothing is loaded."""

from __future__ import annotations

import io
import itertools
import re
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser

import pytest
from mplang_analysis.html_page import ALERT
from mplang_analysis.svg import DARK, PALE
from mplang_analysis.text_cells import cut, width, wrap
from rich.console import Console
from shown_programs import exchange, hostile, random_table, row, shown, table
from test_disclosure_ops import demo

import mplang_core as mp
from mplang_core import analysis

DEMO = pytest.param("demo", marks=pytest.mark.needs("spu", "jax"))
TAGS = "bdi html head meta title style body section p b ul li table caption thead tbody tr th td"
TAGS += " div span details summary"
SHAPES = "svg rect text line circle polygon"
SVG = "{http://www.w3.org/2000/svg}"


def found_for(name):
    if name == "demo":
        pytest.importorskip("sklearn")
        return analysis.disclosure(demo(), names=["hospital_a", "hospital_b"])
    return shown()[name]


@pytest.fixture(params=[*shown(), DEMO])
def found(request):
    return found_for(request.param)


# -- signs are rows


def test_each_row_is_in_one_sign_and_each_disclosure_is_marked(found):
    check_complete(found)


@pytest.mark.parametrize("seed", range(100))
def test_each_random_row_is_in_one_sign(seed):
    check_complete(random_table(seed))


def check_complete(found):
    marks, host = found.picture().marks, len(found.parties)
    assert sorted(i for mark in marks for i in mark.rows) == list(range(len(found.rows)))
    for mark in marks:
        lanes, told, shares = set(), set(), set()
        for each in (found.rows[i] for i in mark.rows):
            assert mark.line == each.line
            for owner in each.discloses:
                assert f"{found.name_of(owner)}'s" in mark.text
            everyone = {*found.parties, host} - {each.sender}
            to = {"host": {host}, "everyone": everyone}.get(each.receiver, {each.receiver})
            lanes |= to
            told |= to if each.discloses else set()
            if mark.kind == "open" and each.sender is not None:
                assert each.form == "share"
                shares.add(each.sender)
            else:
                assert mark.dashed == (each.form != "plain")
                assert mark.sender == each.sender
        assert not mark.rows or lanes == set(mark.lanes)
        assert shares == set(mark.shares)
        assert mark.alert == bool(told) == ("DISCLOSES" in mark.text)
        assert set(mark.own) == (lanes - told if mark.alert else set())
        assert bool(mark.rows) == (mark.kind != "run")


def test_what_each_party_runs_is_at_its_line():
    marks = shown()["exchange"].picture().marks
    assert [mark.text for mark in marks if mark.line == ""] == ["1 input each"]
    runs = {(mark.lanes, mark.text) for mark in marks if mark.kind == "run"}
    assert ((0, 1, 2), "while_loop") in runs
    assert ((0,), "toy.scale (per iteration)") in runs
    assert ((1,), "toy.less") in runs


@pytest.mark.needs("spu", "jax")
def test_equal_ops_of_a_line_are_counted():
    (epochs,) = [m for m in found_for("demo").picture().marks if m.line == "vertical_lr.py:90"]
    assert (epochs.text, epochs.lanes) == ("spu.run_jax ×2", (0, 1))


def test_equal_rows_to_several_receivers_are_one_sign():
    same = [row(), row(), row(receiver=2), row(receiver=2), row("move", 2, inputs=(2,))]
    one, other = table(*same).picture().marks
    assert (one.sender, one.lanes, one.rows) == (0, (1, 2), (0, 1, 2, 3))
    assert one.text == "DISCLOSES bank's data: 2 times 1 number in plain each"
    assert (other.sender, other.lanes, other.rows) == (2, (1,), (4,))


def test_a_reveal_is_one_sign_with_its_shares():
    """Of a value that three members of an SPU put together, of which one owns its data."""
    shares = [row(sender=a, receiver=b, form="share") for a in range(3) for b in {0, 1, 2} - {a}]
    plain = [row("reveal", None, receiver) for receiver in range(3)]
    (mark,) = table(*shares, *plain).picture().marks
    assert (mark.kind, mark.lanes, mark.shares, mark.own) == ("open", (0, 1, 2), (0, 1, 2), (0,))
    assert mark.text == "DISCLOSES bank's data: reveals 1 number in plain each"


def test_a_share_beyond_what_is_revealed_is_a_sign_of_its_own():
    found = table(row(form="share"), row(form="share"), row("reveal", None, 1))
    sent, opened = found.picture().marks
    assert (sent.rows, opened.rows, opened.shares) == ((0, 1), (2,), ())


def test_lines_have_the_text_of_the_program():
    picture = analysis.disclosure(exchange(), names=["bank", "shop", "clinic"]).picture()
    heading = next(picture.heading(m.line) for m in picture.marks if m.text == "while_loop")
    assert heading.endswith(" “total = mp.while_loop(less, step, x)”")
    assert heading in picture.text()
    assert heading in picture.svg()


def test_lines_that_only_rows_have_come_after_those_before_them():
    rows = [row(line=line) for line in ("z.py:9", "p.py:7", "y.py:8", "z.py:9")]
    program = mp.parse("""
        program "p" on {0, 1} (%0: f32[3]@{0}) {
          %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : f32[3]@{1} at "p.py:7"
          return
        }""")
    found = analysis.Disclosure("p", "", (0, 1), tuple(rows), (), subject=program)
    lines = [line for line, _ in itertools.groupby(m.line for m in found.picture().marks)]
    assert lines == ["", "z.py:9", "p.py:7", "y.py:8"]


def test_a_table_without_its_program_is_drawn_from_its_rows():
    found = shown()["exchange"]
    bare = analysis.Disclosure("p", "", found.parties, found.rows, ())
    drawn, whole = bare.picture().marks, found.picture().marks
    assert Counter(i for m in drawn for i in m.rows) == Counter(i for m in whole for i in m.rows)


# -- in characters


@pytest.mark.parametrize("columns", [100, 80, 60, 40])
def test_it_fits_a_terminal(found, columns):
    lines = found.picture().text(columns).split("\n")
    assert max(map(width, lines[1:])) <= columns
    assert "".join(lines).isprintable()


def test_the_lanes_show_from_whom_to_whom():
    found = table(
        row(receiver=2), row("move", 2, 1, inputs=(2,), form="share", discloses=()),
        row("move", 1, 0, inputs=()), row("move", 1, 2, inputs=()), row("reveal", None, 2),
    )  # fmt: skip
    lanes = [line[:34].rstrip() for line in found.picture().text(90).split("\n")[1:7]]
    assert lanes == [
        "bank      shop      clinic    the",
        "p.py:1",
        "○═ plain ═┼═════════▶         │",
        "│         ◀─ share ─○         │",
        "◀─ plain ─○─────────▶         │",
        "│         │         ◆         │",
    ]


def test_rich_draws_it_in_red_as_wide_as_the_terminal():
    found = shown()["exchange"]
    for columns in (60, 100, 200):
        console = Console(width=columns, record=True, force_terminal=True, file=io.StringIO())
        console.print(found.picture())
        styled = console.export_text(styles=True, clear=False)
        assert "\x1b[1;31m" in styled
        lines = console.export_text().rstrip("\n").split("\n")
        assert lines == [x.rstrip() for x in found.picture().text(min(columns, 100)).split("\n")]


# -- as SVG


def drawn(found):
    """Return the picture as a document, and as the two elements that a page chooses from."""
    inline = ET.fromstring(f'<p xmlns="{SVG[1:-1]}">{found.picture().html()}</p>')
    return [ET.fromstring(found.picture().svg().encode()), *inline]


def boxes(root):
    """Return the boxes of texts and of shapes: left, top, right, bottom."""
    texts, shapes = [], []
    for element in root:
        at = element.attrib
        number = {name: float(text) for name, text in at.items() if re.fullmatch(r"-?[\d.]+", text)}
        match element.tag.removeprefix(SVG):
            case "text":
                x, y = number["x"], number["y"]
                texts.append((x, y - 9, x + number["textLength"], y + 2))
            case "line" if (
                number["y1"] != number["y2"] or at["stroke"] != PALE
            ):  # none between steps
                xs, ys = (sorted(number[f"{a}{i}"] for i in (1, 2)) for a in "xy")
                shapes.append((xs[0], ys[0], xs[1], ys[1]))
            case "circle":
                x, y, r = number["cx"], number["cy"], number["r"]
                shapes.append((x - r, y - r, x + r, y + r))
            case "polygon":
                points = [tuple(map(float, p.split(","))) for p in at["points"].split()]
                xs, ys = zip(*points, strict=True)
                shapes.append((min(xs), min(ys), max(xs), max(ys)))
    return texts, shapes


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_nothing_overlaps_and_all_is_inside(found):
    for root in drawn(found):
        check_boxes(root, len(found.parties) + 1)


def check_boxes(root, lanes):
    texts, shapes = boxes(root)
    _, _, right, bottom = map(float, root.get("viewBox").split())
    for left, top, far, low in texts + shapes:
        assert 0 <= left <= far <= right
        assert 0 <= top <= low <= bottom
    for a, b in itertools.combinations(texts, 2):
        assert not overlap(a, b), (a, b)
    for text, shape in itertools.product(texts, shapes):
        assert not overlap(text, shape), (text, shape)
    names = [e for e in root.findall(f"{SVG}text") if e.get("fill") == DARK]
    frames = root.findall(f"{SVG}rect")
    assert len(names) == len(frames) == lanes
    for name, frame in zip(names, frames, strict=True):
        x, y, wide, high = (float(frame.get(n)) for n in ("x", "y", "width", "height"))
        left, line = float(name.get("x")), float(name.get("y"))
        assert x < left
        assert left + float(name.get("textLength")) < x + wide
        assert y < line - 9
        assert line + 2 < y + high


def test_arrows_point_from_lane_to_lane(found):
    """The tips of an arrow are at the lanes of its receivers, its circle at that of its sender."""
    for root in drawn(found):
        check_arrows(root, found.picture().marks, len(found.parties) + 1)


def check_arrows(root, marks, count):
    upright = [e for e in root.findall(f"{SVG}line") if e.get("x1") == e.get("x2")]
    lanes = sorted({float(e.get("x1")) for e in upright})
    assert len(lanes) == count
    tips = [p.get("points").split() for p in root.findall(f"{SVG}polygon")]
    drawn = Counter(
        (round(float(points[0].split(",")[0])), len(points)) for points in tips if len(points) == 3
    )
    told = Counter(
        (round(lanes[lane]), 3) for mark in marks if mark.kind == "send" for lane in mark.lanes
    )
    assert drawn == told
    hollow = [c for c in root.findall(f"{SVG}circle") if c.get("fill") == "none"]
    senders = [round(float(c.get("cx"))) for c in hollow]
    from_whom = [[m.sender] if m.kind == "send" else set(m.shares) - set(m.lanes) for m in marks]
    assert senders == [round(lanes[lane]) for each in from_whom for lane in sorted(each)]


def test_disclosures_are_red_in_words(found):
    alerts = [mark for mark in found.picture().marks if mark.alert]
    for root in drawn(found):
        red = [e.text for e in root.findall(f"{SVG}text") if e.get("fill") == ALERT]
        assert " ".join(red).count("DISCLOSES") == len(alerts)


class Tags(HTMLParser):
    """Collects tags and attributes; elements that are not closed are an error."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.names, self.values = [], Counter(), set(), []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.names |= {name for name, _ in attrs}
        self.values += [value or "" for _, value in attrs]

    def handle_data(self, data):
        if self.open[-1:] == ["style"]:
            self.values.append(data)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_pages_parse_and_load_nothing(found):
    for page in (found.to_html(), found._repr_html_(), found.picture()._repr_html_()):
        tags = Tags()
        tags.feed(page)
        assert not tags.open
        assert set(tags.tags) <= {*TAGS.split(), *SHAPES.split()}
        assert not {name for name in tags.names if name.startswith("on")}
        assert not tags.names & {"src", "href", "xlink:href", "style", "background"}
        assert not re.search(r"https?:|@import|url\(", " ".join(tags.values))
    assert "default-src 'none'" in found.to_html()
    assert found.to_html().count("<svg") == 4  # matrix and picture, of each one is shown


def test_hostile_texts_are_no_markup():
    svg = analysis.disclosure(hostile()).picture().svg()
    assert "<script" not in svg
    assert "<img" not in svg
    assert "&lt;script&gt;" in svg
    assert "\x1b" not in svg


# -- texts by columns


def test_wide_texts_are_measured_by_columns():
    assert width("銀行 a") == 6
    assert width("e\u0301") == 1
    assert cut("銀行銀行", 5) == "…銀行"
    assert cut("abc", 3) == "abc"
    assert wrap("銀行銀行", 5) == ["銀行", "銀行"]
    assert wrap("", 5) == [""]
