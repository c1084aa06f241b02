"""Measurement of a worker: each file of its configuration and of its code counts."""

from __future__ import annotations

import subprocess
import sys

import pytest
from mplang_tee import measurement
from typer import Typer
from typer.testing import CliRunner


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return a folder that is all that Python imports from."""
    folder = tmp_path / "code"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "module.py").write_text("x = 1\n")
    (folder / "inner").mkdir()
    (folder / "inner" / "other.py").write_text("y = 1\n")
    monkeypatch.setattr(measurement, "_folders", lambda: [folder, folder / "inner"])
    return folder


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "worker.yaml"
    file.write_text("name: cloud\n")
    return file


def test_each_file_counts(code, config, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "module.py").write_text("z = 1\n")
    digests = {measurement.measure([config])}
    for change in (
        lambda: config.write_text("name: clown\n"),
        lambda: (code / "package" / "module.py").write_text("x = 2\n"),
        lambda: (code / "inner" / "other.py").write_text("y = 2\n"),
        lambda: (code / "package" / "more.so").write_bytes(b"\0"),
        lambda: (code / "inner" / "other.py").rename(code / "inner" / "another.py"),
        lambda: (code / "package" / "link").symlink_to("nowhere"),
        lambda: (code / "package" / "sourceless.pyc").write_bytes(b"\0"),
        lambda: (code / "linked").symlink_to(elsewhere),
        lambda: (elsewhere / "module.py").write_text("z = 2\n"),
        lambda: (code / "around").symlink_to(code),
    ):
        change()
        digests.add(measurement.measure([config]))
    assert len(digests) == 11
    assert measurement.measure([]) not in digests


def test_an_archive_on_the_path_counts(tmp_path, monkeypatch):
    archive = tmp_path / "code.zip"
    monkeypatch.setattr(measurement, "_folders", lambda: [archive])
    digests = set()
    for content in (b"one", b"two"):
        archive.write_bytes(content)
        digests.add(measurement.measure([]))
    assert len(digests) == 2


def test_cached_bytecode_and_the_place_of_folders_do_not_count(code, config, tmp_path, monkeypatch):
    before = measurement.measure([config])
    (code / "package" / "__pycache__").mkdir()
    (code / "package" / "__pycache__" / "module.pyc").write_bytes(b"\0")
    moved = tmp_path / "elsewhere"
    code.rename(moved)
    monkeypatch.setattr(measurement, "_folders", lambda: [moved, moved / "inner"])
    assert measurement.measure([config]) == before


def test_what_a_new_process_imports_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    folders = measurement._folders()
    assert tmp_path in folders
    asked = [sys.executable, "-c", "import mplang_tee; print(mplang_tee.__file__)"]
    place = subprocess.run(asked, capture_output=True, check=True, text=True).stdout.strip()
    assert any(place.startswith(str(folder)) for folder in folders)


def test_the_command_prints_it(code, config):
    from mplang_tee.command import measure

    app = Typer()
    app.command()(measure)
    printed = CliRunner().invoke(app, [str(config)])
    assert printed.stdout.strip() == measurement.measure([config]).hex()
    missing = CliRunner().invoke(app, [str(config) + ".none"])
    assert "mplang measure" in str(missing.exception)


def test_swap_space(tmp_path, monkeypatch):
    swaps = tmp_path / "swaps"
    monkeypatch.setattr(measurement, "SWAPS", swaps)
    assert not measurement.is_swapping()
    swaps.write_text("Filename Type Size Used Priority\n")
    assert not measurement.is_swapping()
    swaps.write_text("Filename Type Size Used Priority\n/swapfile file 1 0 -2\n")
    assert measurement.is_swapping()
