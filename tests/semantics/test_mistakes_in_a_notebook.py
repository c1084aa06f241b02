"""The mistakes of a script, made in a cell of a notebook: each error names cell and line.

The source of the other file is compiled as IPython compiles a cell: under the name of a file that
is none, which its compiler knows as a cell.
"""

from __future__ import annotations

import linecache
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

import pytest

import mplang_core as mp

CELL = "/tmp/ipykernel_7/1234567890.py"
SCRIPT = Path(__file__).with_name("test_mistakes.py")


class Shell:
    """What mplang asks of IPython: the cell of a name, and how tables are shown."""

    display_formatter = MagicMock()

    @property
    def compile(self):
        return self

    def format_code_name(self, name):
        return ("Cell", "In[5]") if name == CELL else None


@pytest.fixture(autouse=True)
def _notebook(monkeypatch):
    there = types.SimpleNamespace(get_ipython=Shell)
    monkeypatch.setitem(sys.modules, "IPython", there)


def _cell():
    """Return what the cell defines."""
    source = SCRIPT.read_text(encoding="utf-8")
    source = source.replace(r"test_mistakes\.py:\d+", r"Cell In\[5\], line \d+")
    linecache.cache[CELL] = (len(source), None, source.splitlines(keepends=True), CELL)
    names = {"__name__": __name__, "__file__": CELL}
    exec(compile(source, CELL, "exec", dont_inherit=True), names)
    return names


ONCE = "test_four_parties_are_told_while_compiling"  # once per process, by the script
MISTAKES = {
    name: each for name, each in _cell().items() if name.startswith("test_") and name != ONCE
}
globals().update(MISTAKES)
pytestmark = pytest.mark.needs("jax")


def test_all_mistakes_are_made():
    assert len(MISTAKES) >= 23


def test_the_line_of_a_cell_is_sent_and_printed():
    names = {"mp": mp, "__name__": "__main__"}
    exec(compile("def program():\n    return mp.constant(1)", CELL, "exec"), names)
    program = mp.compile(names["program"], cluster_spec=mp.ClusterSpec.simple(1)).program
    from mplang_core.ext import from_bytes, to_bytes

    for found in (program, from_bytes(to_bytes(program)), mp.parse(str(program))):
        assert "Cell In[5], line 2" in {str(op.location) for op in found.graph.ops}
