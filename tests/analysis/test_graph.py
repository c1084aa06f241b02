"""Programs as drawings: what they show, and what they may not let through."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
import toy

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import ConfigError

SVG = "{http://www.w3.org/2000/svg}"

EXCHANGE = mp.parse("""
    program "exchange" on {0, 1, 2} (%0: i64[]@{0}, %1: i64[]@{1}) {
      %2 = simp.shuffle_static(%0) {routing = [[1, 0]]} : i64[]@{1} at "demo.py:2"
      %6 = simp.pcall_static(%1, %2) {parties = {1}} do (%3: i64[], %4: i64[]) {
        %5 = toy.add(%3, %4) : i64[] at "demo.py:3"
        return %5
      } : i64[]@{1} at "demo.py:3"
      %7 = simp.shuffle_static(%6) {routing = [[0, 1], [2, 1]]} : i64[]@{0, 2} at "demo.py:4"
      return %7
    }""")

HOSTILE = mp.parse(r"""
    program "<script>alert(1)</script>" on {0, 1} (%0: i64[]@{0}) {
      %2 = func.call(%0) {name = "\"]:::evil --> <b>&"} body (%1: i64[]@{0}) {
        return %1
      } : i64[]@{0} at "<script>x</script>.py:1"
      return %2
    }""")


def test_the_whole_as_text():
    assert analysis.graph(EXCHANGE).text().splitlines() == [
        "exchange on {0, 1, 2}",
        "   0 {0}        input 0 : i64[]@{0}",
        "   1 {1}        input 1 : i64[]@{1}",
        "   2 0->1       move(0) : i64[]@{1} at demo.py:2",
        "   3 {1}        toy.add(1, 2) : i64[]@{1} at demo.py:3",
        "   4 1->0, 1->2 move(3) : i64[]@{0, 2} at demo.py:4",
        "   5 {0, 2}     output 0(4)",
    ]


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (0, ["0 input 0()", "2 send to 1(0)", "4 receive from 1()", "5 output 0(4)"]),
        (
            1,
            ["1 input 1()", "2 receive from 0()", "3 toy.add(1, 2)", "4 send to 0, 2(3)"],
        ),
        (2, ["4 receive from 1()", "5 output 0(4)"]),
    ],
)
def test_what_one_party_sees(rank, expected):
    view = analysis.graph(EXCHANGE).party(rank)
    taken = {node.id: [e.source for e in view.edges if e.target == node.id] for node in view.nodes}
    found = [f"{n.id} {n.label}({', '.join(map(str, taken[n.id]))})" for n in view.nodes]
    assert found == expected
    assert [node.row for node in view.nodes] == list(range(len(view.nodes)))
    assert view.parties == (rank,)


def test_a_party_that_is_not_there():
    with pytest.raises(ConfigError, match="not 7"):
        analysis.graph(EXCHANGE).party(7)


def test_mermaid_golden():
    assert (
        analysis.graph(EXCHANGE).mermaid()
        == """\
flowchart TD
  n0(["input 0  #123;0#125;"])
  n1(["input 1  #123;1#125;"])
  n2["move  0-#62;1<br>demo.py:2"]
  n3["toy.add  #123;1#125;<br>demo.py:3"]
  n4["move  1-#62;0, 1-#62;2<br>demo.py:4"]
  n5(["output 0  #123;0, 2#125;"])
  n0 -->|"i64#91;#93;@#123;0#125;"| n2
  n1 -->|"i64#91;#93;@#123;1#125;"| n3
  n2 -->|"i64#91;#93;@#123;1#125;"| n3
  n3 -->|"i64#91;#93;@#123;1#125;"| n4
  n4 -->|"i64#91;#93;@#123;0, 2#125;"| n5
  classDef p0 fill:#cfe2ff
  class n0 p0
  classDef p1 fill:#ffe5b4
  class n1,n3 p1
"""
    )


def nested():
    def program(x, y):
        def turn(state):
            i, z = state
            inner = mp.uniform_cond(
                mp.invoke(toy.less, i, mp.constant(1)),
                lambda: mp.invoke(toy.add, z, z),
                lambda: y,
            )
            return mp.invoke(toy.add, i, mp.constant(1)), inner

        start = (mp.constant(0), x)
        return mp.while_loop(
            lambda state: mp.invoke(toy.less, state[0], mp.constant(3)), turn, start
        )[1]

    kind = mp.MPType(mp.TensorType("i64"), mp.Mask.of(1))
    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program, kind, kind)


def test_regions_are_framed_and_values_go_through_them():
    view = analysis.graph(nested())
    assert [(group.label, group.depth) for group in view.groups] == [
        ("simp.while_loop cond", 0),
        ("simp.uniform_cond then", 1),
        ("simp.while_loop body", 0),
    ]
    outer = view.groups[-1]
    inner = view.groups[1]
    assert outer.first <= inner.first <= inner.last <= outer.last
    add = next(node for node in view.nodes if node.label == "toy.add" and node.depth == 2)
    assert inner.first <= add.row <= inner.last
    output = view.nodes[-1]
    sources = {edge.source for edge in view.edges if edge.target == output.id}
    loop = next(node for node in view.nodes if node.label == "while_loop")
    assert loop.id in sources
    assert add.id in sources


def test_no_two_boxes_overlap_and_edges_go_down():
    view = analysis.graph(nested())
    rows = {node.id: node.row for node in view.nodes}
    assert all(rows[edge.source] < rows[edge.target] for edge in view.edges)


def drawing(page: str) -> ElementTree.Element:
    return ElementTree.fromstring(re.search(r"<svg.*</svg>", page, re.DOTALL)[0])


def test_the_page_shows_types_and_lines_on_hover():
    page = analysis.graph(EXCHANGE).html()
    titles = [title.text for title in drawing(page).iter(SVG + "title")]
    assert "toy.add {1}\ni64[]@{1}\ndemo.py:3" in titles
    assert 'type="search"' in page
    assert "wheel" in page


@pytest.mark.parametrize("rank", [None, 0])
def test_pages_are_self_contained_and_escape_what_they_show(rank):
    view = analysis.graph(HOSTILE)
    view = view if rank is None else view.party(rank)
    page = view.html()
    assert page.count("<script>") == 1  # our own
    assert "alert(1)</" not in page
    for text in (page, view._repr_html_()):
        assert "--> <b>" not in text
        loads = re.findall(r"(?:src|href)\s*=|@import|url\(|https?://\S+", text)
        assert set(loads) <= {'http://www.w3.org/2000/svg"'}
        drawing(text)
    assert "default-src 'none'" in page
    assert "<script" not in view._repr_html_()
    assert "<script" not in view.mermaid()
    assert '"]:::' not in view.mermaid()
    assert "<script" in view.text()


def test_an_empty_program_is_drawn():
    view = analysis.graph(mp.parse('program "nothing" on {0} () {\n return\n}'))
    assert str(view) == "nothing on {0}"
    drawing(view.html())
    drawing(view.party(0).html())
