"""Real components that tests start, and the Debian packages that have them.

    python tests/runner/components.py            # say what is missing
    python tests/runner/components.py install    # install it, as root; this is make components
    python tests/runner/components.py install spark    # Java for make spark, which has the rest

A test says what it needs by ``@pytest.mark.needs(components=["chromium"])``, a fixture by
:func:`need`. Where that is missing, the test is skipped and says what to install; ``.ci/run`` runs
pytest with ``--all-components``, which makes it a failure. To install, this module needs nothing
but the standard library.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True)
class Component:
    """A program that tests start.

    Attributes:
        packages: its packages in Debian.
        is_there: returns whether it is installed.
        target: of make, which installs it.
    """

    packages: tuple[str, ...]
    is_there: Callable[[], object]
    target: str = "components"


def _on_path(*programs: str) -> Callable[[], bool]:
    return lambda: all(map(shutil.which, programs))


def spark_home() -> str | None:
    """Return the folder of Spark that MPLANG_SPARK_HOME names, or that of ``make spark``."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    home = os.environ.get("MPLANG_SPARK_HOME") or os.path.join(root, ".venv-spark", "pyspark")
    return home if os.path.isdir(os.path.join(home, "jars")) else None


COMPONENTS = {
    "chromium": Component(("chromium", "chromium-driver"), _on_path("chromium", "chromedriver")),
    "postgresql": Component(("postgresql",), lambda: glob.glob("/usr/lib/postgresql/*/bin/initdb")),
    "spark": Component(
        ("default-jre-headless",), lambda: shutil.which("java") and spark_home(), "spark"
    ),
    "swtpm": Component(("swtpm", "tpm2-tools"), _on_path("swtpm", "tpm2_quote")),
    "systemd": Component(("systemd",), _on_path("systemd-analyze")),
    "valgrind": Component(("valgrind",), _on_path("valgrind", "callgrind_annotate")),
}


_OF_CI = tuple(name for name, each in COMPONENTS.items() if each.target == "components")


def missing(names: Collection[str] = _OF_CI) -> list[str]:
    """Return the names, of these, of components that are not installed."""
    return [name for name in names if not COMPONENTS[name].is_there()]


def need(config: pytest.Config, *names: str) -> None:
    """Skip the test that runs unless these components are there; with the option, let it fail."""
    import pytest

    if absent := missing(names):
        refuse = pytest.fail if config.getoption("all_components") else pytest.skip
        targets = " ".join(dict.fromkeys(COMPONENTS[name].target for name in absent))
        refuse(f"needs {', '.join(absent)}; run: make {targets} (Debian, as root)")


def install(names: Collection[str]) -> None:
    """Install components with apt-get.

    Raises:
        subprocess.CalledProcessError: apt-get failed.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    packages = [each for name in names for each in COMPONENTS[name].packages]
    print(f"==> installing {', '.join(packages)}", flush=True)
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        subprocess.run(
            ["apt-get", "--quiet=2", *command], env=environment, check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip


def main(arguments: list[str]) -> int:
    """Install what is missing, or only say it; return 1 where something is missing then."""
    if arguments == ["install", "spark"]:
        if not shutil.which("java"):
            install(["spark"])
        return 0
    wanted = missing()
    if wanted and arguments == ["install"]:
        if os.getuid() != 0 or not shutil.which("apt-get"):
            print("make components installs Debian's packages with apt-get, as root")
        else:
            install(wanted)
            wanted = missing()
    if wanted:
        packages = [each for name in wanted for each in COMPONENTS[name].packages]
        print(f"missing: {', '.join(wanted)} (Debian's packages: {', '.join(packages)})")
        return 1
    print(f"components of the tests: {', '.join(_OF_CI)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
