"""Packages import what others export, and none of their inner modules."""

from __future__ import annotations

import pytest
from public_tiers import ROOT, exports, inner_names, sources, tiers


def test_packages_import_only_what_others_export():
    """So a package's inner modules can change without a change in another one."""
    inner = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for package, folder in sources().items()
        for file in sorted(folder.rglob("*.py"))
        for line, name in inner_names(file.read_text(), package)
    ]
    assert not inner, "import them of `mplang_x` or `mplang_x.ext`, which export them"


@pytest.mark.parametrize(
    "source",
    [
        "from mplang_data.stored import Entry",
        "from mplang_data import stored",
        "from mplang_data.ext import no_such_name",
        "import mplang_data.stored",
        "def later():\n    from mplang_stablehlo.intervals import intervals",
        "from mplang_core.ir import Program",
        "from mplang_core import driver",
        "import mplang_core.ir.wire as wire",
        "PRELOADED = ['mplang_stablehlo.executable']",
    ],
)
def test_what_no_package_exports_is_found(source):
    assert len(list(inner_names(source, "mplang_guard"))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import mplang_data",
        "from mplang_data import Source",
        "from mplang_data.ext import Entry",
        "from mplang_tables import arrow",
        "from mplang_guard.kernels import aggregate",
        "from mplang_core import Simulator, ir",
        "PRELOADED = ['mplang_stablehlo.ext', 'mplang_guard.kernels', 'mplang-guard']",
    ],
)
def test_what_packages_export_may_be_imported(source):
    assert not list(inner_names(source, "mplang_guard"))


@pytest.mark.parametrize("package", sorted(sources()))
def test_a_package_exports_a_name_once(package):
    """There is one way to import a name, and it says for whom the name is."""
    public = tiers(package)
    assert not public[package] & public.get(f"{package}.ext", frozenset())


def test_exports_of_a_module_are_read_of_its_text():
    assert exports("from a import b as b, c as d, e\nimport f as f") == {"b", "f"}
    assert exports("from a import b as b\n__all__ = ['x']") == {"x"}
