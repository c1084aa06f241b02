"""No line of what runs programs names a native library: kernels declare what they need."""

from __future__ import annotations

import re

import pytest
from packages import ROOT

NAMES = re.compile(r"(?<![a-z])(?:lib)?spu(?![a-z])|brpc|cheetah|aby3|semi2k", re.IGNORECASE)
INEVITABLE = {
    # versions are read from the metadata of packages, before anything is imported or declared
    "plugins/mplang_http/src/mplang_http/wire/versions.py": [
        'found = {name: _version(name) for name in (CORE, *OWN, "jax", "spu")}'
    ]
}


@pytest.mark.parametrize("package", ["mplang_worker", "mplang_http", "mplang_simulator"])
def test_what_runs_programs_names_no_native_library(package):
    found = {}
    for path in sorted((ROOT / "plugins" / package / "src").rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if named := [line.strip() for line in lines if NAMES.search(line)]:
            found[str(path.relative_to(ROOT))] = named
    prefix = f"plugins/{package}/"
    assert found == {path: INEVITABLE[path] for path in INEVITABLE if path.startswith(prefix)}


@pytest.mark.parametrize("line", ["calls = natives['spu']", "a device of kind SPU", "of libspu"])
def test_a_line_that_names_one_is_noticed(line):
    assert NAMES.search(line)
