"""Old payloads load for ever; whatever is wrong with a file, it is refused with the reason."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import msgspec
import pytest
from artifact.programs import CASES, close
from hypothesis import given, settings, strategies as st
from mplang_cli.artifact import ARTIFACT_VERSION, Tree, load
from mplang_cli.artifact.arguments import Given
from mplang_cli.artifact.container import MAGIC, close as seal, open_
from mplang_cli.artifact.manifest import pack_payload, unpack_payload
from mplang_cli.artifact.running import run_given

import mplang_core as mp
from mplang_core.errors import IRError, MPLangError, WireError
from mplang_core.ir import to_bytes

FROZEN = sorted(Path(__file__).parent.glob("frozen/*.mpl"))
HEAD = 52


# -- frozen


def facts_of(path: Path) -> dict[str, object]:
    return json.loads(path.with_suffix(".json").read_text())


def test_every_version_has_frozen_payloads():
    for version in range(1, ARTIFACT_VERSION + 1):
        assert [path for path in FROZEN if path.name.startswith(f"v{version}_")]


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: path.stem)
def test_a_frozen_payload_loads_and_runs(path, mode, simulate):
    facts = facts_of(path)
    missing = [r for r in mp.artifact.manifest(path).requirements if r.status == "missing"]
    if missing:
        pytest.skip(f"needs {missing[0].distribution}")
    artifact = load(path)
    assert (artifact.digest, str(artifact.signature)) == (facts["digest"], facts["signature"])
    data = {name: Given(name, None, json.dumps(value)) for name, value in facts["data"].items()}
    rows = run_given(artifact, simulate(artifact.cluster.spec()), data, mode)
    assert close([row["value"] for row in rows], facts["results"])


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: path.stem)
def test_a_frozen_payload_of_this_version_is_written_again_byte_for_byte(path):
    if path.name.startswith(f"v{ARTIFACT_VERSION}_"):
        assert pack_payload(*unpack_payload(path.read_bytes())) == path.read_bytes()


# -- damage

SMALL = mp.artifact.pack(CASES["call"].compiled(), locations=False)


def refused(data: bytes, reason: str | None = None) -> None:
    with pytest.raises(WireError, match=reason) as caught:
        load(data)
    assert len(str(caught.value)) < 500


def test_every_truncation_is_refused():
    for end in range(len(SMALL)):
        refused(SMALL[:end])
    refused(SMALL[:40], "ends within its head")
    refused(SMALL[:-1], rf"promises {len(SMALL) - HEAD} bytes, and {len(SMALL) - HEAD - 1} follow")
    refused(SMALL + b"\0", "promises")


def test_every_flip_of_every_bit_is_refused():
    for at in range(len(SMALL)):
        for bit in range(8):
            data = bytearray(SMALL)
            data[at] ^= 1 << bit
            refused(bytes(data))


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=300), st.booleans())
def test_arbitrary_bytes_are_refused(data, headed):
    refused(seal(data) if headed else data)


def survive(payload: bytes) -> None:
    """With a digest that is right, it is refused by an error of ours, or is an artifact."""
    try:
        artifact = load(seal(payload))
    except MPLangError:
        return
    assert load(artifact.to_bytes()).digest == artifact.digest


@pytest.mark.long("reads a file with each byte of it set to twelve values")
@pytest.mark.core  # once is enough
def test_no_byte_of_the_payload_set_to_anything_does_harm():
    payload = open_(SMALL)
    for at in range(len(payload)):
        for value in (0x00, 0x01, 0x7F, 0x80, 0x90, 0xC0, 0xC1, 0xC4, 0xD9, 0xDD, 0xDF, 0xFF):
            survive(payload[:at] + bytes([value]) + payload[at + 1 :])
        survive(payload[:at] + payload[at + 1 :])


@pytest.mark.core  # once is enough
@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1))
def test_no_flips_in_the_payload_do_harm(flips):
    payload = bytearray(open_(SMALL))
    for where, bits in flips:
        payload[int(where * len(payload))] ^= bits
    survive(bytes(payload))


# -- foreign and newer


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (MAGIC[:3], "first 3 bytes of one"),
        (SMALL.replace(b"\r\n", b"\n"), "changed as text"),
        (b'program "p" on {0} () {\n  return\n}\n', "mp.parse reads"),
        (to_bytes(CASES["call"].compiled().program), "begins with"),
        (b"PK\x03\x04" + bytes(100), r"begins with b'PK.*mplang compile makes"),
        (b"\x80\x04\x95" + bytes(100), "begins with"),
    ],
    ids=["empty", "short", "text mode", "text", "wire", "zip", "pickle"],
)
def test_a_foreign_file_is_told_apart(data, reason):
    refused(data, reason)


@pytest.mark.parametrize("version", [0, ARTIFACT_VERSION + 1, 2**32 - 1])
def test_another_version_is_told_with_both_versions(version):
    data = MAGIC + struct.pack(">I", version) + b"whatever comes then"
    refused(data, f"format version {version}, this mplang-core reads version {ARTIFACT_VERSION}")
    if version:
        refused(data, "pip install --upgrade mplang-core")


def test_a_file_that_cannot_be_read_or_is_too_large_is_told(tmp_path, monkeypatch):
    with pytest.raises(WireError, match="cannot read .*none.mpl: No such file"):
        load(tmp_path / "none.mpl")
    with pytest.raises(WireError, match="cannot read"):
        load(tmp_path)
    monkeypatch.setattr("mplang_cli.artifact.container.MAX_BYTES", 100)
    (tmp_path / "large.mpl").write_bytes(SMALL)
    for source in (tmp_path / "large.mpl", SMALL, memoryview(SMALL)):
        with pytest.raises(WireError, match=f"at most 100 bytes, got {len(SMALL)}"):
            load(source)


# -- forged: whole, and wrong


def forged(**changes: object) -> bytes:
    found = load(SMALL)
    manifest = msgspec.structs.replace(found.manifest, **changes)
    return mp.artifact.Artifact(manifest, found.program).to_bytes()


def signature(**changes: object) -> object:
    return msgspec.structs.replace(load(SMALL).signature, **changes)


def cluster(**changes: object) -> object:
    return msgspec.structs.replace(load(SMALL).cluster, **changes)


LEAF, NONE = Tree("leaf"), Tree("none")
OUTPUT = load(SMALL).signature.outputs[0]
DEVICE = load(SMALL).cluster.devices[0]


def takes(*args: Tree, **kwargs: Tree) -> Tree:
    inner = (Tree("tuple", args), Tree("dict", tuple(kwargs.values()), tuple(kwargs)))
    return Tree("tuple", inner)


def replaced(data: object, **changes: object) -> object:
    return msgspec.structs.replace(data, **changes)


FORGED = {
    "another name": {"name": "other"},
    "another digest": {"digest": "0" * 64},
    "a type of another shape": {"signature": signature(inputs=(mp.artifact.Input("i64[3]@{0}"),))},
    "a type that is none": {"signature": signature(inputs=(mp.artifact.Input("i64[3"),))},
    "a literal for a type": {"signature": signature(inputs=(mp.artifact.Input("", "x"),))},
    "a type and a literal": {
        "signature": signature(inputs=(mp.artifact.Input("i64[2]@{0}", "x"),))
    },
    "no input": {"signature": signature(inputs=(), arguments=takes(), parameters=())},
    "a result of another type": {"signature": signature(outputs=(replaced(OUTPUT, type="i64[]"),))},
    "a result on no device": {"signature": signature(outputs=(replaced(OUTPUT, device="X"),))},
    "a leaf too many": {"signature": signature(result=Tree("list", (LEAF, LEAF)))},
    "a name too many": {"signature": signature(parameters=("x", "y"))},
    "arguments that are a list": {"signature": signature(arguments=Tree("list", (LEAF,)))},
    "arguments that are a leaf": {"signature": signature(arguments=LEAF)},
    "a leaf with children": {"signature": signature(result=Tree("leaf", (LEAF,)))},
    "none with a child": {"signature": signature(result=Tree("none", (LEAF,)))},
    "a key twice": {"signature": signature(result=Tree("dict", (LEAF, LEAF), ("a", "a")))},
    "keys out of order": {"signature": signature(result=Tree("dict", (LEAF, NONE), ("b", "a")))},
    "a key too few": {"signature": signature(result=Tree("dict", (LEAF,), ()))},
    "keywords that are numbers": {
        "signature": signature(
            arguments=Tree("tuple", (Tree("tuple"), Tree("dict", (LEAF,), (1,)))), parameters=()
        )
    },
    "a field that is not a name": {
        "signature": signature(result=Tree("named", (LEAF,), ("a b",), "N"))
    },
    "a field of Python's": {
        "signature": signature(result=Tree("named", (LEAF,), ("__new__",), "N"))
    },
    "a class that is code": {
        "signature": signature(result=Tree("named", (LEAF,), ("a",), "N(): x"))
    },
    "a field that is a number": {"signature": signature(result=Tree("named", (LEAF,), (1,), "N"))},
    "no parties": {"cluster": cluster(parties=())},
    "a party too many": {"cluster": cluster(parties=("a", "b", "c"))},
    "a party twice": {"cluster": cluster(parties=("a", "a"))},
    "a device twice": {"cluster": cluster(devices=(DEVICE, DEVICE))},
    "a member that is not a party": {"cluster": cluster(devices=(replaced(DEVICE, members=(7,)),))},
    "a configuration that is not JSON": {
        "cluster": cluster(devices=(replaced(DEVICE, config="{"),))
    },
    "a configuration that is a list": {
        "cluster": cluster(devices=(replaced(DEVICE, config="[]"),))
    },
}


@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED)
def test_a_manifest_that_does_not_fit_is_refused(changes):
    refused(forged(**changes), "contradicts itself|damaged|is not a type|expected")


@pytest.mark.parametrize("depth", [101, 400, 50_000])
def test_a_nest_too_deep_is_refused(depth):
    plain = msgspec.msgpack.encode(LEAF)
    nested = b"\x94\xa5tuple\x91" * depth + plain + b"\x90\xa0" * depth
    payload = open_(SMALL)
    at = payload.rindex(plain)
    refused(seal(payload[:at] + nested + payload[at + len(plain) :]), "contradicts itself")


def test_a_program_that_breaks_a_rule_is_refused():
    found = load(SMALL)
    data = open_(SMALL).replace(b"i64[2]@{0, 1}", b"i64[2]@{1, 0}")
    with pytest.raises(IRError):
        load(seal(data.replace(found.digest.encode(), b"0" * 64)))


def test_versions_that_differ_are_named_where_a_program_cannot_be_read():
    found = load(SMALL)
    needs = tuple(replaced(each, version="9.9") for each in found.requirements)
    data = forged(requirements=needs, digest="0" * 64)
    refused(data, "contradicts itself")
    shown = mp.artifact.inspect(forged(requirements=needs))
    assert shown.to_dict()["requirements"][0]["status"] == "other version"
    assert mp.artifact.inspect(data).trouble


def test_the_version_is_documented_with_its_date():
    from mplang_cli.artifact import container

    for version in range(1, ARTIFACT_VERSION + 1):
        assert re.search(rf"^{version} \(\d{{4}}-\d\d-\d\d\)$", container.__doc__, re.MULTILINE)
        document = Path(__file__).parents[2] / "docs/artifacts.md"
        assert re.search(
            rf"^\| {version} \| \d{{4}}-\d\d-\d\d \|", document.read_text(), re.MULTILINE
        )
