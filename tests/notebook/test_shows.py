"""What people see of objects: in a notebook, in IPython and at the prompt of Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from tempfile import TemporaryDirectory

import pytest
from mplang_testing.waiting import DEADLINE

nbformat = pytest.importorskip("nbformat")
from jupyter_client.manager import AsyncKernelManager  # noqa: E402
from kernels import sockets_in  # noqa: E402
from nbclient import NotebookClient  # noqa: E402

pytestmark = pytest.mark.needs("jax", "spu", "ibis", "policy", "http")

SETUP = """\
import numpy as np, pyarrow as pa, mplang_core as mp
from mplang_core import analysis
import logging; logging.disable(logging.INFO)
cluster = mp.ClusterSpec.simple(2)
sim = mp.Simulator(cluster)
SECRET = 8675309.25
def slope(dose, cost):
    def fit(d, c):
        d, c = d - d.mean(), c - c.mean()
        return (d * c).sum() / (d * d).sum()
    return mp.reveal(mp.device("SP0")(fit)(dose, cost), to="P1")
def epochs(x, y):
    losses = []
    for _ in range(30):
        loss = mp.device("SP0")(lambda a, b: ((a - b) ** 2).mean())(x, y)
        losses.append(mp.reveal(loss, to="P0"))
    return losses
def turns(x):
    return mp.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + s[1]), (0, x))[1]
def hostile(x):
    return mp.put("P1", x)
hostile.__name__ = "</pre><script>alert(1)</script>"
with mp.with_ctx(sim):
    x = mp.put("P0", np.full(4, SECRET, np.float32)); y = mp.put("P1", np.ones(4, np.float32))
    people = mp.put("P0", pa.table({"name": ["Ann", "Bob"], "pay": [SECRET, 1.0]}))
    sealed = mp.seal(x, "SP0") if False else mp.put("SP0", x)
compiled = mp.compile(slope, x, y, cluster_spec=cluster)
long = mp.compile(epochs, x, y, cluster_spec=cluster)
bad = mp.compile(hostile, x, cluster_spec=cluster)
with mp.record(sim) as recording: result = mp.evaluate(sim, compiled, x, y)
from mplang_policy import Rules
rules = Rules.of({f"{i}.cedar": "permit (principal, action, resource);" * 20 for i in range(20)})
refusal = mp.errors.Refusal("bank", "no-rule", "fetch", "</b><script>", columns=("people.pay",))
"""

OBJECTS = """\
cluster
cluster.device("SP0")
cluster.device("P0")
cluster.nodes[0]
cluster.devices["SP0"]
sim
compiled
compiled.traced
compiled.traced.program
mp.compile(turns)
long
bad
x
sealed
people
result
[x, sealed]
analysis.disclosure(compiled)
analysis.disclosure(long)
analysis.disclosure(bad)
analysis.disclosure(compiled).rows
analysis.disclosure(long).rows
analysis.disclosure(compiled).rows[0]
analysis.disclosure(compiled).matrix()
analysis.disclosure(long).matrix()
analysis.disclosure(compiled).picture()
analysis.costs(compiled)
analysis.costs(long)
analysis.costs(long).links
analysis.ranges(compiled)
analysis.queries(compiled)
analysis.queries(compiled).plan
analysis.graph(compiled)
analysis.graph(long)
analysis.graph(long).party(0)
compiled.traced.program.graph
mp.artifact.make(compiled)
mp.artifact.make(long)
mp.artifact.make(compiled).signature
mp.device("SP0")
mp.device("SP0")(slope)
mp.device()(lambda x: x)
mp.registry
mp.record(sim)
rules
recording
recording.timeline()
recording.by_line()
recording.by_line("lan").bars()
recording.spans
recording.links()
mp.fetch(sim, people)
mp.fetch(sim, result)
refusal
mp.errors.Refusals([refusal, refusal])
mp.introspect.list_ops()
mp.introspect.list_plugins()
x.type
analysis.disclosure(compiled).tables()[0]
"""

CELLS = [line for line in OBJECTS.splitlines() if line]
MOST = 4_000
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")
TAGS = "div style section p b ul li table caption thead tbody tr th td bdi details summary pre span"
SHAPES = "svg title rect text line circle polygon hr"
VOID = ("hr",)


class Page(HTMLParser):
    """Check of HTML: known tags, closed in order, that load nothing and run nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.styles = ""

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in f"{TAGS} {SHAPES}".split(), tag
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "href", "xlink:href", "srcset", "background", "style"), name
            assert not re.search(r"https?:|url\(", value or "")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["style"]:
            assert not re.search(r"https?:|@import|url\(", data)


@pytest.fixture(scope="module")
def outputs():
    """Return the MIME bundle of each object, from a notebook that was executed."""
    cells = [nbformat.v4.new_code_cell(each) for each in (SETUP, *CELLS)]
    book = nbformat.v4.new_notebook(cells=cells)
    with TemporaryDirectory() as folder:
        manager = AsyncKernelManager(**sockets_in(folder))
        NotebookClient(book, km=manager, timeout=int(DEADLINE)).execute()
    found = {}
    for code, cell in zip(CELLS, book.cells[1:], strict=True):
        (shown,) = [each for each in cell.outputs if each["output_type"] != "stream"]
        assert shown["output_type"] == "execute_result"
        found[code] = shown["data"]
    return found


@pytest.mark.parametrize("code", CELLS)
def test_the_text_is_short_and_has_no_address(outputs, code):
    text = outputs[code]["text/plain"]
    assert 0 < len(text.encode()) < MOST
    assert not ADDRESS.search(text)
    assert "\x1b" not in text


@pytest.mark.parametrize("code", CELLS)
def test_the_page_loads_and_runs_nothing(outputs, code):
    html = outputs[code].get("text/html", "")
    page = Page()
    page.feed(html)
    page.close()
    assert not page.open
    assert not ADDRESS.search(html)
    assert set(outputs[code]) <= {"text/plain", "text/html"}


def test_what_people_meet_first_has_a_page(outputs):
    plain = {code for code in CELLS if "text/html" not in outputs[code]}
    assert plain == {
        "cluster.nodes[0]", 'cluster.devices["SP0"]', "sim", "[x, sealed]", "x.type",
        "analysis.disclosure(compiled).rows[0]", "recording.links()", "mp.fetch(sim, result)",
        "compiled.traced.program.graph", "mp.artifact.make(compiled)", "mp.artifact.make(long)",
        "mp.artifact.make(compiled).signature", 'mp.device("SP0")', 'mp.device("SP0")(slope)',
        "mp.device()(lambda x: x)", "mp.registry", "mp.record(sim)", "rules",
    }  # fmt: skip


@pytest.mark.parametrize("code", ["x", "sealed", "people", "recording", "recording.spans"])
def test_no_display_of_a_value_has_its_data(outputs, code):
    assert "8675309" not in str(outputs[code])


def test_a_secret_tells_how_to_see_it(outputs):
    assert outputs["sealed"]["text/plain"] == "<secret f32[4] at SP0; mp.reveal it to see>"
    assert "mp.reveal" in outputs["sealed"]["text/html"]


def test_a_long_table_is_folded_and_tells_of_red_rows(outputs):
    page = outputs["analysis.disclosure(long)"]["text/html"]
    assert re.search(
        r"<summary>… \d+ more rows; <span class=\"alert\">\d+ of them in red</span>", page
    )


def test_red_is_marked_in_text_too(outputs):
    text = outputs["analysis.disclosure(compiled)"]["text/plain"]
    assert re.search(r"^! reveal ", text, re.M)


def test_a_function_shows_the_text_of_its_lines(outputs):
    page = outputs["compiled"]["text/html"]
    assert "return mp.reveal(mp.device(&quot;SP0&quot;)(fit)(dose, cost)" in page
    assert "Cell In[1], line 11" in page
    assert len(page) < 8_000  # no code of engines


def split(text: str) -> dict[str, str]:
    """Return what was shown after each mark."""
    found = re.split(r"^#(\d+)\n", text, flags=re.M)
    return {CELLS[int(i)]: shown for i, shown in zip(found[1::2], found[2::2], strict=True)}


SHOW = """
import builtins
for _i, _code in enumerate({cells!r}):
    print(f"#{{_i}}", flush=True)
    sys.displayhook(eval(_code, globals()))
"""


@pytest.fixture(scope="module")
def prompt():
    """Return what the prompt of Python shows of each object."""
    code = f"import sys\n{SETUP}\n{SHOW.format(cells=CELLS)}"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip
    return split(found.stdout)


@pytest.fixture(scope="module")
def ipython():
    """Return what IPython in a terminal shows of each object."""
    code = (
        f"import sys\n{SETUP}\nfrom IPython.terminal.interactiveshell import "
        "TerminalInteractiveShell\nshell = TerminalInteractiveShell.instance(colors='nocolor')\n"
        "import mplang_tables.table_view as t; t.show_in_ipython()\n"
        f"{SHOW.format(cells=CELLS).replace('sys.displayhook', 'shell.displayhook')}"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return split(found.stdout)


@pytest.mark.parametrize("shown", ["prompt", "ipython"])
@pytest.mark.parametrize("code", [each for each in CELLS if "mp.fetch" not in each])
def test_prompts_show_the_same_objects(request, shown, code):
    text = request.getfixturevalue(shown)[code]
    assert 0 < len(text.encode()) < MOST
    assert not ADDRESS.search(text)
