"""Programs as drawings: what they show, and what they may not let through."""

from __future__ import annotations

import pytest
import toy
from disclosure_rows import SCALAR, at

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import ConfigError

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
        (1, ["1 input 1()", "2 receive from 0()", "3 toy.add(1, 2)", "4 send to 0, 2(3)"]),
        (2, ["4 receive from 1()", "5 output 0(4)"]),
    ],
)
def test_what_one_party_sees(rank, expected):
    view = analysis.graph(EXCHANGE).party(rank)
    taken = {node.id: [e.source for e in view.edges if e.target == node.id] for node in view.nodes}
    found = [f"{n.id} {n.label}({', '.join(map(str, taken[n.id]))})" for n in view.nodes]
    assert found == expected
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
                mp.invoke(toy.less, i, mp.constant(1)), lambda: mp.invoke(toy.add, z, z), lambda: y
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
    assert [(region.label, region.parent) for region in view.regions] == [
        ("simp.while_loop cond", None),
        ("simp.while_loop body", None),
        ("simp.uniform_cond then", 1),
        ("simp.uniform_cond else", 1),
    ]
    add = next(node for node in view.nodes if node.label == "toy.add" and node.depth == 2)
    assert view.regions[add.region].label == "simp.uniform_cond then"
    output = view.nodes[-1]
    sources = {edge.source for edge in view.edges if edge.target == output.id}
    loop = next(node for node in view.nodes if node.label == "while_loop")
    assert loop.id in sources
    assert add.id in sources
    lines = [line.strip() for line in view.mermaid().splitlines()]
    body, then = (
        lines.index('subgraph r1["simp.while_loop body"]'),
        lines.index('subgraph r2["simp.uniform_cond then"]'),
    )
    assert body < then < len(lines) - 1 - lines[::-1].index("end")
    assert lines.count("end") == 3  # a region without nodes has no frame


def test_edges_lead_from_earlier_to_later_nodes():
    assert all(edge.source < edge.target for edge in analysis.graph(nested()).edges)


@pytest.mark.parametrize("rank", [None, 0])
def test_nothing_of_a_program_is_taken_as_markup(rank):
    view = analysis.graph(HOSTILE)
    view = view if rank is None else view.party(rank)
    assert "<script" in view.text()
    for text in (view.mermaid(), view._repr_html_()):
        assert "<script" not in text
        assert "--> <b>" not in text
        assert '"]:::' not in text


def test_an_empty_program_is_drawn():
    view = analysis.graph(mp.parse('program "nothing" on {0} () {\n return\n}'))
    assert str(view) == "nothing on {0}"
    assert view.mermaid() == view.party(0).mermaid() == "flowchart TD\n"


def test_a_picture_has_the_names_of_the_cluster_and_the_texts_of_the_lines():
    def program(x):
        return mp.pshfl_s(x, 1, [0])

    cluster = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
    view = analysis.graph(mp.compile(program, at(SCALAR, 0), cluster_spec=cluster))
    assert view.picture().lanes == ("bank", "shop")
    assert view.party(1).picture().lanes == ("shop",)
    assert "“return mp.pshfl_s(x, 1, [0])”" in str(view.picture())
    assert analysis.graph(view_program()).picture().lanes == ("party 0",)


def view_program() -> mp.Program:
    return mp.parse('program "p" on {0} (%0: f32[3]@{0}) { return %0 }')
