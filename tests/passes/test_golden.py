"""Programs in files: the first one, and what becomes of it by a pass, or at each party."""

from __future__ import annotations

from pathlib import Path

import mplang_passes
import pytest
from mplang_cli.text import parse
from mplang_testing import dialect  # noqa: F401
from passes import party_parts  # noqa: F401  (declares the ops)

import mplang_core as mp
from mplang_core.ir import Program, print_program
from mplang_core.simp.projection import project

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*/*.mpl"))


def becomes(name: str, program: Program) -> list[Program]:
    """Return what a golden file shows after the program."""
    if name == "project":
        return [project(program, rank) for rank in program.mask]
    return [getattr(mplang_passes, name)(program)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_program_becomes_what_stands_below_it(path):
    before, *after = path.read_text().split("\n\n")
    program = parse(before)
    mp.verify(program)
    made = becomes(path.parent.name, program)
    for each in made:
        mp.verify(each)
    assert [print_program(each).strip() for each in made] == [text.strip() for text in after]
    assert [parse(text).digest for text in after] == [each.digest for each in made]
