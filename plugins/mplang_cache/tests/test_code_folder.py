"""Compiled code in a folder: what is there counts only if its owner wrote it, and for this."""

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mplang_cache import code_folder, code_key
from mplang_cache.code_folder import CodeBounds, CodeFolder
from mplang_cache.compiled_code import MAX_CODE
from mplang_cache.owner_files import read_or_make_key

from mplang_core.errors import ConfigError

SECRET = bytes(range(32))
KEY = code_key("test", "one")


@pytest.fixture
def place(tmp_path):
    return tmp_path / "compiled"


def opened(place, key=SECRET, owner="alice", **bounds) -> CodeFolder:
    return CodeFolder(str(place), key, owner, CodeBounds(**bounds))


def entries(place: Path) -> list[str]:
    return sorted(each.name for each in place.iterdir())


def test_what_was_put_is_there_for_the_next_process(place):
    opened(place).put(KEY, b"code")
    assert opened(place).get(KEY) == b"code"
    assert opened(place).get(code_key("test", "two")) is None
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / KEY).stat().st_mode & 0o777 == 0o600
    assert entries(place) == [KEY]


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def lengthened(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"x")


def changed(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def of_a_later_version(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"code 1\n", b"code 2\n"))


def of_another_key(file: Path) -> None:
    CodeFolder(str(file.parent), bytes(32), "alice").put(file.name, b"foreign")


def of_another_owner(file: Path) -> None:
    CodeFolder(str(file.parent), SECRET, "bob").put(file.name, b"foreign")


def of_another_name(file: Path) -> None:
    opened(file.parent).put(code_key("test", "two"), b"foreign")
    (file.parent / code_key("test", "two")).rename(file)


def writable_by_all(file: Path) -> None:
    file.chmod(0o666)


def a_link(file: Path) -> None:
    file.rename(file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "harm",
    [cut_off, emptied, lengthened, changed, of_a_later_version, of_another_key, of_another_owner,
     of_another_name, writable_by_all, a_link, a_pipe],
)  # fmt: skip
def test_an_entry_that_is_not_its_owners_is_dropped_and_made_anew(place, harm, caplog):
    opened(place).put(KEY, b"code")
    harm(place / KEY)
    mine = opened(place)
    with caplog.at_level(logging.WARNING, "mplang.cache"):
        assert mine.get(KEY) is None
    assert f"{KEY[:12]}… is dropped, and made anew" in caplog.text
    assert entries(place) == []
    mine.put(KEY, b"code")
    assert mine.get(KEY) == b"code"


def test_a_folder_in_place_of_an_entry_is_told_once_and_serves_nothing(place, caplog):
    mine = opened(place)
    (place / KEY).mkdir()
    (place / KEY / "file").touch()
    for _ in range(2):
        assert mine.get(KEY) is None
        mine.put(KEY, b"code")
    assert caplog.text.count("is of no use") == 1
    assert entries(place) == [KEY]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o750])
def test_a_folder_that_is_open_to_others_is_refused(place, mode):
    place.mkdir()
    place.chmod(mode)
    with pytest.raises(ConfigError, match=rf"is open to other users: its mode is {mode:o}.*chmod"):
        opened(place)


def test_a_folder_that_is_a_link_is_refused(place, tmp_path):
    (tmp_path / "real").mkdir(0o700)
    place.symlink_to(tmp_path / "real")
    with pytest.raises(ConfigError, match="not a symbolic link"):
        opened(place)


def test_a_folder_of_somebody_else_is_refused(place, monkeypatch):
    opened(place)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ConfigError, match="belongs to the user"):
        opened(place)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_takes_nothing_is_told_once(place, number, monkeypatch, caplog):
    mine = opened(place)
    mine.put(KEY, b"code")

    def fails(*args, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(code_folder.os, "rename", fails)
    for i in range(3):
        mine.put(code_key("test", str(i)), b"code")
    assert caplog.text.count(os.strerror(number)) == 1
    assert entries(place) == [KEY]  # nothing half written
    assert mine.get(KEY) == b"code"


def test_a_folder_that_is_removed_serves_nothing(place, caplog):
    mine = opened(place)
    place.rmdir()
    mine.put(KEY, b"code")
    assert mine.get(KEY) is None
    assert "is of no use" in caplog.text


def test_a_process_without_a_free_descriptor_drops_nothing(place, monkeypatch, caplog):
    mine = opened(place)
    mine.put(KEY, b"code")

    def fails(*args, **options):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(code_folder.os, "open", fails)
    assert mine.get(KEY) is None
    monkeypatch.undo()
    assert os.strerror(errno.EMFILE) in caplog.text
    assert mine.get(KEY) == b"code"


def test_what_was_used_longest_ago_goes_first(place):
    mine = opened(place, entries=10)
    keys = [code_key("test", str(i)) for i in range(12)]
    for i, key in enumerate(keys[:10]):
        mine.put(key, b"code")
        os.utime(place / key, (i, i))
    assert mine.get(keys[0]) == b"code"  # it is used, so it is not the next
    for key in keys[10:]:
        mine.put(key, b"code")
    assert len(entries(place)) <= 10
    assert {keys[0], keys[10], keys[11]} <= {*entries(place)}
    assert keys[1] not in entries(place)


def test_bytes_are_bounded(place):
    mine = opened(place, size=10_000)
    for i in range(40):
        mine.put(code_key("test", str(i)), bytes(1000))
    assert sum(each.stat().st_size for each in place.iterdir()) <= 10_000
    mine.put(KEY, bytes(MAX_CODE + 1))
    assert mine.get(KEY) is None


def test_what_a_process_left_half_written_is_removed(place):
    mine = opened(place)
    old, new = place / f".{'0' * 16}", place / f".{'1' * 16}"
    for file in (old, new):
        file.touch()
    os.utime(old, (0, 0))
    mine.put(KEY, b"code")
    assert entries(place) == [new.name, KEY]


def test_a_key_is_no_path(place):
    mine = opened(place)
    for key in ("../key", KEY.upper(), KEY + "\n", ""):
        with pytest.raises(ValueError, match="SHA-256 in hexadecimal"):
            mine.get(key)


WRITER = """
import sys
from mplang_cache import code_key
from mplang_cache.code_folder import CodeBounds, CodeFolder

mine = CodeFolder(sys.argv[1], bytes(range(32)), "alice", CodeBounds(entries=50))
for turn in range(3):
    for i in range(100):
        key = code_key("test", str(i))
        found = mine.get(key)
        assert found in (None, str(i).encode() * 500), (i, found)
        mine.put(key, str(i).encode() * 500)
"""


def test_processes_at_once_see_whole_entries(place):
    command = [sys.executable, "-c", WRITER, str(place)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for each in writers:
        _, told = each.communicate()
        assert each.returncode == 0, told
        assert "dropped" not in told
    assert len(entries(place)) <= 50 + 2 * code_folder.BETWEEN
    assert all(not name.startswith(".") for name in entries(place))


# -- the key


def test_a_key_is_made_once(tmp_path):
    path = tmp_path / "state" / "code.key"
    assert read_or_make_key(str(path)) == read_or_make_key(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_key_that_another_process_makes_meanwhile_counts(tmp_path, monkeypatch):
    path, link, theirs = tmp_path / "code.key", os.link, []

    def late(made, to):
        monkeypatch.setattr(os, "link", link)
        theirs.append(read_or_make_key(str(path)))
        link(made, to)

    monkeypatch.setattr(os, "link", late)
    assert [read_or_make_key(str(path))] == theirs == [path.read_bytes()]


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda path: path.chmod(0o640), "is open to other users"),
        (lambda path: path.write_bytes(b"short"), "has 5 bytes, of 32 or more"),
        (a_link, "not a key"),
        (a_pipe, "it is not a file"),
    ],
)
def test_a_key_that_is_not_its_owners_alone_is_refused(tmp_path, harm, told):
    path = tmp_path / "within" / "code.key"
    read_or_make_key(str(path))
    harm(path)
    with pytest.raises(ConfigError, match=told):
        read_or_make_key(str(path))
