"""mplang compile, inspect, run and diff: what they show, and how they refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mplang_cli.artifact.arguments import Given, coerce
from mplang_cli.cli import app, main
from typer.testing import CliRunner, Result

import mplang_core as mp
from mplang_core.errors import ConfigError
from mplang_core.ir import source_line

SOURCE = '''
from __future__ import annotations

from typing import Annotated

import mplang_core as mp
from helper import both

X = mp.MPType(mp.TensorType("f64", (2,)), mp.Mask.of(0))


def swap(x, y):
    """Core alone."""
    return {"there": mp.pshfl_s(x, 1, [0]), "y": y}


def annotated(x: X, model: Annotated[dict, {"w": "f32[2]@P1", "b": "i64[]"}], n=1):
    return both(x), model["w"], model["b"]


def typed(x: MissingType, text):
    return x if text == "fast" else (x, x)


def fails(x):
    return mp.pshfl_s(x, 1, [7])


compiled = mp.compile(swap)
number = 3
'''
CLUSTER = """
nodes: [{name: bank, address: "bank:1"}, {name: shop, address: "shop:1"}]
devices:
  P0: {kind: PPU, members: [bank]}
  P1: {kind: PPU, members: [shop]}
"""
HELPER = "import mplang_core as mp\n\ndef both(x):\n    return mp.pshfl_s(x, [0, 1], [0, 0])\n"
SWAP = ("--arg", "x=f64[2]@P0", "--arg", "y=i64[]")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(source_line, "_SKIPPED", {*source_line._SKIPPED})  # main adds to it
    sys.modules.pop("helper", None)
    Path("prog.py").write_text(SOURCE)
    Path("helper.py").write_text(HELPER)
    Path("c.yaml").write_text(CLUSTER)
    Path("broken.py").write_text("import mplang_core\n\nx = 1 / 0\n")
    np.save("x.npy", np.array([1.5, 2.5]))
    np.save("y.npy", np.array([1.5, 2.5, 3.5]))
    np.save("objects.npy", np.array([{}], object))
    np.savez("several.npz", a=np.zeros(2))
    return tmp_path


def call(*args: str) -> Result:
    return CliRunner().invoke(app, args, catch_exceptions=False, env={"COLUMNS": "200"})


def rows(*args: str) -> dict[str, object]:
    return {row["result"]: row for row in json.loads(call(*args, "--json").stdout)}


def compiled(out: str = "swap.mpl", *args: str) -> str:
    done = call("compile", "prog.py:swap", "--cluster", "c.yaml", "-o", out, *(args or SWAP))
    assert done.exit_code == 0
    return done.stdout


# -- compile and run


def test_it_compiles_and_runs_without_the_source(mode):
    assert compiled().startswith(
        "swap.mpl: swap(x: f64[2]@{0}, y: i64[]@{0, 1}) -> f64[2]@{1}, i64"
    )
    Path("prog.py").unlink()
    found = rows("run", "swap.mpl", "--arg", "x=@x.npy", "--arg", "y=3", "--mode", mode)
    assert found["result.there"]["value"] == [None, [1.5, 2.5]]
    assert found["result.y"]["value"] == [3, 3]
    shown = call("run", "swap.mpl", "--arg", "x=[1, 2]", "--arg", "y=3")
    assert shown.exit_code == 0
    assert "result.there" in shown.stdout
    assert "[None, [1.0, 2.0]]" in shown.stdout


@pytest.mark.parametrize("fn", ["swap", "compiled"])
def test_it_runs_from_the_source(fn):
    where = ("run", f"prog.py:{fn}", "--cluster", "c.yaml")
    for x in ("x@P0=@x.npy", "x@{0}=[1.5, 2.5]"):
        found = rows(*where, "--arg", x, "--arg", "y=3")
        assert found["result.there"]["value"] == [None, [1.5, 2.5]]
    assert rows(*where, "--arg", "x@public=@x.npy", "--arg", "y=3")["result.y"]["value"] == [3, 3]


def test_annotations_say_the_types():
    where = ("run", "prog.py:annotated", "--cluster", "2")
    found = rows(*where, "--arg", "x=@x.npy", "--arg", 'model={"w": [1, 2], "b": 7}')
    assert [found[f"result.{i}"]["type"] for i in range(3)] == [
        "f64[2]@{0, 1}",
        "f32[2]@{1}",
        "i64[]@{0, 1}",
    ]
    found = rows(*where, "--arg", "x=@x.npy", "--arg", "model.w=[1, 2]", "--arg", "model.b=7")
    assert found["result.1"]["device"] == "P1"
    assert found["result.2"]["value"] == [7, 7]


def test_a_dot_makes_a_dict():
    types = ("--arg", "x=f64[2]@P0", "--arg", "y.w=f32[]@P1", "--arg", "y.n.k=3")
    assert "(x: f64[2]@{0}, y.n.k: i64[]@{0, 1}, y.w: f32[]@{1})" in compiled("n.mpl", *types)


def test_a_text_is_compiled_in():
    where = ("compile", "prog.py:typed", "--cluster", "2", "-o", "t.mpl", "--arg", "x=i64[]")
    assert call(*where, "--arg", 'text="fast"').exit_code == 0
    for text in ((), ("--arg", 'text="fast"')):
        assert rows("run", "t.mpl", "--arg", "x=3", *text)["result"]["value"] == [3, 3]


@pytest.mark.needs("jax", "spu")
def test_what_is_secret_is_not_shown():
    Path("secret.py").write_text(
        "import mplang_core as mp\n\ndef keep(x):\n    return mp.seal(x), mp.reveal(mp.seal(x))\n"
    )
    where = ("run", "secret.py:keep", "--cluster", "3", "--arg", "x@P0=5")
    found = rows(*where)
    assert found["result.0"]["secret"]
    assert found["result.0"]["value"] is None
    assert found["result.1"]["value"] == [5, 5, 5]
    assert "(secret)" in call(*where).stdout


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [("u8", 255, True), ("u8", -1, False), ("i8", 128, False), ("u64", 2**63, True),
     ("bf16", 1.5, True), ("c64", 2, True), ("bool", True, True), ("bool", 1, False),
     ("i64", 1.0, False), ("f32", 2**24 + 1, False)],
)  # fmt: skip
def test_json_takes_the_type_that_is_expected_where_nothing_is_lost(kind, value, fits):
    given = Given("x", None, json.dumps(value))
    if fits:
        assert coerce("x", given.value(), mp.TensorType(kind), False) == value
    else:
        with pytest.raises(ConfigError, match="argument x: "):
            coerce("x", given.value(), mp.TensorType(kind), False)


# -- inspect and diff


def test_inspect_tells_all():
    compiled()
    done = call("inspect", "swap.mpl", "--ir")
    assert done.exit_code == 0
    for text in ("digest", "f64[2]@{0}", "party 0", "bank", "mplang-core", "simp.shuffle_static",
                 "What swap discloses", 'program "swap" on {0, 1}', "prog.py:14"):  # fmt: skip
        assert text in done.stdout
    facts = json.loads(call("inspect", "swap.mpl", "--json").stdout)
    assert facts["ops"] == {"simp.shuffle_static": 1}
    assert facts["disclosure"]["rows"][0]["discloses"] == [0]
    sentences = facts["disclosure"]["sentences"]
    assert sentences[0] == "shop learns: 2 numbers made of bank's data (prog.py:14)."
    assert sentences[0] in done.stdout
    assert facts["requirements"][0]["status"] == "ok"
    assert "bank:1" not in done.stdout


def test_inspect_draws_where_it_is_asked_to():
    compiled()
    assert "swap, line by line" not in call("inspect", "swap.mpl").stdout
    drawn = call("inspect", "swap.mpl", "--picture").stdout
    assert "swap, line by line" in drawn
    assert "DISCLOSES bank's data" in drawn
    assert call("inspect", "swap.mpl", "--html", "swap.html").exit_code == 0
    page = Path("swap.html").read_text(encoding="utf-8")
    assert page.index("learns: 2 numbers") < page.index("<svg")
    assert "default-src 'none'" in page


def test_inspect_shows_one_analysis():
    compiled()
    assert "Ops of swap" in call(*COSTS).stdout
    assert json.loads(call(*COSTS, "--json").stdout)


def test_diff_tells_the_same_from_another():
    compiled("a.mpl")
    compiled("b.mpl")
    compiled("c.mpl", "--arg", "x=f64[2]@P0", "--arg", "y=i32[]")
    same, other = call("diff", "a.mpl", "b.mpl"), call("diff", "a.mpl", "c.mpl")
    assert (same.exit_code, other.exit_code) == (0, 1)
    assert same.stdout.startswith("the same program, ")
    assert len(same.stdout.splitlines()) == 1
    assert "\n-  y: i64[]@{0, 1}\n+  y: i32[]@{0, 1}\n" in other.stdout
    assert '+program "swap" on {0, 1} (%0: f64[2]@{0}, %1: i32[]@{0, 1}) {' in other.stdout
    Path("prog.py").write_text("\n" + SOURCE)
    compiled("b.mpl")
    assert call("diff", "a.mpl", "b.mpl").exit_code == 0
    assert call("diff", "a.mpl", "b.mpl", "--locations").exit_code == 1
    unreadable = call("diff", "a.mpl", "x.npy")
    assert (unreadable.exit_code, unreadable.stdout) == (2, "")
    assert unreadable.stderr.endswith("(mplang explain I003)\n")


def test_a_file_that_is_no_python_is_told_at_its_line():
    Path("prog.py").write_text("import mplang_core as mp\n\ndef f(:\n    return 1\n")
    with pytest.raises(
        ConfigError, match=r"cannot import prog\.py: prog\.py:3: SyntaxError: invalid"
    ):
        CliRunner().invoke(app, ["run", "prog.py:f", "--cluster", "2"], catch_exceptions=False)


def test_diff_tells_what_is_disclosed_beside():
    compiled("a.mpl")
    twice = SOURCE.replace("x, 1, [0])", "mp.pshfl_s(x, 1, [0]), 0, [1])")
    Path("prog.py").write_text(twice)
    compiled("b.mpl")
    told = call("diff", "a.mpl", "b.mpl").stdout.splitlines()
    moves = [line for line in told if "what move" in line]
    assert len(moves) == 2
    assert "+  what move, from 1, to 0, type f64[2], form plain, bytes 16, inputs 0" in moves[1]
    assert not [line for line in told if ", line " in line]


def test_no_locations():
    compiled("a.mpl", *SWAP, "--no-locations")
    assert b"prog.py" not in Path("a.mpl").read_bytes()


# -- bad input

TAKES_X = ("compile", "prog.py:swap", "--cluster", "2", "-o", "o.mpl", "--arg", "y=1", "--arg")
SOURCED = ("run", "prog.py:swap", "--cluster", "2", "--arg", "y=1", "--arg")
PACKED = ("run", "swap.mpl", "--arg", "y=1", "--arg")
ANNOTATED = ("run", "prog.py:annotated", "--cluster", "2", "--arg", "x=@x.npy", "--arg")
COSTS = ("inspect", "swap.mpl", "--analysis", "costs")
BAD = [
    (("compile", "none.py:swap", "--cluster", "2", "-o", "o"), "there is no file none.py"),
    (("compile", "prog.py", "--cluster", "2", "-o", "o"), "expected prog.py:function"),
    (
        ("compile", "prog.py:none", "--cluster", "2", "-o", "o"),
        "no function 'none'; it has both, swap",
    ),
    (("compile", "prog.py:number", "--cluster", "2", "-o", "o"), "no function 'number'"),
    (("compile", "broken.py:f", "--cluster", "2", "-o", "o"), "broken.py:3: ZeroDivisionError"),
    (("compile", "prog.py:swap", "--cluster", "no.yaml", "-o", "o"), "cannot read no.yaml"),
    (("compile", "prog.py:swap", "--cluster", "0", "-o", "o"), "at least one node"),
    (
        ("compile", "prog.py:swap", "--cluster", "2", "-o", "o"),
        "takes x, whose type and owner are unknown; add --arg x='f32[3]@P0' (or such a "
        "type), or annotate it; to run it, give a value: --arg x@P0='[1.5, 2.5]', or "
        "--arg x@P0=@file.npy",
    ),
    (("compile", "prog.py:fails", "--cluster", "2", "-o", "o", "--arg", "x=1"), "prog.py:"),
    ((*TAKES_X, "x"), "an argument is NAME=VALUE"),
    ((*TAKES_X, "x=f64[2"), "'f64[2' is not a type such as 'f32[3]@P0' (line 1, column 6"),
    ((*TAKES_X, "x=text"), "'text' is not a type"),
    ((*TAKES_X, "x=f64[2]@P7"), "there is no device P7; there are public, P0, P1"),
    ((*TAKES_X, "x=f64[2]@{7}"), "parties outside of {0, 1}"),
    ((*TAKES_X, "y=2"), "argument y is given twice"),
    ((*TAKES_X, "z=2"), "has no argument z; it takes x, y"),
    ((*TAKES_X, "y.z=2", "--arg", "x=1"), "given as a whole"),
    (("compile", "prog.py:swap", "--cluster", "2", "-o", "none/o", *SWAP), "cannot write none/o"),
    ((*SOURCED, "x=@x.npy"), "the owner of x.npy is unknown; write x@P0=@x.npy"),
    ((*SOURCED, "x@P0=@none.npy"), "cannot read none.npy: No such file"),
    ((*SOURCED, "x@P0=@objects.npy"), "cannot read objects.npy: Object arrays"),
    ((*SOURCED, "x@P0=@several.npz"), "holds several arrays"),
    ((*SOURCED, "x@P0=@prog.py"), "cannot read prog.py"),
    ((*SOURCED, 'x@P0="text"'), "is not a tensor"),
    (("run", "prog.py:swap", *SWAP), "--cluster c.yaml, or a number"),
    ((*PACKED, "x=@y.npy"), "argument x: expected f64[2], got f64[3]"),
    ((*PACKED, 'x={"a": 1}'), "argument x: "),
    ((*PACKED, 'x=["a", "b"]'), "argument x: "),
    ((*PACKED, "x=f64[2]@P0"), "expected @file.npy or JSON, got 'f64[2]@P0'"),
    ((*PACKED, "x@P1=[1, 2]"), "argument x: it is f64[2]@{0}, not at P1"),
    ((*PACKED, "z=1"), "swap has no argument z; it takes x, y"),
    (("inspect", "swap.mpl", "--html", "none/page"), "cannot write none/page: No such file"),
    ((*COSTS, "--html", "costs.html"), "leave out --ir and --html"),
    ((*COSTS, "--ir", "--json"), "leave out --ir and --html"),
    (("inspect", "swap.mpl", "--link", "lan", "--ir"), "leave out --ir and --html"),
    (("inspect", "swap.mpl", "--link", "moon"), "expected lan, wan or 40,100 (ms, Mbit/s)"),
    (
        ("inspect", "swap.mpl", "--link", "lan", "--analysis", "ranges"),
        "--link is the network of --analysis costs, got --analysis ranges",
    ),
    (("run", "swap.mpl", "--arg", "x=[1, 2]"), "argument y is missing: --arg y=@file.npy"),
    (("run", "swap.mpl", "--arg", "x=[1, 2]", "--arg", "y=1.5"), "expected i64[], got f64[]"),
    ((*PACKED, "x=[1, 2]", "--mode", "fast"), "the mode is one of"),
    ((*PACKED, "x=[1, 2]", "--backend", "none"), "no backend 'none'"),
    ((*PACKED, "x=[1, 2]", "--cluster", "2"), "for the parties bank, shop"),
    ((*ANNOTATED, 'model={"w": [1, 2]}'), "model.b is missing"),
    ((*ANNOTATED, 'model={"w": [1, 2], "b": 1e30}'), "model.b: expected i64[], got f64[]"),
    ((*ANNOTATED, 'model={"w": [1, 1e300], "b": 1}'), "model.w: a number does not fit into f32[2]"),
    (("run", "none.mpl"), "cannot read none.mpl: No such file"),
    (("inspect", "x.npy"), r"begins with b'\x93NUMPY"),
    (("inspect", "damaged.mpl"), "the artifact is damaged: its head promises"),
]


@pytest.mark.parametrize(("args", "told"), BAD, ids=[" ".join(args) for args, _ in BAD])
def test_bad_input_is_told_in_one_line(args, told, monkeypatch, capsys):
    compiled()
    Path("damaged.mpl").write_bytes(Path("swap.mpl").read_bytes()[:-1])
    monkeypatch.setattr(sys, "argv", ["mplang", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert ended.value.code == 1
    assert err.startswith("mplang: ")
    assert told in err
    assert len(err.splitlines()) == 1
    assert out == ""


@pytest.mark.needs("crypto")
def test_a_plugin_that_is_missing_is_named_and_the_rest_is_shown():
    frozen = Path(__file__).with_name("frozen") / "v1_sealed.mpl"
    env = {**os.environ, "MPLANG_DISABLE_PLUGINS": "mplang-crypto"}

    def without(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mplang_cli.cli", *args]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    shown = without("inspect", str(frozen), "--json")
    facts = json.loads(shown.stdout)
    assert (shown.returncode, facts["ops"], facts["inputs"][0]["name"]) == (0, None, "x")
    assert facts["requirements"][1]["status"] == "missing"
    done = without("run", str(frozen), "--arg", "x=[1, 2, 3]")
    assert done.returncode == 1
    assert f"mplang-crypto {mp.__version__}" in done.stderr
    assert f"pip install 'mplang-crypto=={mp.__version__}'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.endswith(" (mplang explain P002)\n")
