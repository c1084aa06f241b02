"""libspu's threads: as many as there are cores for, and no other library is limited."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import mplang_spu
import pytest
from mplang_spu.libspu import ENOUGH, ENV

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libgomp is asked by its name")

ASK = f"""
import ctypes, os
os.cpu_count = lambda: {{cores}}
import mplang_spu.engine
print(ctypes.CDLL("libgomp.so.1").omp_get_thread_limit(), os.environ.get("{ENV}"))
"""


def ask(cores, **env):
    """Return the limit of OpenMP's threads after the import, and what the variable says."""
    kept = {name: value for name, value in os.environ.items() if name != ENV}
    code = ASK.format(cores=cores)
    found = subprocess.run(
        [sys.executable, "-c", code], env=kept | env, capture_output=True, text=True, check=True
    )
    limit, variable = found.stdout.split()
    return int(limit) % 2**32, variable


def test_parties_that_share_few_cores_have_one_thread_each_and_the_environment_stays():
    assert ask(ENOUGH - 1) == (1, "None")


def test_where_there_are_cores_there_is_no_limit():
    limit, variable = ask(ENOUGH)
    assert (limit > 100, variable) == (True, "None")


@pytest.mark.parametrize(
    "cores",
    [
        1,
        pytest.param(
            ENOUGH, marks=pytest.mark.long("a process imports libspu, for the fourth time")
        ),
    ],
)
def test_what_the_user_says_counts(cores):
    assert ask(cores, **{ENV: "3"}) == (3, "3")


def test_there_is_one_place_that_imports_libspu():
    for path in Path(mplang_spu.__file__).parent.rglob("*.py"):
        if path.name != "libspu.py":
            assert not re.search(r"^\s*(import spu|from spu)\b", path.read_text(), re.M), path
