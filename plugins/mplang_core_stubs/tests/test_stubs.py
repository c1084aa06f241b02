"""Types of ``mp``: what mypy says of a program, and that the stub has the installed names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mplang_core as mp

HERE = Path(__file__).parent
STUB = HERE.parent / "src" / "mplang_core-stubs" / "_installed.pyi"
PROGRAM = HERE / "expectations.py"
PACKAGES = (
    *("analysis", "cli", "data", "dp", "guard", "he", "http", "ibis"),
    *("joins", "match", "phe", "simulator", "tee", "trace"),
)


@pytest.mark.needs(*PACKAGES)
def test_the_stub_has_the_names_of_all_packages():
    """A package that adds a name changes this file: run with MPLANG_WRITE_GOLDEN=1."""
    from mplang_cli.stubs import stub

    written = stub([f"mplang-{name}" for name in PACKAGES])
    if os.environ.get("MPLANG_WRITE_GOLDEN"):
        STUB.write_text(written, encoding="utf-8")
    assert written == STUB.read_text(encoding="utf-8")


@pytest.mark.needs(*PACKAGES)
def test_packages_that_add_names_are_those_of_the_stub():
    from packages import PUBLISHED, label, pyproject

    adding = {
        label(package)
        for package in PUBLISHED
        if {"mplang.api", "mplang.backends"}
        & pyproject(package)["project"].get("entry-points", {}).keys()
    }
    assert adding == {f"mplang-{name}" for name in PACKAGES}
    for package in PUBLISHED:
        required = pyproject(package)["project"]["dependencies"]
        assert any("mplang-core-stubs" in line for line in required) == (label(package) in adding)


@pytest.mark.needs("simulator")
def test_dir_has_the_names_that_are_installed_and_imports_none():
    code = (
        "import sys, mplang_core as m; print(*dir(m)); assert 'mplang_simulator' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"ClusterSpec", "Simulator", "evaluate"} <= set(done.stdout.split())


@pytest.mark.needs("cli")
def test_a_name_of_another_package_is_written_too(tmp_path, monkeypatch):
    from mplang_cli import stubs
    from mplang_cli.cli import app
    from typer.testing import CliRunner

    file = tmp_path / stubs.FILE
    file.parent.mkdir()
    file.write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    result = CliRunner().invoke(app, ["stubs"])
    assert result.exit_code == 0, result.output
    written = file.read_text()
    compile(written, str(file), "exec")
    for name in mp._extensions.names():
        assert f'    "{name}",' in written


@pytest.mark.long("mypy reads the packages and their libraries")
@pytest.mark.needs(*PACKAGES)
def test_mypy_knows_the_types_that_users_meet(tmp_path):
    """By the installed packages alone, as it would in another repository."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    said: dict[str, str] = {}
    for number, text in re.findall(r"^program.py:(\d+): \w+: (.*)$", done.stdout, re.MULTILINE):
        said.setdefault(number, text)  # the lines that follow explain it
    assert said, done.stdout + done.stderr
    wrong = []
    for number, line in enumerate(program.read_text().splitlines(), start=1):
        text = _without_modules(said.pop(str(number), ""))
        code, _, wanted = line.strip().partition("  # ")
        if wanted.startswith("is "):
            if not text.startswith(f'Revealed type is "{wanted.removeprefix("is ")}'):
                wrong.append(f"{code}: expected {wanted}, mypy: {text}")
        elif wanted.startswith("error: "):
            if not text.startswith(wanted.removeprefix("error: ")):
                wrong.append(f"{code}: expected an {wanted}, mypy: {text}")
        elif text:
            wrong.append(f"{code}: expected nothing, mypy: {text}")
    assert not wrong, "\n".join(wrong)


def _without_modules(text: str) -> str:
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])", "", text)
