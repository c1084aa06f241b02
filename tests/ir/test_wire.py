"""Bytes of a program: complete, canonical, and without the user's paths."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ir.wire_programs import holding, traced

from mplang_core import Mask, MPType, Program, TensorType, parse, verify
from mplang_core.ir import (
    Graph,
    Location,
    Operation,
    Value,
    from_bytes,
    op_defs,
    print_program,
    to_bytes,
)

ROOT = Path(__file__).parents[2]
VALID = sorted(Path(__file__).parent.glob("golden/valid/*.mpl"))


# -- round trips


def test_a_traced_program_comes_back_with_its_lines():
    program = traced()
    again = from_bytes(to_bytes(program))
    verify(again)
    assert str(again) == str(program)
    assert {op.opcode for op in again.graph.walk()} > {
        name for name in op_defs.names() if name.startswith("simp.")
    }
    assert "wire_programs.py:" in str(again)
    assert (again.name, again.mask, again.digest) == (program.name, program.mask, program.digest)


def test_locations_may_be_left_out():
    program = traced()
    data = to_bytes(program, locations=False)
    again = from_bytes(data)
    assert b"wire_programs.py" not in data
    assert len(data) < len(to_bytes(program))
    assert all(op.location is None for op in again.graph.walk())
    assert str(again) == print_program(program, locations=False)
    assert again.digest == program.digest


def test_a_program_has_the_same_text_before_and_after_whatever_the_order_of_its_attributes():
    a = holding(z=1, a=b"x", m=[1])
    b = holding(m=[1], a=b"x", z=1)
    assert str(from_bytes(to_bytes(a))) == str(a) == str(b) == str(parse(str(b)))
    assert to_bytes(a) == to_bytes(b)


def test_the_digest_stays_whatever_the_order_of_attributes_with_buffers():
    """The host and the workers compare digests of one program, written and read."""
    a, b = holding(z=b"zz", a=b"aa"), holding(a=b"aa", z=b"zz")
    assert a.digest == b.digest
    assert from_bytes(to_bytes(a)).digest == a.digest
    assert parse(str(a)).digest == a.digest


def test_bytes_may_come_as_a_memoryview():
    data = to_bytes(traced())
    assert from_bytes(memoryview(data)).digest == from_bytes(data).digest


def test_equal_constants_are_written_once():
    one, two = to_bytes(holding(np.arange(999))), to_bytes(holding(np.arange(999), np.arange(999)))
    assert len(two) - len(one) < 100


# -- canonical

CHILD = """
import sys
from pathlib import Path
from mplang_cli.text import parse
from mplang_core.ir import to_bytes
for path in sorted(Path(sys.argv[1]).glob("golden/valid/*.mpl")):
    try:
        program = parse(path.read_text())
    except Exception as error:
        sys.exit(f"{path.stem}: {error}")
    print(path.stem, program.digest, to_bytes(program).hex())
from ir import wire_programs
print("traced", wire_programs.traced().digest, to_bytes(wire_programs.traced()).hex())
"""


def run_with_hash_seed(seed: str) -> str:
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "tests")}
    child = [sys.executable, "-c", CHILD, str(Path(__file__).parent)]
    done = subprocess.run(child, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_another_process_with_other_hashes_writes_the_same_bytes():
    first, second = run_with_hash_seed("1"), run_with_hash_seed("2")
    assert first == second
    assert f"traced {traced().digest}" in first
    assert len(first.splitlines()) == len(VALID) + 1


def test_the_name_is_in_the_bytes_but_not_in_the_digest():
    a, b = holding(1), holding(1)
    b.name = "another"
    assert to_bytes(a) != to_bytes(b)
    assert a.digest == b.digest
    assert from_bytes(to_bytes(b)).name == "another"


def test_the_parties_are_in_the_digest():
    program = holding(1)
    assert Program("p", Mask(0b111), program.graph).digest != program.digest


# -- where the user's files are is nobody's business


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("/home/alice/secret project/model.py", "model.py:3"),
        ("../secret/alice/a:b.py", "a:b.py:3"),
        ("/alice/secret/", ":3"),
        ("<stdin>", "<stdin>:3"),
        ("/tmp/secret/alice/ipykernel_1/42.py", "42.py:3"),
    ],
)
def test_a_path_never_reaches_text_or_bytes(file, shown):
    program = holding(1)
    program.graph.ops[0].location = Location(file, 3)
    data, text = to_bytes(program), str(program)
    for leaked in ("alice", "secret"):
        assert leaked.encode() not in data
        assert leaked not in text
    assert f'"{shown}"' in text
    assert str(from_bytes(data)) == text
    assert str(parse(text)) == text


def test_a_path_in_foreign_bytes_or_text_is_not_passed_on():
    located = holding(1)
    located.graph.ops[0].location = Location("ABCDEFGH", 3)
    data = to_bytes(located).replace(b"ABCDEFGH", b"/a/b/c/d")
    for program in (from_bytes(data), parse(str(located).replace("ABCDEFGH", "/a/b/c/d"))):
        assert str(program.graph.ops[0].location) == "d:3"
        assert b"/a/b" not in to_bytes(program)
        assert "/a/b" not in str(program)


def test_programs_whose_lines_read_otherwise_are_prepared_each():
    """An approval ends with the text of a line: what is kept of a program has its lines' texts."""

    def told(text: str, function: str = "pay") -> int:
        program = holding(1)
        program.graph.ops[0].location = Location("pay.py", 3, function, text)
        return program.line_hash

    assert told("return x") == told("return x")
    assert len({told("return x"), told("return x  # all"), told("return x", "mean")}) == 3


# -- bytes that somebody made on purpose


def test_digests_are_sha256_in_hex():
    digest = holding(1).digest
    assert len(bytes.fromhex(digest)) == hashlib.sha256().digest_size
    assert holding(1).digest == digest != holding(2).digest


def test_a_value_is_numbered_within_its_graph():
    a = Value(MPType(TensorType("i64"), Mask(1)))
    b = Value(a.type)
    graph = Graph([a], [Operation("simp.converge", (a,), (b,))], [b, a, b])
    again = from_bytes(to_bytes(Program("p", Mask(1), graph))).graph
    (x,), (op,) = again.inputs, again.ops
    assert again.outputs == [op.outputs[0], x, op.outputs[0]]
    assert op.inputs == (x,)
