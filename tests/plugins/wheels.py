"""Wheels, made and installed as real distributions: in a folder, or a new environment."""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import textwrap
import venv
import zipfile
from collections.abc import Mapping, Sequence

ROOT = pathlib.Path(__file__).parents[2]
STUBS = ROOT / "plugins" / "mplang_core_stubs"  # which most packages require
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "MPLANG"))}


def make_wheel(
    folder: pathlib.Path,
    distribution: str,
    module: str,
    source: str,
    entry_points: dict[str, list[str]],
    requires: tuple[str, ...] = (),
    version: str = "1.0",
) -> pathlib.Path:
    """Write a wheel of one module; every entry point names that module."""
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {module}\n" for name in names)
        for group, names in entry_points.items()
    )
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {line}\n" for line in requires)
    info = f"{distribution.replace('-', '_')}-{version}.dist-info"
    files = {
        f"{module}.py": textwrap.dedent(source),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": points,
    }
    record = "".join(f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in files.items())
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    path = folder / f"{distribution.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def install(target: pathlib.Path, *wheels: pathlib.Path) -> None:
    """Install wheels of one module each into a folder: as pip does, by unpacking them."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as file:
            file.extractall(target)


def run(*command: object, env: Mapping[str, str] = CLEAN, cwd: pathlib.Path | None = None) -> str:
    """Run a command that must succeed; return what it printed."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=env, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def make_environment(
    home: pathlib.Path, projects: Sequence[pathlib.Path], *others: str
) -> pathlib.Path:
    """Make an environment of the wheels of projects, the stubs, and what these ask for.

    Args:
        home: an empty folder.
        projects: folders with a ``pyproject.toml``.
        *others: further packages.

    Returns:
        The folder of the environment's programs.
    """
    for project in (STUBS, *projects):
        build = ("-m", "hatchling", "build", "-t", "wheel", "-d", home / "wheels")
        run(sys.executable, *build, cwd=project)
    venv.create(home / "env", with_pip=False)
    programs = home / "env" / ("Scripts" if os.name == "nt" else "bin")
    run(
        *(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"),
        *("--python", programs / "python", "install", "--no-compile"),
        *("--constraint", ROOT / "constraints.txt"),
        *(*(home / "wheels").glob("*.whl"), *others),
    )
    return programs
