"""``mplang new-plugin``: what it writes is clean, and what it does not write it says."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from mplang_cli.authoring import check_name, new_plugin
from mplang_cli.cli import app
from typer.testing import CliRunner

from mplang_core.errors import ConfigError

LONGEST = "a2345678_b2345678_c2345678_d23"


@pytest.mark.parametrize("name", ["a", "weather", "my_ops2", "mplangs", LONGEST])
def test_good_names(name):
    check_name(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "got ''"),
        ("My-Ops", "try 'my_ops'"),
        ("Émile", "got 'Émile'"),
        ("2much", "begins with a letter"),
        ("_x", "try 'x'"),
        ("x_", "try 'x'"),
        ("a__b", "try 'a_b'"),
        ("class", "word of Python"),
        (LONGEST + "4", "at most 30"),
        ("../up", "try 'up'"),
        ("/etc/x", "try 'etc_x'"),
        ("a/b", "try 'a_b'"),
        ("a\nb", "try 'a_b'"),
        ("a b", "try 'a_b'"),
        ("$name", "try 'name'"),
        ("mplang_x", "has the package mplang_NAME: give its name alone, got 'mplang_x'; try 'x'"),
        ("mplang-x", "got 'mplang-x'; try 'x'"),
        ("mplang_mplang_x", "try 'x'"),
        ("mplang_class", r"got 'mplang_class'\n"),
        ("core", "taken by mplang-core"),
        ("simp", "taken by mplang-core"),
        ("tensor", "taken by mplang-core"),
        ("simulator", r"taken by mplang-simulator \d"),
        ("jax", "taken by mplang-jax"),
        ("spu", "taken by mplang-spu"),
    ],
)
def test_bad_names(name, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=told):
        new_plugin(name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    there = tmp_path / "mplang_weather"
    there.symlink_to(tmp_path / "nowhere")  # also one that leads nowhere
    with pytest.raises(ConfigError, match="mplang_weather exists already; nothing was written"):
        new_plugin("weather", tmp_path)
    there.unlink()
    there.mkdir()
    with pytest.raises(ConfigError, match="exists already"):
        new_plugin("weather", tmp_path)
    assert list(there.iterdir()) == []


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere/mplang_weather: No such file or directory"):
        new_plugin("weather", tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_all_or_nothing_is_written(tmp_path, monkeypatch):
    def full(self, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_text", full)
    with pytest.raises(ConfigError, match="No space left"):
        new_plugin("weather", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("compiler", [False, True])
def test_nothing_of_the_template_is_left(tmp_path, compiler):
    made = new_plugin("my_ops", tmp_path, compiler=compiler)
    assert made.distribution == "mplang-my-ops"
    written = {p.relative_to(made.path).as_posix() for p in made.path.rglob("*") if p.is_file()}
    assert written == set(made.files)
    for file in made.files:
        text = (made.path / file).read_text(encoding="utf-8")
        assert "$" not in text
        assert not re.search(r"\bhello\b|weather", text)


# -- the command


def test_the_command_shows_the_tree_and_what_to_do_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["new-plugin", "weather"])
    assert done.exit_code == 0
    assert "├── kernels.py           what the ops do at a party" in done.output
    assert done.output.endswith(
        "\n    pip install -e './mplang_weather[test]'\n    pytest ./mplang_weather\n"
    )


def test_the_command_writes_a_compiler(tmp_path):
    done = CliRunner().invoke(app, ["new-plugin", "weather", "--compiler", "--path", str(tmp_path)])
    assert done.exit_code == 0
    assert "├── compiler.py          from a function to a program" in done.output


def test_the_command_prints_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some where").mkdir()
    done = CliRunner().invoke(app, ["new-plugin", "weather", "--path", "some where", "--json"])
    told = json.loads(done.output)
    assert told["distribution"] == "mplang-weather"
    assert told["path"] == os.path.join("some where", "mplang_weather")
    assert "src/mplang_weather/plugin.py" in told["files"]
    assert told["next"][1] == "pytest './some where/mplang_weather'"


def test_the_command_tells_errors_and_their_codes_in_a_line(tmp_path):
    command = [os.path.join(os.path.dirname(sys.executable), "mplang"), "new-plugin", "../x"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("mplang: a plugin's name is")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(" (mplang explain C006)\n")


# -- the quality of what is written


def tool(name, *args, cwd):
    done = subprocess.run(
        [sys.executable, "-m", name, *args], capture_output=True, text=True, cwd=cwd
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs(tools=["ruff"])
@pytest.mark.parametrize("compiler", [False, True])
@pytest.mark.parametrize("name", ["w", "weather", LONGEST])
def test_it_is_clean_to_ruff(tmp_path, name, compiler):
    made = new_plugin(name, tmp_path, compiler=compiler)
    tool("ruff", "check", "--no-cache", ".", cwd=made.path)
    tool("ruff", "format", "--no-cache", "--check", ".", cwd=made.path)


@pytest.mark.long("mypy checks a plugin, without a cache")
@pytest.mark.needs(tools=["mypy"])
@pytest.mark.parametrize("compiler", [False, True])
def test_it_is_clean_to_mypy(tmp_path, compiler):
    made = new_plugin("weather", tmp_path, compiler=compiler)
    tool("mypy", cwd=made.path)
