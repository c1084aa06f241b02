"""Programs in files: the first one, and what becomes of it by a pass."""

from __future__ import annotations

from pathlib import Path

import mplang_passes
import pytest
from mplang_cli.text import parse
from mplang_testing import dialect  # noqa: F401
from passes import party_parts  # noqa: F401  (declares the ops)

import mplang_core as mp
from mplang_core.ir import print_program

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*/*.mpl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_program_becomes_what_stands_below_it(path):
    before, after = path.read_text().split("\n\n")
    program = parse(before)
    mp.verify(program)
    made = getattr(mplang_passes, path.parent.name)(program)
    mp.verify(made)
    assert print_program(made).strip() == after.strip()
    assert parse(after).digest == made.digest
