"""JAX, imported by mplang, logs to nobody's terminal."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("mplang_simulator")

PROGRAM = """
import mplang_core as mp
with mp.Simulator(mp.ClusterSpec.simple(1)) as sim, mp.with_ctx(sim):
    x = mp.put("P0", [1.0, 2.0])
    print(mp.fetch(sim, x[1]))
"""


def test_a_program_writes_nothing_to_stderr():
    """Modules of jaxlib that were loaded before JAX logged the devices that it found."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2.0\n", "")
