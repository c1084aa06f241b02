"""The table of interned strings does not grow with the strings that go through it later."""

from __future__ import annotations

import subprocess
import sys

import pytest

PASSED = """
import sys
from mplang_worker.process import fork_server, malloc
from mplang_worker.process.interned import settle_interned
import ibis, jax, pandas, pyarrow  # what engines import, about: a table that is full to a third

def anonymous():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Anonymous:")) / 1024

kept = [sys.intern(f"kept {i}") for i in range(1 << 16)]
{settled}
malloc.give_back()
before, most = anonymous(), 0.0
for turn in range(40):
    for number in range(10_000):
        sys.intern(f"passing {turn} {number}")
    most = max(most, anonymous())
print(most - before)
"""


def growth(*, settled: bool) -> float:
    """Return by how many MB a process grows as 400,000 strings go through its table."""
    code = PASSED.replace("{settled}", "settle_interned()" if settled else "")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return float(found.stdout)


@pytest.mark.long("a million strings")
@pytest.mark.skipif(sys.version_info[:2] == (3, 12), reason="its interned strings stay for good")
def test_a_process_does_not_grow_by_strings_that_nobody_keeps():
    assert growth(settled=False) > 1.5
    assert growth(settled=True) < 0.5


SETTLING = """
from mplang_worker.process.interned import settle_interned

def anonymous():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Anonymous:")) / 1024

settle_interned()
before = anonymous()
settle_interned()
print(anonymous() - before)
"""


def test_to_settle_again_costs_nothing():
    command = [sys.executable, "-c", SETTLING]
    found = subprocess.run(command, capture_output=True, check=True, text=True)
    assert float(found.stdout) < 1
