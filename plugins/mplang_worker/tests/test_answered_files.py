"""What an engine was given counts for as long as it has it, however it keeps it."""

from __future__ import annotations

import mmap
import os
import socket

import pytest
from mplang_worker.front.answered_files import LEAST, AnsweredFiles


@pytest.fixture
def given():
    made = AnsweredFiles()
    yield made
    made.close()


def rows(size=LEAST):
    """Return a file that nobody can change, as an engine is given it."""
    file = os.memfd_create("rows")
    os.truncate(file, size)
    try:
        return os.open(f"/proc/self/fd/{file}", os.O_RDONLY)
    finally:
        os.close(file)


def opened(file):
    kept = os.dup(file)
    return lambda: os.close(kept)


def mapped(file):
    """Map it without touching it: it is in no number of the process."""
    return mmap.mmap(file, 0, prot=mmap.PROT_READ).close


def on_its_way(file):
    """Send it to itself, and take it never: it is none of its open files."""
    ours, theirs = socket.socketpair()
    socket.send_fds(ours, [b"x"], [file])
    return lambda: (ours.close(), theirs.close())


@pytest.mark.parametrize("keep", [opened, mapped, on_its_way])
def test_a_file_counts_until_it_is_let_go(given, keep):
    file = rows()
    given.note(file)
    let_go = keep(file)
    os.close(file)
    assert given.size() == LEAST
    let_go()
    assert given.size() == 0


def test_small_files_and_those_of_a_disk_are_not_counted(given, tmp_path):
    (tmp_path / "rows").write_bytes(bytes(LEAST))
    files = [rows(LEAST - 1), os.open(tmp_path / "rows", os.O_RDONLY)]
    for file in files:
        given.note(file)
    assert given.size() == 0
    for file in files:
        os.close(file)


def test_an_answer_to_a_session_that_has_ended_stays_nowhere(given):
    given.close()
    file = rows()
    given.note(file)
    assert given.size() == 0
    os.close(file)
