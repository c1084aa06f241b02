"""Threads of a front share two arenas of malloc: each keeps megabytes that were freed."""

from __future__ import annotations

import subprocess
import sys

import pytest

THREADS = 24
COUNT = """
import ctypes, threading, tempfile
from mplang_worker.process.arenas import share_arenas

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
