"""Fresh environments of wheels, made by uv: what a user gets who installs packages by name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTHON", "PYTEST", "MPLANG", "PIP_CONSTRAINT", "VIRTUAL_ENV"))
}


def run(*command: object, cwd: Path | None = None, timeout: float = 600) -> str:
    """Run a command that must succeed; return what it printed."""
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, env=CLEAN, cwd=cwd, timeout=timeout
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def wheels() -> dict[str, Path]:
    """Return the wheels in ``dist`` by distribution; ``make wheels`` builds them."""
    found = {file.name.partition("-")[0].replace("_", "-"): file for file in DIST.rglob("*.whl")}
    assert found, "there are no wheels in dist; run make wheels"
    return found


def make_environment(
    home: Path, packages: Iterable[str], python: str = sys.executable, *options: str
) -> Path:
    """Make an environment of packages, and of what these ask for.

    Packages of this repository come from ``dist``, and nowhere else. Others have no constraint.

    Args:
        home: a folder that is not there yet.
        packages: requirements.
        python: interpreter of the environment.
        *options: of ``uv pip install``.

    Returns:
        The interpreter of the environment.
    """
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", python, home)
    ours = home / "ours.txt"
    ours.write_text("".join(f"{name} @ {file.as_uri()}\n" for name, file in wheels().items()))
    run(
        *(uv, "pip", "install", "--quiet", "--python", home / "bin" / "python"),
        *("--constraints", ours, *options, *packages),
    )
    return home / "bin" / "python"


def install_line(readme: str, default: str) -> Sequence[str]:
    """Return the packages of the first ``pip install`` of a README that names some."""
    found = re.search(r"^    pip install (mplang-.+)$", readme, re.MULTILINE)
    return [default] if found is None else found[1].split()


def program_of(readme: str) -> str:
    """Return the Python blocks of a README as one program."""
    return "\n\n".join(re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL))
