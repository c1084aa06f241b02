"""The exit of a process while a party of a simulator is in native code: nothing aborts."""

from __future__ import annotations

import subprocess
import sys

import pytest
from mplang_testing.waiting import DEADLINE

pytestmark = [pytest.mark.needs("ibis", "jax"), pytest.mark.once]

SCRIPT = """
import os, signal, threading
import jax, jax.numpy as jnp
import mplang_core as mp

host = mp.Simulator(mp.ClusterSpec.simple(2), mode="launch", data={"node0": {"numbers": DATA}})

def interrupt(within):
    while not any(each.op == within for each in host.progress()):
        pass
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, args=(OP,), daemon=True).start()
try:
    mp.evaluate(host, lambda: mp.device("P0")(FUNCTION)(mp.dataset("node0", "numbers")))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

WAYS = {
    "DuckDB": (
        "ibis.run",
        "__import__('pyarrow').table({'a': range(7_000)})",
        "lambda t: t.cross_join(t.select(b=t.a)).aggregate(s=lambda u: (u.a * u.b).sum())",
    ),
    "JAX": (
        "jax.run",
        "__import__('numpy').ones((400, 400), 'float32')",
        "lambda x: jax.lax.fori_loop(0, 100, lambda i, x: jnp.sin(x @ x), x)",
    ),
}


@pytest.mark.parametrize("engine", WAYS)
def test_the_process_waits_for_an_engine_that_computes(engine, tmp_path):
    """Else the thread that comes back from it aborts the process, at times after its tests."""
    op, data, function = WAYS[engine]
    script = SCRIPT.replace("OP", repr(op)).replace("DATA", data).replace("FUNCTION", function)
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(tmp_path / "script.py")],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
    assert "Aborted" not in done.stderr
    assert "terminate" not in done.stderr
