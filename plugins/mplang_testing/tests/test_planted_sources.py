"""Kinds of sources that reach more than their open files are caught by the kit."""

from __future__ import annotations

import pytest
from planted_package import told_of

pytestmark = pytest.mark.needs("data")

SOURCES = """
import os
import socket
import subprocess

from mplang_data.sources.npy_file import NpyFile


class Beside(NpyFile):
    def read(self, files, kind):
        with open(os.readlink(f"/proc/self/fd/{files[0]}") + ".offset") as offset:
            return super().read(files, kind) + float(offset.read())


class Program(NpyFile):
    def read(self, files, kind):
        subprocess.run(["/bin/true"], check=True)
        return super().read(files, kind)


class Network(NpyFile):
    def read(self, files, kind):
        socket.socket().close()
        return super().read(files, kind)


class Plain(NpyFile):
    pass
"""
TESTS = """
import numpy as np
from mplang_testing import SourceSuite


class TestPlain(SourceSuite):
    kind, data = "fault_plain", np.float64([1, 2])

    def store(self, folder, data):
        np.save(folder / "a.npy", data)
        (folder / "a.npy.offset").write_text("0")
        return "a.npy"


class TestBeside(TestPlain):
    kind = "fault_beside"


class TestProgram(TestPlain):
    kind = "fault_program"


class TestNetwork(TestPlain):
    kind = "fault_network"
"""
NAMES = ("Beside", "Program", "Network", "Plain")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return what pytest prints of tests of the kit that run on the sources."""
    points = [f"fault_{name.lower()} = faults:{name}" for name in NAMES]
    entries = "\n".join(["[mplang.sources]", *points])
    folder = tmp_path_factory.mktemp("faults")
    return told_of(folder, entries, SOURCES, TESTS, only="what_is_stored")


@pytest.mark.parametrize("name", ["Beside", "Program", "Network"])
def test_a_source_that_reaches_more_than_its_files_is_caught(told, name):
    test = f"Test{name}.test_a_confined_process_reads_what_is_stored"
    parts = [part for part in told.split("\n____") if f" {test}" in part]
    assert parts, told[-4000:]
    kind = f"fault_{name.lower()}"
    assert f"{kind} is not read by a process that has its open files alone" in parts[0]
    assert "PermissionError" in parts[0]
    assert f"Test{name}.test_what_is_stored_is_read" not in told  # by the tests' own process


def test_one_that_does_not_is_not(told):
    assert "TestPlain" not in told, told[-4000:]
