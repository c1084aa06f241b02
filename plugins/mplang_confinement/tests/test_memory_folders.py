"""Folders in memory: who starts processes has its own, and removes what others have left."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from mplang_confinement import MemoryFolders, memory_folders


@pytest.fixture(autouse=True)
def memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_folders, "MEMORY", tmp_path)
    return tmp_path


def test_what_was_left_goes_with_the_next_one(memory):
    left = memory / f"{memory_folders.PREFIX}left"
    (left / "tokens").mkdir(parents=True)
    running = MemoryFolders()
    os.mkdir(running.of("one"))
    later = MemoryFolders()
    assert not left.exists()
    assert os.path.isdir(running.of("one"))
    later.close()
    running.close()
    assert not list(memory.iterdir())


def test_a_process_has_one_folder_that_is_removed(memory):
    folders = MemoryFolders()
    os.mkdir(folders.of("one"))
    os.mkdir(folders.of("two"))
    folders.remove("one")
    folders.remove("none")
    assert os.listdir(folders.path) == ["two"]
    assert os.stat(folders.path).st_mode & 0o777 == 0o700
    folders.close()


def test_without_a_folder_in_memory_there_is_none(memory, monkeypatch):
    monkeypatch.setattr(memory_folders, "MEMORY", memory / "none")
    folders = MemoryFolders()
    assert folders.of("one") == ""
    folders.remove("one")
    folders.close()


STARTS = """
import os, sys
from pathlib import Path
from mplang_confinement import MemoryFolders, memory_folders

memory_folders.MEMORY = Path(sys.argv[1])
for _ in range(200):
    folders = MemoryFolders()
    os.mkdir(folders.of("one"))
    folders.close()
"""


def test_processes_that_start_at_once_do_not_take_each_others(memory):
    command = [sys.executable, "-c", STARTS, str(memory)]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [each.wait() for each in processes] == [0] * 4
    assert not list(memory.iterdir())
