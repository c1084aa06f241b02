"""Run the smoke tests on the lowest and the highest versions that the bounds allow.

``make test-versions`` runs it. For each Python that the packages name and the machine has, it makes
environments in ``.venv-versions`` of the wheels in ``dist``, and runs the tests marked ``smoke``
there. An environment leaves out packages that do not allow its Python; one more leaves out SPU,
which pins JAX.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from environments import CLEAN, ROOT, make_environment
from packages import PACKAGES, extras, label, pyproject
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from conftest import SMOKE

PYTHONS = ("3.11", "3.12", "3.13")
HOME = ROOT / ".venv-versions"
TOOLS = pyproject(ROOT)["project"]["optional-dependencies"]["test-core"]
RESOLUTIONS = {"lowest": "lowest-direct", "highest": "highest"}
SPU = "mplang-spu"
WITHOUT_WHEELS = ("pyspark-client",)  # of Python alone, and published as a source only


@dataclass(frozen=True, slots=True)
class Case:
    """One environment.

    Attributes:
        python: minor version of Python.
        resolution: ``lowest`` or ``highest``.
        without: packages that are left out.
    """

    python: str
    resolution: str
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "-".join([self.python, self.resolution, *(f"no-{name}" for name in self.without)])

    def packages(self) -> list[Path]:
        """Return the packages of this repository that the environment gets."""
        return [
            each
            for each in PACKAGES
            if label(each) not in self.without
            and SpecifierSet(pyproject(each)["project"]["requires-python"]).contains(self.python)
            and not self._needs_one_that_is_left_out(each)
        ]

    def _needs_one_that_is_left_out(self, package: Path) -> bool:
        lines = pyproject(package)["project"]["dependencies"]
        return bool({Requirement(line).name for line in lines} & set(self.without))

    def requirements(self) -> list[str]:
        """Return all that the environment gets, named, so that each has its lowest version."""
        lines = set()
        for each in self.packages():
            project = pyproject(each)["project"]
            lines |= {*project["dependencies"], *itertools.chain(*extras(each).values())}
        others = {line for line in lines if not line.startswith("mplang-")}
        return [*map(label, self.packages()), *sorted(others | {*TOOLS})]


def cases() -> Iterator[Case]:
    """Yield the environments to make."""
    for python in PYTHONS:
        for resolution in RESOLUTIONS:
            case = Case(python, resolution)
            yield case
            if SPU in map(label, case.packages()) and resolution == "highest":
                yield Case(python, resolution, (SPU,))


def interpreter(python: str) -> str | None:
    """Return the path of an interpreter, also one of pyenv; ``None`` where it is not installed."""
    here = shutil.which(f"python{python}")
    roots = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for path in [here, *map(str, sorted(roots.glob(f"{python}.*/bin/python")))]:
        if (
            path is not None
            and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0
        ):
            return path
    return None


def run(case: Case, arguments: Sequence[str]) -> bool:
    """Make an environment, run the smoke tests in it; return whether they passed."""
    path = interpreter(case.python)
    assert path is not None
    home = HOME / str(case)
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(exist_ok=True)
    print(f"==> {case}: installing", flush=True)
    # of wheels: the lowest version has none for a Python that is newer than it
    options = ["--only-binary", ":all:", "--resolution", RESOLUTIONS[case.resolution]]
    for each in WITHOUT_WHEELS:
        options += ["--no-binary", each]
    python = make_environment(home, case.requirements(), path, *options)
    listed = subprocess.run(
        [Path(sys.executable).with_name("uv"), "pip", "freeze", "--python", python],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (home / "versions.txt").write_text(listed.stdout)
    folders = [ROOT / "tests", *(each / "tests" for each in case.packages() if each != ROOT)]
    files = [ROOT / name for name in SMOKE]
    done = subprocess.run(
        [
            *(home / "bin" / "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT),
            *("-m", "smoke and not wheels", "-q", "-p", "no:cacheprovider", *arguments),
            *(file for file in files if {*file.parents} & {*folders}),
        ],
        cwd=home,
        env=CLEAN,
    )
    print(f"==> {case}: pytest ended with {done.returncode}", flush=True)
    return done.returncode == 0


def main() -> int:
    """Run all environments; return 1 where one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="A part of the names of the environments.")
    options, arguments = parser.parse_known_args()
    results = {}
    for case in cases():
        if options.only in str(case):
            there = interpreter(case.python) is not None
            results[case] = ("failed", "passed")[run(case, arguments)] if there else "SKIPPED"
    for case, result in results.items():
        why = f": Python {case.python} is not installed here" if result == "SKIPPED" else ""
        print(f"{case!s:30} {result}{why}")
    return int("failed" in results.values() or not results)


if __name__ == "__main__":
    sys.exit(main())
