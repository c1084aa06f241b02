"""Runs end with one line where a person watches, and Ctrl-C ends them with one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

pytest.importorskip("ipykernel")
from kernels import kernel

pytestmark = pytest.mark.needs("http")

LINE = re.compile(r"\d+(\.\d+)?(e-\d+)? s, \d+(\.\d)? \w+, 2 parties$", re.M)
SETUP = """\
import os, signal, threading
import numpy as np
import mplang_core as mp
from mplang_testing.waiting import wait_until
cluster = mp.ClusterSpec.simple(2)

def add(x):
    return mp.pshfl_s(mp.pshfl_s(x, [0], [1]), [1], [0])

def forever(x):
    turn = lambda s: (s[0] + 1, mp.pshfl_s(s[1], [0, 1], [1, 0]))
    return mp.while_loop(lambda s: s[0] < 1 << 60, turn, (x, x))

def interrupt(host):
    def wait():
        wait_until(lambda: host.at() and any(each.op for each in host.progress()))
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=wait).start()
"""


@pytest.fixture(scope="module")
def notebook():
    with kernel() as made:
        found = made.run(SETUP + "sim = mp.Simulator(cluster)")
        assert not found.error, found.traceback
        yield made


def test_a_run_ends_with_one_line(notebook):
    found = notebook.run("y = mp.evaluate(sim, add, np.ones(8))")
    assert LINE.fullmatch(found.text.strip()), found.text
    assert "128 bytes" in found.text


def test_what_is_no_program_ends_with_none(notebook):
    found = notebook.run("with mp.with_ctx(sim): z = mp.put('P0', 1) + 1\nmp.fetch(sim, z)")
    assert not found.error, found.traceback
    assert found.text == ""


def test_it_can_be_switched_off(notebook):
    found = notebook.run(
        "os.environ['MPLANG_SUMMARY'] = 'never'\n"
        "y = mp.evaluate(sim, add, 1)\n"
        "del os.environ['MPLANG_SUMMARY']"
    )
    assert (found.text, found.error) == ("", ())


def test_ctrl_c_ends_a_run_of_a_notebook_with_one_line(notebook):
    found = notebook.run("interrupt(sim)\nmp.evaluate(sim, forever, 1)")
    assert found.error[0] == "KeyboardInterrupt"
    assert re.fullmatch(
        r"KeyboardInterrupt: the run was stopped at Cell In\[\d+\], line \d+, at all parties",
        found.traceback,
    )
    after = notebook.run("print(mp.fetch(sim, mp.evaluate(sim, add, 7)))")
    assert not after.error, after.traceback
    assert "array(7)" in after.text


def test_ctrl_c_cancels_the_runs_of_workers(notebook):
    found = notebook.run(
        "from mplang_http import LocalCluster\n"
        "local = LocalCluster(2)\n"
        "host = mp.connect('http', local.spec)\n"
    )
    assert not found.error, found.traceback
    found = notebook.run("interrupt(host)\nmp.evaluate(host, forever, 1, mode='launch')")
    assert found.error[0] == "KeyboardInterrupt", found
    assert len(found.traceback.splitlines()) == 1
    after = notebook.run("print(mp.fetch(host, mp.evaluate(host, add, 7)))")
    assert not after.error, after.traceback
    assert "array(7)" in after.text
    assert LINE.search(after.text)
    notebook.run("host.close(); local.close()")


RUN = """\
with mp.Simulator(cluster) as sim:
    interrupt(sim)
    mp.evaluate(sim, forever, 1)
"""


def ends(*args: str, given: str | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    found = subprocess.run(
        args, input=given, capture_output=True, text=True, check=False,
        env={**os.environ, **environ},
    )  # fmt: skip
    lines = found.stderr.splitlines(keepends=True)
    found.stderr = "".join(each for each in lines if "pjrt_client" not in each)  # JAX's own
    return found


def test_ctrl_c_ends_a_script_with_one_line(tmp_path):
    script = tmp_path / "demo.py"
    script.write_text(f"{SETUP}\n{RUN}")
    found = ends(sys.executable, str(script))
    assert re.fullmatch(
        r"KeyboardInterrupt: the run was stopped at demo.py:\d+, at all parties\n", found.stderr
    )
    assert found.returncode == -signal.SIGINT  # as for each script that is interrupted
    full = ends(sys.executable, str(script), MPLANG_TRACEBACK="full")
    assert full.stderr.startswith("Traceback")


def test_ctrl_c_at_the_prompt_ends_with_one_line():
    found = ends(sys.executable, "-i", given=f"{SETUP}\n{RUN}\nprint('go', 'on')\n")
    assert "KeyboardInterrupt: the run was stopped at the prompt, line" in found.stderr
    assert "Traceback" not in found.stderr
    assert "go on" in found.stdout


def test_ctrl_c_in_ipython_ends_with_one_line(tmp_path):
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(colors='nocolor')\n"
        f'for cell in ({SETUP!r}, {RUN!r}, \'print("go", "on")\'):\n'
        "    shell.run_cell(cell, store_history=True)\n"
    )
    found = ends(sys.executable, "-c", code, IPYTHONDIR=str(tmp_path))
    shown = found.stdout + found.stderr
    assert "KeyboardInterrupt: the run was stopped at Cell In[" in shown
    assert "Traceback" not in shown
    assert "go on" in shown


def test_a_script_tells_nothing_unless_it_is_asked_to(tmp_path):
    script = tmp_path / "demo.py"
    script.write_text(f"{SETUP}\nwith mp.Simulator(cluster) as sim: mp.evaluate(sim, add, 1)\n")
    assert ends(sys.executable, str(script)).stderr == ""
    told = ends(sys.executable, str(script), MPLANG_SUMMARY="always").stderr
    assert LINE.fullmatch(told.strip())


def test_the_prompt_tells_what_a_run_took():
    given = f"{SETUP}\nwith mp.Simulator(cluster) as sim: _ = mp.evaluate(sim, add, 1)\n\n"
    assert LINE.search(ends(sys.executable, "-i", given=given).stderr.replace("... ", ""))


SECRET = """
def product(x, y):
    return mp.reveal(mp.device("SP0")(lambda a, b: a * b)(x, y))

with mp.Simulator(cluster) as sim:
    with mp.with_ctx(sim):
        x, y = mp.put("P0", 2.0), mp.put("P1", 3.0)
    mp.evaluate(sim, product, x, y)
    with mp.record(sim):
        mp.evaluate(sim, product, x, y)
"""


@pytest.mark.needs("spu")
def test_what_a_simulator_does_not_count_is_said(tmp_path):
    script = tmp_path / "demo.py"
    script.write_text(f"{SETUP}\n{SECRET}")
    first, second = ends(sys.executable, str(script), MPLANG_SUMMARY="always").stderr.splitlines()
    assert "besides what protocols send" in first
    assert LINE.fullmatch(second)


def test_mplang_run_tells_it_in_a_terminal_alone(tmp_path):
    (tmp_path / "demo.py").write_text(
        "import mplang_core as mp\ndef one(): return mp.constant(1)\n"
    )
    command = "import sys; sys.argv = ['mplang', 'run', 'demo.py:one', '--cluster', '2']\n"
    command += "from mplang_cli.entry import main; main()"
    ours, theirs = os.openpty()
    for stderr, shows in ((theirs, True), (subprocess.PIPE, False)):
        done = subprocess.run(
            [sys.executable, "-c", command],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=stderr, check=True,
        )  # fmt: skip
        text = os.read(ours, 100_000) if shows else done.stderr
        assert bool(LINE.search(text.decode().replace("\r", ""))) is shows
        assert b"s, " not in done.stdout
    os.close(ours)
    os.close(theirs)
