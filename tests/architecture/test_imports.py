"""What importing the core must not do, and that lower layers stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mplang_core
from mplang_core.ir import Level, op_defs

HEAVY = ("jax", "ibis", "spu", "duckdb", "pyarrow", "sqlglot", "pandas", "httpx", "starlette")


def loaded_after(source: str) -> set[str]:
    """Return which heavy packages a fresh process has loaded after running something."""
    report = f"import sys; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", f"{source}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(out.stdout.split())


@pytest.mark.parametrize(
    "source",
    [
        "import mplang_core",
        "import mplang_core as mp; mp.ClusterSpec.simple(3)",
        "import mplang_core as mp; mp.Simulator(mp.ClusterSpec.simple(2)).close()",
        "import mplang_core as mp; [op.name for op in mp.registry.list_ops()]",
        "from mplang_core.plugins import plugin_manager as m; m.records()",
        pytest.param(
            "import mplang_core as mp; mp.ClusterSpec.simple(2).device('SP0')",
            marks=pytest.mark.needs("spu"),
        ),
    ],
)
def test_no_heavy_package_is_loaded(source):
    assert loaded_after(source) == set()


@pytest.mark.needs("jax", "spu")
def test_a_program_is_read_and_verified_without_its_engine():
    """A worker's front, or a reviewer, needs neither JAX nor SPU to check a program."""
    import numpy as np

    import mplang_core as mp

    def program():
        return mp.reveal(mp.seal(np.float32(1)) + mp.seal(np.float32(2)))

    text = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program).compiler_ir()
    source = f"import mplang_core as mp; mp.verify(mp.parse({text!r}))"
    assert loaded_after(source) == set()


def test_a_name_that_is_not_there_is_an_attribute_error():
    import mplang_core as mp

    with pytest.raises(AttributeError, match="no_such_name"):
        _ = mp.no_such_name
    with pytest.raises(AttributeError, match="NoSuchBackend"):
        _ = mp.NoSuchBackend


NEUTRAL = ("mplang_core/ir", "plugins/mplang_analysis/src", "plugins/mplang_passes/src")
"""Parts that know ops by their interfaces."""


def test_no_opcode_is_named_where_ops_are_known_by_their_interfaces():
    root = Path(mplang_core.__file__).parents[1]
    opcodes = {name for name, op_def in op_defs if op_def.level is Level.PARTY}
    assert "simp.shuffle_static" in opcodes
    named = []
    for file in (file for part in NEUTRAL for file in sorted((root / part).rglob("*.py"))):
        tree = ast.parse(file.read_text())
        texts = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        texts -= {
            ast.get_docstring(node, clean=False) for node in ast.walk(tree) if _documents(node)
        }
        named += [
            (file.name, text)
            for text in texts
            if text in opcodes or text in ("simp", "func") or text.startswith(("simp.", "func."))
        ]
    assert not named


def _documents(node):
    return isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
