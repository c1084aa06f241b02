"""Timeline and bars of a recording: they tell what the spans do, and fit where they are shown."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from drawings import SVG, assert_drawn_apart, roots
from mplang_analysis.ext import width
from mplang_cli.cli import app
from mplang_testing import dialect
from mplang_trace import Recording, Span, SpanRecorder
from rich.console import Console
from typer.testing import CliRunner

import mplang_core as mp

X = np.arange(1000.0)


def around(x):
    doubled = mp.invoke(dialect.add, x, x)
    return mp.pshfl_s(doubled, [0, 1, 2], [2, 0, 1])


def loop(x):
    below = lambda i: mp.invoke(dialect.less, i, mp.constant(np.int64(5)))  # noqa: E731
    return mp.while_loop(below, lambda i: mp.invoke(dialect.add, i, mp.constant(np.int64(1))), x)


def recorded(*spans: Span, names=("bank", "shop")) -> Recording:
    """Return a recording of some spans, as parties tell them."""
    recording, recorder = Recording(names), SpanRecorder(None, "run")
    recorder.spans.extend(spans)
    recording.add(recorder)
    return recording


def rounds(many: int) -> Recording:
    """Return a recording of an op with many messages, as of an SPU."""
    op = Span("spu.run_jax", "op", 0, 0.0, 0.15, facts={"line": "demo.py:7"})
    sends = [
        Span("send to P1", "send", 0, i * 0.15 / many, 0.0, facts={"peer": 1, "bytes": 8})
        for i in range(many)
    ]
    return recorded(op, *sends)


@pytest.fixture
def recording(simulate, mode):
    sim = simulate(3)
    with mp.record(sim) as found:
        mp.fetch(sim, mp.evaluate(sim, around, X, mode=mode))
    return found


# -- what they tell


def test_a_lane_has_the_ops_and_messages_of_its_party(recording):
    host, *parties = recording.timeline().lanes
    assert (host.name, host.blocks[0].name) == ("the host", "around")
    assert [lane.name for lane in parties] == ["node0", "node1", "node2"]
    for lane in parties:
        assert "kit.add" in {block.name for block in lane.blocks}
        assert [size for _, size in lane.sends] == [X.nbytes]
        assert len(lane.waits) == 1
        for begin, end in [(block.begin, block.end) for block in lane.blocks]:
            assert 0 <= begin <= end <= recording.timeline().seconds


def test_a_line_has_its_text_its_seconds_and_its_bytes(recording):
    first = around.__code__.co_firstlineno
    add, shift = recording.by_line().rows
    assert (add.line, shift.line) == tuple(f"test_pictures.py:{first + i}" for i in (1, 2))
    assert add.source == "doubled = mp.invoke(dialect.add, x, x)"
    assert "kit.add" in add.ops
    assert (add.messages, shift.messages, shift.bytes) == (0, 3, 3 * X.nbytes)
    assert len(add.seconds) == len(shift.waiting) == 3
    assert min(*add.seconds, *shift.seconds) > 0
    whole = sum(s.duration for s in recording.spans if s.party == 1 and s.name == "kit.add")
    assert add.seconds[1] >= whole


def test_each_turn_of_a_loop_counts(simulate, mode):
    sim = simulate(2)
    with mp.record(sim) as found:
        mp.evaluate(sim, loop, np.int64(0), mode=mode)
    line = f"test_pictures.py:{loop.__code__.co_firstlineno + 2}"
    (row,) = [row for row in found.by_line().rows if row.line == line]
    assert row.seconds[0] > 0
    blocks = [b for b in found.timeline().lanes[-1].blocks if b.name == "kit.add"]
    assert len(blocks) == 5


def test_what_was_expected_stands_beside_what_was_measured(recording):
    _, shift = recording.by_line(link="lan").rows
    assert (shift.expected.messages, shift.expected.bytes) == (shift.messages, shift.bytes)
    text = recording.by_line("lan").bars().text()
    assert "24 kB in 3 messages\n" in text
    assert "24 kB in 3 messages expected" in text


def test_a_program_that_ran_twice_was_expected_twice(simulate):
    sim = simulate(3)
    with mp.record(sim) as found:
        for _ in range(2):
            mp.evaluate(sim, around, X)
    _, shift = found.by_line("wan").rows
    assert shift.expected.bytes == shift.bytes == 6 * X.nbytes


@pytest.mark.needs("spu", "jax")
def test_what_an_spu_was_expected_to_send_it_sends():
    def dot(a, b):
        return mp.reveal(mp.device("SP0")(lambda a, b: a @ b)(a, b), to="P0")

    cluster = mp.ClusterSpec.simple(3)
    with mp.Simulator(cluster, mode="launch") as sim:
        with mp.with_ctx(sim):
            a, b = (mp.put(f"P{i}", np.ones((50, 50), np.float32)) for i in range(2))
        mp.evaluate(sim, dot, a, b)  # what a session sets up once
        with mp.record(sim) as found:
            mp.evaluate(sim, dot, a, b)
    (row,) = [row for row in found.by_line("lan").rows if row.bytes]
    assert row.bytes == pytest.approx(row.expected.bytes, rel=0.1)


# -- that they fit


@pytest.mark.parametrize("columns", [100, 80, 40])
def test_they_fit_a_terminal(recording, columns):
    for each in (recording.timeline(), recording.by_line("lan").bars()):
        lines = each.text(columns).split("\n")
        assert max(map(width, lines)) <= columns
        console = Console(width=columns, record=True, force_terminal=True, file=io.StringIO())
        console.print(each)
        shown = console.export_text().rstrip("\n").split("\n")
        assert shown == [line.rstrip() for line in lines]


def test_all_is_inside_and_no_text_covers_another(recording):
    for each in (recording.timeline(), recording.by_line("lan").bars(), rounds(500).timeline()):
        for root in roots(each):
            assert_drawn_apart(root)


@pytest.mark.parametrize("many", [1_300, 50_000])
def test_many_messages_are_bins_and_no_carpet(many):
    timeline = rounds(many).timeline()
    for root in roots(timeline):
        bars = [t.text for t in root.iter(f"{SVG}title") if "message" in t.text]
        assert 10 < len(bars) < 300
        assert sum(int(text.split()[0]) for text in bars) == many
    assert len(timeline.svg()) < 100_000
    assert len(timeline.text().split("\n")) < 10


# -- what parties make up


HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m"


def test_times_and_texts_of_a_hostile_worker_are_shown_and_do_no_harm():
    told = [
        Span(HOSTILE, "op", 0, -1e308, 1e308, facts={"line": f"{HOSTILE}.py:7"}),
        Span(HOSTILE, "op", 1, 1e308, 1e308),
        Span("send to P9", "send", 0, 5.0, 1e308, facts={"peer": 9, "bytes": "many"}),
        Span("send to P1", "send", 0, 5.0, 0.0, facts={"peer": 1, "bytes": -5}),
        Span("mine", "program", 1, 5.0, 1e308),
    ]
    found = recorded(Span("p", "program", None, 4.0, 2.0), *told)
    assert found.timeline().seconds == 2.0
    assert [block.name for block in found.timeline().lanes[0].blocks] == ["p"]
    assert {link: use.bytes for link, use in found.links().items()} == {(0, 1): 0}
    for shown in (found._repr_html_(), found.to_html(), found.timeline().svg()):
        assert "<img" not in shown
        assert "\x1b" not in shown
    assert "\x1b" not in f"{found.timeline()}{found.by_line()}"


def test_a_recording_of_nothing_is_shown():
    found = recorded()
    assert "0 s" in found.timeline().text()
    assert found.by_line().rows == ()
    assert "<table" in found.to_html()
    assert ET.fromstring(found.timeline().svg().encode()).tag == f"{SVG}svg"


# -- files


def test_a_file_is_a_page_a_drawing_or_a_trace_by_its_end(recording, tmp_path):
    for name in ("run.html", "run.svg", "run.json"):
        recording.save(tmp_path / name)
    page = (tmp_path / "run.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)\s*=|https?:(?!//www.w3.org/2000/svg)|@import|url\(", page)
    assert "doubled = mp.invoke(dialect.add, x, x)" in page
    assert ET.fromstring((tmp_path / "run.svg").read_bytes()).tag == f"{SVG}svg"
    assert json.loads((tmp_path / "run.json").read_text())["traceEvents"]


def test_the_command_writes_a_page(tmp_path):
    source = (
        "import mplang_core as mp\nfrom mplang_testing import dialect\n\n"
        "def double(x):\n    return mp.invoke(dialect.add, x, x)\n"
    )
    (tmp_path / "prog.py").write_text(source)
    args = ["run", f"{tmp_path / 'prog.py'}:double", "--cluster", "2", "--arg", "x=3"]
    result = CliRunner().invoke(app, [*args, "--trace", str(tmp_path / "out.html")])
    assert result.exit_code == 0
    assert "a browser shows it" in result.stderr
    assert "return mp.invoke(dialect.add, x, x)" in (tmp_path / "out.html").read_text()
