"""The package: what it loads, its descriptions, examples and README."""

from __future__ import annotations

import doctest
import importlib
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from ibis_programs import KIND, sales
from mplang_ibis import ibis_compile

import mplang_core as mp


def test_nothing_heavy_is_loaded_before_an_op_runs(sim):
    text = mp.trace(mp.TraceContext(sim.cluster_spec), sales).compiler_ir()
    code = ibis_compile(lambda t: t, mp.FeSignature((KIND,))).pfunc.attrs["code"]
    assert len(code) > 10
    source = (
        "import sys, mplang_core as mp, mplang_ibis.plugin\n"
        "assert [op.name for op in mp.registry.list_ops('ibis')]\n"
        f"mp.verify(mp.parse({text!r}))\n"
        "print([m for m in ('ibis', 'duckdb', 'pyarrow', 'sqlglot', 'pandas', 'jax') "
        "if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_core_loads_none_of_it():
    source = (
        "import sys, mplang_core\n"
        "print([m for m in ('mplang_ibis', 'ibis', 'duckdb', 'pyarrow', 'sqlglot', 'pandas') "
        "if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_each_op_describes_itself_with_an_example():
    ops = {meta.name for meta in mp.registry.list_ops("ibis")}
    assert ops == {"ibis.compile", "ibis.sql"}
    for name, op in [(name, mp.registry.get(name)) for name in ops] + [("mp.sql", mp.sql)]:
        doc = op.__doc__
        assert all(part in doc for part in ("Returns:", "Raises:", "Example:")), name


@pytest.mark.parametrize(
    "name",
    ["dialects", "frontend", "query", "result_types", "sql_of_tables", "sql_text", "statement"],
)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"mplang_ibis.{name}")
    with np.printoptions(legacy=False):
        found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed


def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (pathlib.Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    namespace = {"__name__": "__main__"}
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
