"""What users install: wheels, in fresh environments and without constraints; ``make test-wheels``.

Each README says what its programs need; they run where just that is installed.
"""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
from pathlib import Path

import pytest
from environments import ROOT, install_line, make_environment, program_of, run, wheels
from packages import PACKAGES, PUBLISHED, label

import mplang_core

pytestmark = [pytest.mark.wheels, pytest.mark.timeout(600)]


def readme(package: Path) -> str:
    """Return the README of a package."""
    return (package / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_a_wheel_has_code_a_license_and_metadata(package):
    with zipfile.ZipFile(wheels()[label(package)]) as wheel:
        names = wheel.namelist()
        info = f"{label(package).replace('-', '_')}-{mplang_core.__version__}.dist-info/"
        metadata = wheel.read(f"{info}METADATA").decode()
    module = label(package).replace("-", "_")
    code = {f"{module}/__init__.py", f"{module}/py.typed"}
    if package.name == "mplang_core_stubs":
        module = "mplang_core-stubs"
        code = {f"{module}/_installed.pyi", f"{module}/py.typed"}
    assert {name.partition("/")[0] for name in names} == {module, info.rstrip("/")}
    assert {*code, f"{info}licenses/LICENSE"} <= {*names}
    assert not [name for name in names if re.search(r"(^|/)(conftest|test_\w+)\.py$", name)]
    assert "License-Expression: Apache-2.0" in metadata
    assert "](../" not in metadata


@pytest.mark.parametrize("package", PUBLISHED, ids=label)
def test_a_source_distribution_has_what_the_wheel_is_built_of(package):
    """The wheels are built from it, so nothing lacks."""
    base = f"{label(package).replace('-', '_')}-{mplang_core.__version__}"
    with tarfile.open(ROOT / "dist" / f"{base}.tar.gz") as archive:
        names = {name.removeprefix(f"{base}/") for name in archive.getnames()}
    source = "mplang_core/" if package == ROOT else "src/"
    beside = {name for name in names if not name.startswith(source)}
    extra = {"CHANGELOG.md"} if package == ROOT else set()
    assert beside - {".gitignore"} == {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml"} | extra


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_the_programs_of_a_readme_run_where_it_says_what_to_install(package, tmp_path):
    text, name = readme(package), label(package)
    python = make_environment(tmp_path / "env", install_line(text, name))
    installed = json.loads(run(python, "-c", INSTALLED))
    assert {name} <= set(installed) <= set(wheels())
    assert set(installed.values()) == {mplang_core.__version__}
    program = tmp_path / "program.py"
    imported = "" if name == "mplang-core-stubs" else f"import {name.replace('-', '_')}\n\n"
    program.write_text(f"{imported}{program_of(text)}", encoding="utf-8")
    run(python, "-I", program, cwd=tmp_path)


NOT_OF_ANALYSTS = {"mplang-worker", "starlette", "uvicorn", "uvloop", "fastapi", "typer", "duckdb"}


def test_an_analyst_installs_no_worker(tmp_path):
    python = make_environment(tmp_path / "env", ["mplang-http"])
    assert not NOT_OF_ANALYSTS & set(run(python, "-c", NAMES).split())


NAMES = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"


INSTALLED = """
import json, importlib.metadata as metadata
found = {d.name: d.version for d in metadata.distributions() if d.name.startswith("mplang")}
print(json.dumps(found))
"""
