"""A failure of libspu's compiler, in a process of its own: its heap is broken then.

Nothing that is admitted is known to fail; so a lowered module that no lowering writes is compiled.
"""

from __future__ import annotations

import subprocess
import sys

TEXT = """module @main {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<8xf32>) -> tensor<8xi32>
    %1 = stablehlo.count_leading_zeros %0 : tensor<8xi32>
    return %1 : tensor<8xi32>
  }
}
"""
HEAD = f"""
import os, sys
from mplang_core.ext import DamagedProcessError
from mplang_spu import compiler, engine
TEXT = {TEXT!r}
SECRET = [engine.visibility(True)]

def compile(text):
    try:
        compiler.compile_text(text, SECRET)
    except DamagedProcessError as error:
        print(error.code, error, flush=True)
    else:
        print("compiled", flush=True)
"""
FAILS_IN_WORKER = HEAD + "compile(TEXT)\nos._exit(0)\n"
OF_A_USER = (
    HEAD
    + """
with compiler.stderr_in_errors():
    compile(TEXT.replace("count_leading_zeros", "abs"))
    os.write(2, b"of others")
with compiler.stderr_in_errors():
    compile(TEXT)
compile(TEXT.replace("count_leading_zeros", "abs"))
os._exit(0)
"""
)


def run(code: str) -> tuple[list[str], str]:
    """Return what a process prints: lines on stdout, text on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout.splitlines(), done.stderr


def test_a_user_reads_the_failure_in_the_error_and_libspu_is_not_called_again():
    (compiled, failed, after), err = run(OF_A_USER)
    assert compiled == "compiled"
    assert "failed: failed to legalize operation 'stablehlo.count_leading_zeros'" in failed
    assert failed.startswith("R014 ")
    assert "start it again" in failed
    assert "failed before: failed to legalize operation" in after
    assert err == "of others"


def test_in_a_worker_the_failure_stands_in_the_log_too():
    (failed,), err = run(FAILS_IN_WORKER)
    assert "failed: Run front end pipeline failed" in failed
    assert "failed to legalize operation 'stablehlo.count_leading_zeros'" in err
