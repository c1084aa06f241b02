"""What the packages declare of versions that fit."""

from __future__ import annotations

import pytest
from architecture.packages import PUBLISHED, label, pyproject
from packaging.version import Version

import mplang_core

EQUAL = {"mplang-passes", "mplang-stablehlo"}  # each party makes the program that it runs
COMPARED = {"mplang.frontends", "mplang.kernels", "mplang.passes"}
ALWAYS = ("mplang-core", "mplang-http", "mplang-worker")


@pytest.mark.parametrize("package", PUBLISHED, ids=label)
def test_a_package_fits_those_of_its_minor_version(package):
    groups, name = pyproject(package)["project"].get("entry-points", {}), label(package)
    declared = list(groups.get("mplang.compatible", {}))
    is_compared = COMPARED & groups.keys() or name in ALWAYS
    numbers = list(groups.get("mplang.pass_version", {}))
    assert (len(numbers) == 1 and numbers[0].isdecimal()) if name in EQUAL else numbers == []
    if name in EQUAL or not is_compared:
        assert declared == []
        return
    (since,) = map(Version, declared)
    here = Version(mplang_core.__version__)
    assert since.release[:2] == here.release[:2]
    assert since <= here
