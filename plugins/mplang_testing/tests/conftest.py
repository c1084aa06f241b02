"""Running a suite on something that is wrong, as its author would."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

import mplang_testing
import pytest

from mplang_core import introspect
from mplang_core.plugins.manager import NAMESPACES

PLAIN = ["-q", "-p", "no:cacheprovider"]

# pytester forgets which modules were imported while it ran; these are to stay the same ones
introspect.list_plugins()
for _name in mplang_testing.__all__:
    getattr(mplang_testing, _name)


def forget_faults() -> None:
    for space in NAMESPACES:
        for name in space.names():
            if name.startswith("fault."):
                space.remove(name)


@pytest.fixture
def run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., pytest.RunResult]]:
    """Run a test file, in this process and a folder of its own."""

    # a plugin that is imported anew for each of them takes most of its time
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(source: str, *args: str) -> pytest.RunResult:
        forget_faults()
        pytester.makepyfile(textwrap.dedent(source))
        return pytester.runpytest_inprocess(*PLAIN, *args)

    yield run
    forget_faults()


@pytest.fixture
def caught(run: Callable[..., pytest.RunResult]) -> Callable[..., None]:
    """Run a test file with a fault, and check which test fails and what it says."""

    def caught(source: str, test: str, *lines: str) -> None:
        result = run(source, "-k", test)
        outcomes = result.parseoutcomes()
        assert outcomes.get("failed", 0) >= 1, result.stdout.str()
        assert not outcomes.get("errors"), result.stdout.str()
        for line in lines:
            result.stdout.fnmatch_lines([f"*{line}*"])

    return caught
