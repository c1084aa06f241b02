"""Threads of a front share two arenas of malloc; what was freed between others goes back."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

THREADS = 24
COUNT = """
import ctypes, threading, tempfile
from mplang_worker.process.malloc import share_arenas

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.fopen.restype = ctypes.c_void_p
if {shared}:
    share_arenas()
met = threading.Barrier({threads})

def allocate():
    met.wait()  # all of them are there at once, so that none takes over the arena of another
    libc.malloc(100_000)
    met.wait()

threads = [threading.Thread(target=allocate) for _ in range({threads})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with tempfile.NamedTemporaryFile() as told:
    file = ctypes.c_void_p(libc.fopen(told.name.encode(), b"w"))
    libc.malloc_info(0, file)
    libc.fclose(file)
    print(told.read().count(b"<heap nr="))
"""


def arenas(*, shared: bool) -> int:
    """Return how many arenas a process of many threads has."""
    command = [sys.executable, "-c", COUNT.format(shared=shared, threads=THREADS)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def test_many_threads_share_two_arenas():
    if arenas(shared=False) < 3:
        pytest.skip("malloc is another one than that of glibc, or has one arena")
    assert arenas(shared=True) <= 2


FREED = """
import ctypes
from pathlib import Path
from mplang_worker.process.malloc import give_back

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]

def resident():
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])

blocks = [libc.malloc(65536) for _ in range(1000)]  # less than those that are mapped one by one
for block in blocks:
    ctypes.memset(block, 1, 65536)
for block in blocks[::2] + blocks[1:-1:2]:
    libc.free(block)  # all but the last one, so that malloc itself cannot give back the end
before = resident()
{give_back}
print(before - resident())
"""


def freed(*, given_back: bool) -> int:
    """Return the bytes that go back to the system of 65 MB that were freed."""
    code = FREED.replace("{give_back}", "give_back()" if given_back else "")
    command = [sys.executable, "-c", code]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def test_what_is_free_between_others_goes_back():
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("malloc is another one than that of glibc")
    assert freed(given_back=False) < 1e6
    assert freed(given_back=True) > 60e6
