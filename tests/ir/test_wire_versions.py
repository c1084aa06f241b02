"""Versions of the wire format: none changes, each is read, and another is refused clearly."""

from __future__ import annotations

import json
import typing

import msgspec
import pytest
from ir.same_data import same
from ir.wire_samples import GOLDEN, KINDS, SAMPLES, golden, program_of, wire_format

from mplang_core.errors import WireError
from mplang_core.ir import AttrValue, from_bytes, normalize, to_bytes, wire

ADVICE = """
What is written is not wire version {version} as tests/ir/golden/wire/v{version}.json has it.
If that was not meant, undo it. If you add or change an attribute kind or an extension:
  1. raise WIRE_VERSION in mplang_core/ir/wire.py, and describe the version in its history;
  2. give each new kind a value in SAMPLES of tests/ir/wire_samples.py;
  3. PYTHONPATH=tests python tests/ir/wire_samples.py
Never change or delete the file of an older version. The guide is docs/wire.md."""

VERSIONS = range(wire.OLDEST_VERSION, wire.WIRE_VERSION + 1)


def recorded(version: int) -> dict[str, typing.Any]:
    advice = ADVICE.format(version=version)
    assert golden(version).exists(), advice
    return json.loads(golden(version).read_text())


def test_the_format_is_the_one_recorded_for_its_version():
    advice = ADVICE.format(version=wire.WIRE_VERSION)
    assert set(KINDS) == set(SAMPLES), f"kinds without a sample, or the other way round:{advice}"
    now, then = wire_format(), recorded(wire.WIRE_VERSION)
    assert now["extensions"] == then["extensions"], advice
    assert list(now["kinds"]) == list(then["kinds"]), advice
    for kind in KINDS:
        assert now["kinds"][kind] == then["kinds"][kind], f"{kind} is written otherwise:{advice}"


def test_the_visitor_has_a_method_for_each_kind_of_the_union():
    kinds = [typing.get_origin(kind) or kind for kind in typing.get_args(AttrValue)]
    assert len(kinds) == len(KINDS)
    for value in map(normalize, SAMPLES.values()):
        assert isinstance(value, tuple(kinds))


@pytest.mark.parametrize("version", VERSIONS)
def test_programs_of_a_version_are_read_and_keep_their_digest(version):
    for kind, expected in recorded(version)["kinds"].items():
        program = from_bytes(bytes.fromhex(expected["bytes"]))
        assert same(program.graph.ops[0].attrs["value"], normalize(SAMPLES[kind]))
        assert program.digest == expected["digest"]


def test_a_version_has_the_extensions_and_kinds_of_those_before():
    names = {path.stem for path in GOLDEN.glob("*.json")}
    assert names == {f"v{version}" for version in range(1, wire.WIRE_VERSION + 1)}
    for version in VERSIONS[1:]:
        before, after = recorded(version - 1), recorded(version)
        assert set(before["extensions"]) <= set(after["extensions"])
        assert set(before["kinds"]) <= set(after["kinds"])


def test_the_next_version_reads_this_one_with_the_same_digest(monkeypatch):
    old = to_bytes(program_of("mapping"))
    version = wire.WIRE_VERSION
    monkeypatch.setattr(wire, "WIRE_VERSION", version + 1)
    assert from_bytes(old).digest == program_of("mapping").digest
    assert from_bytes(old).digest == recorded(version)["kinds"]["mapping"]["digest"]
    assert to_bytes(program_of("mapping")) != old
    with pytest.raises(WireError, match=rf"reads versions {wire.OLDEST_VERSION} to {version + 1};"):
        from_bytes(msgspec.msgpack.encode(["mplang", version + 2]))


# -- refusals


def test_a_newer_version_is_refused_with_the_advice_to_upgrade():
    newer = msgspec.msgpack.encode(["mplang", wire.WIRE_VERSION + 1])
    with pytest.raises(WireError, match="its writer is newer: upgrade mplang-core here"):
        from_bytes(newer)
    with pytest.raises(WireError) as caught:
        from_bytes(msgspec.msgpack.encode(["mplang", wire.OLDEST_VERSION - 1]))
    assert "newer" not in str(caught.value)


@pytest.mark.parametrize("code", [0, max(wire._CODES) + 1, 99, -2])
def test_an_unknown_extension_is_refused_as_of_a_newer_writer(code):
    fields = msgspec.msgpack.decode(to_bytes(program_of("none")))
    fields[5][1][0][3]["value"] = msgspec.msgpack.Ext(code, b"")
    with pytest.raises(WireError) as caught:
        from_bytes(msgspec.msgpack.encode(fields))
    told = str(caught.value)
    assert told.startswith(f"unknown extension {code}; this mplang-core reads version")
    assert f"with the extensions {', '.join(map(str, wire._CODES))}" in told
    assert "its writer is newer: use the same mplang-core on both sides" in told
