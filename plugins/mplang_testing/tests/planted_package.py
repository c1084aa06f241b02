"""A package with faults, found by its entry points, and tests of the kit that run on it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def told_of(folder: Path, entries: str, package: str, tests: str, *, only: str = "") -> str:
    """Return what pytest prints of tests of the kit, in a process of its own.

    Args:
        folder: an empty folder.
        entries: the entry points of the distribution ``faults``.
        package: the module ``faults``.
        tests: the test file.
        only: which tests, as ``-k`` of pytest; all by default.
    """
    info = folder / "faults-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faults\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    (folder / "faults.py").write_text(textwrap.dedent(package))
    (folder / "test_faults.py").write_text(textwrap.dedent(tests))
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_faults.py"]
    env = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "-k", only], cwd=folder, env=env,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return done.stdout
