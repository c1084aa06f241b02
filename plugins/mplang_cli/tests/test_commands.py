"""Commands of ``mplang`` that plugins bring."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from wheels import install, make_wheel

GREET = """
from typing import Annotated
import typer

def greet(name: Annotated[str, typer.Argument(help="Whom.")], loud: bool = False) -> None:
    '''Greet somebody.'''
    typer.echo(f"hello, {name}{'!' if loud else ''}")

def run() -> None:
    '''Hide a command of the core.'''
    typer.echo("hidden")
"""


@pytest.fixture(scope="module")
def mplang(tmp_path_factory):
    """Run ``mplang`` where one plugin has commands that work, and another one that does not."""
    folder = tmp_path_factory.mktemp("commands")
    points = {"mplang.commands": ["greet", "run"]}
    good = make_wheel(folder, "mplang-greeter", "greeter", GREET, points)
    bad = make_wheel(folder, "mplang-sulker", "sulker", "1 / 0", {"mplang.commands": ["sulk"]})
    for wheel in (good, bad):
        install(folder / "site", wheel)
    # an entry point of a command names a function
    info = next((folder / "site").glob("mplang_greeter-*"))
    text = "[mplang.commands]\ngreet = greeter:greet\nrun = greeter:run\n"
    (info / "entry_points.txt").write_text(text)

    def run(*args):
        env = {**os.environ, "PYTHONPATH": str(folder / "site"), "COLUMNS": "200"}
        command = [sys.executable, "-m", "mplang_cli.cli", *args]
        return subprocess.run(command, capture_output=True, text=True, env=env)

    return run


def test_a_command_of_a_plugin_is_one_of_mplang(mplang):
    done = mplang("greet", "Ada", "--loud")
    assert (done.returncode, done.stdout) == (0, "hello, Ada!\n"), done.stderr
    assert "Greet somebody." in mplang("--help").stdout
    assert "Whom." in mplang("greet", "--help").stdout


def test_a_command_that_does_not_load_spoils_no_other(mplang):
    told = mplang("--help")
    assert told.returncode == 0
    assert "Does not work: see mplang doctor." in told.stdout
    done = mplang("sulk", "--much", "now")
    assert done.returncode == 1
    assert done.stderr.startswith("mplang: the plugin 'sulk' of mplang-sulker 1.0 did not load")
    assert "ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_plugin_hides_no_command_of_the_core(mplang):
    assert "hidden" not in mplang("run", "--help").stdout
    assert mplang("--help").stdout.count("│ run ") == 1


def test_an_unknown_command_is_told(mplang):
    done = mplang("fly")
    assert done.returncode == 2
    assert "No such command 'fly'" in done.stderr
