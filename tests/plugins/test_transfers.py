"""A plugin brings a transfer between device kinds of others."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from wheels import install, make_wheel

pytestmark = pytest.mark.needs("hello", "simulator")

BRIDGE = """
import mplang_core as mp
from mplang_core.ext import Transfer, hookimpl

def hand_over(value, src, dst):
    halves = [
        mp.pshfl_s(value, mp.Mask.of(new), [old])
        for old, new in zip(src.mask, dst.mask, strict=True)
    ]
    return mp.pconv(halves)

@hookimpl
def mplang_transfers():
    return [Transfer("VAULT", "VAULT", hand_over, "auto")]
"""

# Of each plain kind, with and without a way of its own.
OPEN = """
import mplang_core as mp
from mplang_core.ext import DeviceKind, Transfer, hookimpl
from mplang_core import Form
from mplang_hello.device import unlock

@hookimpl
def mplang_devices():
    return [DeviceKind("OPEN", Form.PLAIN, transfers=[WAYS])]
"""

OPENED = """
import mplang_core as mp
from mplang_hello import summarize

cluster = mp.ClusterSpec.from_dict({
    "nodes": [{"name": name} for name in "ab"],
    "devices": {
        "A": {"kind": "PPU", "members": ["a"]},
        "G": {"kind": "OPEN", "members": ["b"]},
        "V": {"kind": "VAULT", "members": ["a", "b"]},
    },
})
kept = lambda: mp.put("V", mp.put("A", [1.0, 2.0]))
with mp.Simulator(cluster) as sim:
    for program in (
        lambda: mp.device("G")(summarize)(kept()),
        lambda: mp.put("G", kept()),
        lambda: mp.reveal(kept(), to="G"),
    ):
        try:
            print(mp.fetch(sim, mp.evaluate(sim, program)))
        except mp.errors.DisclosureError as error:
            print(str(error).split("\\n")[0])
"""

AGAIN = BRIDGE.replace('"VAULT", "VAULT"', 'mp.Form.PLAIN, "VAULT"')

PROGRAM = """
import mplang_core as mp

cluster = mp.ClusterSpec.from_dict({
    "nodes": [{"name": name} for name in "abcd"],
    "devices": {
        "A": {"kind": "PPU", "members": ["a"]},
        "V": {"kind": "VAULT", "members": ["a", "b"]},
        "W": {"kind": "VAULT", "members": ["c", "d"]},
    },
})

def program():
    there = mp.put("W", mp.put("V", mp.put("A", [1, 2])))
    assert there.pmask == mp.Mask.from_ranks([2, 3])
    return mp.reveal(there, to="A")

with mp.Simulator(cluster) as sim:
    print(mp.fetch(sim, mp.evaluate(sim, program)))
"""


def run(folder: os.PathLike[str] | str, program: str = PROGRAM) -> str:
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
    return done.stdout + done.stderr


def planted(folder, source: str):
    wheel = make_wheel(folder, "mplang-bridge", "bridge", source, {"mplang.frontends": ["bridge"]})
    install(folder / "with", wheel)
    return folder / "with"


def test_values_go_the_way_of_a_third_plugin(tmp_path):
    assert run(planted(tmp_path, BRIDGE)) == "[1 2]\n"


def test_without_it_there_is_no_way_but_a_reveal_that_is_written(tmp_path):
    said = run(tmp_path)
    lacks = "there is no way from V (VAULT of {0, 1}) to W (VAULT of {2, 3}) that discloses nothing"
    remedy = "mp.put('W', mp.reveal(x, to='A'))"
    asked = f"By way of A its party learns it; if that is meant, write {remedy}"
    assert f"{lacks}. {asked}\n" in said, said
    followed = PROGRAM.replace(
        'mp.put("W", mp.put("V", mp.put("A", [1, 2])))',
        remedy.replace("(x,", '(mp.put("V", mp.put("A", [1, 2])),'),
    )
    assert run(tmp_path, followed) == "[1 2]\n"


@pytest.mark.parametrize(
    "ways",
    [
        'Transfer("VAULT", "OPEN", unlock, "auto")',
        'Transfer("VAULT", "OPEN", unlock, "put")',
        'Transfer("VAULT", "OPEN", unlock, lambda value, src, dst: "auto")',
        "",  # that of vaults to all that is plain
    ],
)
def test_a_way_out_of_protection_is_a_reveal_whatever_its_plugin_says(tmp_path, ways):
    said = run(planted(tmp_path, OPEN.replace("WAYS", ways)), OPENED).splitlines()
    assert [each.partition("would disclose it. ")[2] for each in said[:2]] == [
        "If that is meant, write mp.reveal(x, to='G')"
    ] * 2, said
    assert said[2:] == ["[1. 2.]"]


def test_two_ways_between_the_same_kinds_are_a_conflict(tmp_path):
    asked = "import mplang_core as mp\nmp.registry.list_ops()\n" + (
        "from mplang_core.ext import plugin_manager\n"
        "print(*(r.reason for r in plugin_manager.records()))"
    )
    said = run(planted(tmp_path, AGAIN), asked)
    assert all(each in said for each in ("any plain->VAULT", "mplang-hello", "mplang-bridge")), said
