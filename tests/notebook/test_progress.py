"""Progress in a notebook: one display below the cell, written anew, and empty at the end."""

from __future__ import annotations

import pytest
from mplang_testing.waiting import DEADLINE

pytest.importorskip("ipykernel")
from kernels import kernel

PROGRAM = """
import threading, mplang_core as mp
from mplang_trace import live_table
live_table.AFTER = 0.0
sim, shown, go = mp.Simulator(mp.ClusterSpec.simple(2)), [], threading.Event()
draw = live_table._table
def noted(*args):
    table = draw(*args)
    if "compiling" in table.text():
        go.set()
    return table
live_table._table = noted
def program():
    assert go.wait(%f)
    return mp.constant(7)
with mp.watch(sim):
    print(mp.fetch(sim, mp.evaluate(sim, program)))
"""


def test_a_table_is_shown_and_emptied():
    with kernel() as notebook:
        request = notebook.start(PROGRAM % DEADLINE)
        displays = displays_of(notebook, request)
    kinds = [kind for kind, _, _ in displays]
    assert kinds[0] == "display_data"
    assert set(kinds[1:]) == {"update_display_data"}
    assert len({number for _, number, _ in displays}) == 1
    tables = [data for _, _, data in displays]
    assert "compiling  " in tables[0]["text/plain"]
    assert "Cell In[1], line 13" in tables[0]["text/plain"]
    assert "<table>" in tables[0]["text/html"]
    assert tables[-1] == {"text/plain": "", "text/html": ""}


def displays_of(notebook, request):
    """Return kind, number and data of each display of a cell."""
    found = []
    while True:
        message = notebook._client.get_iopub_msg(timeout=DEADLINE)
        if message["parent_header"].get("msg_id") != request:
            continue
        kind, content = message["msg_type"], message["content"]
        assert kind != "error", content
        if kind.endswith("display_data"):
            found.append((kind, content["transient"]["display_id"], content["data"]))
        if kind == "status" and content["execution_state"] == "idle":
            return found
