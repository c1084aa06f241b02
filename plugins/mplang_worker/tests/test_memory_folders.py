"""Folders in memory: each worker has its own, and removes what ended ones have left."""

from __future__ import annotations

import multiprocessing
import os

import pytest
from mplang_worker.process import memory_folders
from mplang_worker.process.memory_folders import MemoryFolders


@pytest.fixture(autouse=True)
def memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_folders, "MEMORY", tmp_path)
    return tmp_path


def test_what_a_worker_has_left_goes_with_the_next_one(memory):
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


def _make(times, ended):
    for _ in range(times):
        folders = MemoryFolders()
        os.mkdir(folders.of("one"))
        folders.close()
    ended.put(True)


def test_workers_that_start_at_once_do_not_take_each_others(memory):
    context = multiprocessing.get_context("fork")
    ended = context.Queue()
    processes = [context.Process(target=_make, args=(200, ended)) for _ in range(4)]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
    assert [each.exitcode for each in processes] == [0] * 4
    assert not list(memory.iterdir())
