"""The kit costs nothing where it is not used, and a worker needs neither pytest nor Hypothesis."""

from __future__ import annotations

import subprocess
import sys

import mplang_testing
import pytest

TOOLS = ("pytest", "_pytest", "hypothesis", "mplang_testing")


def loaded_after(source: str) -> set[str]:
    report = f"import sys; print(*[m for m in {TOOLS!r} if m in sys.modules])"
    command = [sys.executable, "-c", f"{source}\n{report}"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_a_look_up_loads_the_ops_of_the_kit_and_not_its_suites():
    source = "import mplang_core, mplang_cli.cli"
    assert loaded_after(source) == set()
    assert loaded_after(f"{source}; mplang_core.registry.list_ops()") == {"mplang_testing"}


@pytest.mark.parametrize("module", ["dialect", "programs", "vault"])
def test_what_a_worker_needs_is_light(module):
    assert loaded_after(f"import mplang_testing.{module}") == {"mplang_testing"}


def test_without_the_tools_it_says_what_to_install():
    source = "import sys; sys.modules['pytest'] = None; from mplang_testing import FeopSuite"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert "ImportError: mplang_testing.FeopSuite needs pytest: pip install mplang-" in (
        done.stderr
    )


def test_the_public_names_are_those_that_are_written_down():
    assert set(mplang_testing._HOMES) == set(mplang_testing.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = mplang_testing.no_such_name
