"""Lines of a cell are told by cell and line wherever lines are told, and at the prompt likewise."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytest.importorskip("ipykernel")
from kernels import kernel

pytestmark = pytest.mark.needs("jax", "spu", "ibis", "http")

PROGRAM = """\
import mplang_core as mp, numpy as np
cluster = mp.ClusterSpec.simple(2)
sim = mp.Simulator(cluster)

def slope(x, y):
    both = mp.device("SP0")(lambda a, b: a * b)(x, y)
    return mp.reveal(both, to="P1")

with mp.with_ctx(sim):
    x, y = mp.put("P0", np.float32([1, 2])), mp.put("P1", np.float32([3, 4]))
compiled = mp.compile(slope, x, y, cluster_spec=cluster)
"""
LINE = re.compile(r"Cell In\[1\](, line |:)[67]\b")  # programs as text have the form of a file
FILES = re.compile(r"\d{4,}\.py|ipykernel_|<stdin>|<ipython|/tmp/")


@pytest.fixture(scope="module")
def notebook():
    """Return a kernel that has run the program as its first cell."""
    with kernel() as made:
        found = made.run(PROGRAM)
        assert not found.error, found.traceback
        yield made


@pytest.mark.parametrize(
    "code",
    [
        "print('\\n'.join(mp.analysis.disclosure(compiled).sentences()))",
        "print(mp.analysis.disclosure(compiled))",
        "print(mp.analysis.disclosure(compiled).to_html())",
        "print(mp.analysis.costs(compiled, link='lan'))",
        "print(mp.analysis.disclosure(compiled).to_dict())",
        "print(compiled.program)",
        "with mp.record(sim) as recording: mp.evaluate(sim, compiled, x, y)\n"
        "print({span.facts.get('line') for span in recording.spans})",
    ],
)
def test_reports_tell_cell_and_line(notebook, code):
    found = notebook.run(code)
    assert not found.error, found.traceback
    assert LINE.search(found.text)
    assert not FILES.search(found.text), FILES.search(found.text)


def test_an_error_tells_cell_and_line(notebook):
    found = notebook.run(
        "def wrong(x):\n    return mp.reveal(x.sum(), to='nobody')\nmp.evaluate(sim, wrong, x)"
    )
    number = re.search(r"Cell In\[(\d+)\], line 2", found.error[1])
    assert number, found.error
    assert not FILES.search(found.traceback)


def test_a_warning_tells_cell_and_line(notebook):
    found = notebook.run(
        "def many():\n    return mp.put('P0', np.ones(100))\nz = mp.evaluate(sim, many)"
    )
    assert re.search(r"^Cell In\[\d+\], line 2: LiteralWarning: ", found.text, re.M), found.text
    assert "    return" not in found.text.splitlines()[0]
    assert not FILES.search(found.text)


def test_a_failed_op_tells_cell_and_line(notebook):
    found = notebook.run(
        "def fail(x):\n    return mp.device('P0')(lambda v: v.reshape(7))(x)\n"
        "mp.evaluate(sim, fail, x)"
    )
    assert "line 2" in found.error[1]
    assert not FILES.search(found.error[1])


def test_workers_and_what_they_log_tell_cell_and_line(notebook):
    found = notebook.run(
        "import io, logging, tempfile, os\n"
        "from mplang_http import LocalCluster\n"
        "def shown(x):\n"
        "    return mp.reveal(mp.device('P0')(lambda v: v + 1)(x), to='P1')\n"
        "with LocalCluster(2) as local, mp.connect('http', local.spec) as host:\n"
        "    with mp.record(host) as recording:\n"
        "        with mp.with_ctx(host):\n"
        "            x = mp.put('P0', np.float32([1]))\n"
        "        mp.evaluate(host, shown, x)\n"
        "    print({each.facts.get('line') for each in recording.spans if each.party == 0})\n"
    )
    assert not found.error, found.traceback
    assert re.search(r"Cell In\[\d+\], line 4", found.text)
    assert not FILES.search(found.text)


def test_the_prompt_is_told_in_plain_words():
    code = (
        "import mplang_core as mp\n"
        "def f(): return mp.put('nobody', 1)\n\n"
        "mp.compile(f, cluster_spec=mp.ClusterSpec.simple(1)).program\n"
    )
    found = subprocess.run(
        [sys.executable, "-i"], input=code, capture_output=True, text=True, check=False
    )
    assert "the prompt, line 1: no device 'nobody'" in found.stderr
    assert "<stdin>:1" not in found.stderr
