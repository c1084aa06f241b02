"""`mplang --version`, and how little it and completion import."""

from __future__ import annotations

import platform
import subprocess
import sys

from mplang_cli.cli import app
from typer.testing import CliRunner

import mplang_core as mp

TEXT = f"mplang-core {mp.__version__}, mplang-cli {mp.__version__}, "
TEXT += f"Python {platform.python_version()}\n"


def test_versions_are_those_of_the_core_the_command_and_python():
    assert CliRunner().invoke(app, ["--version"]).stdout == TEXT


def test_versions_are_told_without_importing_the_framework():
    source = (
        "import sys; from mplang_cli.entry import main; sys.argv[1:] = ['--version']; main(); "
        "print([name for name in ('mplang_core', 'numpy', 'typer', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.stdout == f"{TEXT}[]\n", done.stderr


def test_completion_imports_nothing_that_only_single_commands_need():
    source = (
        "import sys, mplang_cli.cli; "
        "print([n for n in ('mplang_analysis', 'mplang_cli.artifact', 'rich') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
