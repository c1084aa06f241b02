"""One attribute of each kind, and the wire format as data: what a version of it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mplang_core import Mask, Program, TensorType
from mplang_core.ir import AttrVisitor, Graph, Operation, normalize, to_bytes, wire

GOLDEN = Path(__file__).parent / "golden" / "wire"

KINDS = sorted(name.removeprefix("visit_") for name in AttrVisitor.__abstractmethods__)

SAMPLES: dict[str, Any] = {
    "array": np.arange(6, dtype=np.int16).reshape(2, 3),
    "bool": True,
    "bytes": b"\x00\xff",
    "float": 0.1,
    "int": -7,
    "mapping": {"b": (1, None), "a": "x"},
    "mask": Mask(0b101),
    "none": None,
    "str": "größe",
    "tuple": (1, (2.0, b"x")),
    "type": TensorType("f32", (2, 3)),
}


def program_of(kind: str) -> Program:
    op = Operation("irtest.any", (), (), {"value": normalize(SAMPLES[kind])})
    return Program(kind, Mask(0b11), Graph([], [op]))


def wire_format() -> dict[str, Any]:
    """The format that is written now: extension codes, and each kind's bytes and digest."""
    programs = {kind: program_of(kind) for kind in KINDS}
    return {
        "extensions": sorted(wire._CODES),
        "kinds": {
            kind: {"bytes": to_bytes(program).hex(), "digest": program.digest}
            for kind, program in programs.items()
        },
    }


def golden(version: int) -> Path:
    return GOLDEN / f"v{version}.json"


def freeze() -> str:
    """Write the file of the present version, unless it is there."""
    path = golden(wire.WIRE_VERSION)
    if path.exists():
        return f"{path} is there, and is never rewritten: raise WIRE_VERSION first"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(wire_format(), indent=2) + "\n")
    return f"{path} is written"


if __name__ == "__main__":
    print(freeze())
