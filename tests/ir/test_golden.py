"""Programs in files: what is valid stays what it is, what is not is refused for its reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mplang_cli.text import parse

from mplang_core import errors
from mplang_core.ir import Program, from_bytes, print_program, to_bytes, verify

GOLDEN = Path(__file__).parent / "golden"
VALID = sorted(GOLDEN.glob("valid/*.mpl"))
INVALID = sorted(GOLDEN.glob("invalid/*.mpl"))


def by_name(path: Path) -> str:
    return path.stem


valid = pytest.mark.parametrize("path", VALID, ids=by_name)


@valid
def test_a_valid_program_verifies_and_prints_as_it_was_read(path):
    text = path.read_text()
    program = parse(text)
    verify(program)
    assert print_program(program) == text


@valid
def test_bytes_keep_the_text_the_digest_and_validity(path):
    program = parse(path.read_text())
    again = from_bytes(to_bytes(program))
    verify(again)
    assert print_program(again) == path.read_text()
    assert again.digest == program.digest
    assert to_bytes(again) == to_bytes(program)


@valid
def test_the_digest_does_not_depend_on_locations_or_name(path):
    program = parse(path.read_text())
    bare = parse(print_program(program, locations=False))
    assert all(op.location is None for op in bare.graph.walk())
    renamed = Program("another name", program.mask, program.graph)
    moved = parse(re.sub(r' at "[^"]*:\d+"$', ' at "elsewhere.py:1"', path.read_text(), flags=re.M))
    assert bare.digest == renamed.digest == moved.digest == program.digest


def test_no_two_valid_programs_have_one_digest():
    digests = {parse(path.read_text()).digest for path in VALID}
    assert len(digests) == len(VALID)


@pytest.mark.parametrize("path", INVALID, ids=by_name)
def test_an_invalid_program_is_refused_for_its_reason(path):
    first, _, text = path.read_text().partition("\n")
    name, _, reason = first.removeprefix("// error: ").partition(": ")
    with pytest.raises(errors.IRError) as caught:
        verify(parse(text))
    assert type(caught.value) is getattr(errors, name)
    assert reason in str(caught.value)
