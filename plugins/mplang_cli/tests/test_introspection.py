"""What there is, as plain data; and the command that tells it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from typing import Literal

import pytest
import toy
from mplang_cli.cli import app
from mplang_cli.doctor import examine
from rich.console import Console
from typer.testing import CliRunner
from wheels import install, make_wheel

import mplang_core as mp
from mplang_core import feop, introspect
from mplang_core.errors import PluginLoadError
from mplang_core.ir import op_defs

NEEDS_JAX = pytest.mark.needs("jax")
DISTRIBUTIONS = {row["distribution"] for row in introspect.list_plugins()}
OURS = ["mplang-jax", "mplang-simulator", "mplang-spu"]


def names(rows, key="name"):
    return {row[key] for row in rows}


@pytest.mark.needs("jax", "spu")
def test_the_answers_are_plain_data_and_complete():
    assert {"jax", "spu"} <= set(introspect.list_frontends())
    assert {"jax.compile", "spu.run_jax", "spu.make_shares"} <= names(introspect.list_ops())
    assert names(introspect.list_ops("jax")) == {"jax.compile"}
    assert {"PPU", "SPU"} <= names(introspect.list_devices(), "kind")
    assert {"simulator"} <= names(introspect.list_backends())
    assert {"jax.run", "spu.run_jax"} <= names(introspect.list_kernels("worker"), "op")
    assert {"func.call", "func.launch"} <= names(introspect.list_kernels("host"), "op")
    assert set(OURS) <= names(introspect.list_plugins(), "distribution")
    everything = [
        introspect.list_ops(),
        introspect.list_devices(),
        introspect.list_backends(),
        introspect.list_kernels(),
        introspect.list_plugins(),
        introspect.describe("spu.run_jax"),
    ]
    json.dumps(everything)  # plain data


@pytest.mark.parametrize("row", introspect.list_ops(), ids=lambda row: row["name"])
def test_every_op_of_a_plugin_is_described(row):
    """No op goes without doc, schema, example, kernel or provenance."""
    facts = introspect.describe(row["name"])
    assert facts["doc"], "it has no docstring"
    assert facts["provenance"]["distribution"]
    json.dumps(facts["attributes"])
    assert facts["attributes"]["type"] == "object"
    if facts["provenance"]["distribution"] not in DISTRIBUTIONS:
        return  # an op of these tests
    assert facts["devices"], "no kind of device takes it"
    assert ">>>" in facts["example"], "its docstring has no example"
    assert facts["outputs"], "its results are not described"
    parameters = inspect.signature(mp.registry.get(row["name"])).parameters.values()
    by_position = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    assert facts["inputs"] or not by_position, "its operands are not described"
    assert row["name"] not in op_defs or facts["kernels"], "nothing runs it"
    assert not facts["config_schema"] or facts["config_schema"]["properties"]


@pytest.mark.needs("jax", "spu")
def test_describe_tells_schema_kernels_devices_and_provenance():
    facts = introspect.describe("spu.run_jax")
    assert facts["config_schema"]["properties"]["protocol"]["anyOf"][0]["enum"]
    assert facts["kernels"] == {"worker": "mplang-spu"}
    assert facts["devices"] == ["SPU"]
    assert facts["provenance"] == {"distribution": "mplang-spu", "version": "0.1.0"}
    assert facts["capabilities"]["requires_device"]["members"] == ">=2"
    attributes = introspect.describe(toy.scale)["attributes"]
    assert attributes["properties"] == {"by": {"type": "integer", "default": 2}}
    assert attributes["required"] == []
    assert ">>>" in introspect.describe("jax.compile")["example"]


def test_describe_tells_what_disclosure_and_passes_go_by():
    asked = ("effects", "reads", "total", "interfaces")

    def told(name):
        return [introspect.describe(name)[field] for field in asked]

    assert told(toy.scale) == ["unknown", [], True, []]
    assert told("simp.shuffle_static")[2:] == [True, ["Communicates", "Forwards", "Labels"]]
    assert told(makes_other_ops) == ["unknown"] * 4


@pytest.mark.needs("data", "crypto", "dp")
def test_describe_tells_effects_and_reads_of_plugins():
    assert introspect.describe("crypto.encrypt")["effects"] == "fresh"
    assert introspect.describe("crypto.hash")["reads"] == []
    assert introspect.describe("data.read")["reads"] == "by its attributes"
    assert introspect.describe("dp.count")["interfaces"] == ["Declassifies"]


@feop(name="toys.halve", dialects=("toys",))
def makes_other_ops(
    x: mp.TensorType, *, by: int, mode: Literal["up", "down"] = "up", to: str | None = None
):
    """Divide; its programs have ops of another name."""


def test_the_attributes_of_a_feop_that_is_no_op_are_its_keywords():
    facts = introspect.describe(makes_other_ops)
    assert facts["attributes"]["properties"] == {
        "by": {"type": "integer"},
        "mode": {"type": "string", "default": "up"},
        "to": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    }
    assert facts["attributes"]["required"] == ["by"]
    assert facts["kernels"] == "unknown"  # which ops it makes, it says when it is called


@mp.simple_op("spied.maybe", reads=lambda op: ("pay",), total=lambda op: op.attrs["exact"])
def maybe(x: mp.TensorType, *, exact: bool) -> mp.TensorType:
    """Reads and fails as its attribute says."""
    return x


def test_traits_that_an_attribute_decides():
    facts = introspect.describe("spied.maybe")
    assert facts["reads"] == facts["total"] == "by its attributes"
    json.dumps(facts)


def test_ops_that_are_no_feops_are_described():
    """Programs show their names."""
    mp.registry.list_ops()
    ours = [n for n in op_defs.names() if str(op_defs.provider(n)).startswith("mplang-")]
    names = set(ours) - {*mp.registry.feops.names()}
    assert {"simp.pcall_static", "simp.shuffle_static", "func.call"} <= names
    for name in names:
        facts = introspect.describe(name)
        assert (facts["name"], facts["op_kind"]) == (name, "op")
        assert facts["doc"], name
        json.dumps(facts)


@pytest.mark.needs("ibis")
def test_the_command_describes_an_op_of_programs():
    done = CliRunner().invoke(app, ["describe", "ibis.run"])
    assert done.exit_code == 0
    assert "zlib-compressed" in " ".join(done.output.split())


def test_describe_of_what_is_not_there_says_so():
    with pytest.raises(PluginLoadError, match="no plugin for the family 'quantum' is installed"):
        introspect.describe("quantum.entangle")


def test_rows_look_good_in_a_terminal_and_a_notebook():
    rows = introspect.Rows([{"name": "<b>", "tags": ["x", "y"], "n": 1}])
    console = Console(width=60)
    with console.capture() as capture:
        console.print(rows)
    assert "x, y" in capture.get()
    cells = ("&lt;b&gt;", "x, y", "1")
    assert "".join(f"<td><bdi>{each}</bdi></td>" for each in cells) in rows._repr_html_()
    assert "<table>" in introspect.Rows()._repr_html_()


def shown_at(width, renderable) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


@pytest.mark.parametrize("list_all", [introspect.list_ops, introspect.list_plugins, examine])
@pytest.mark.parametrize("width", [80, 120, 200])
def test_lists_are_legible_in_a_terminal(list_all, width):
    """No text is cut, and words are whole."""
    rows = list_all()
    shown = shown_at(width, rows)
    assert max(map(len, shown.splitlines())) <= width
    words = set(shown.split())
    for row in rows:
        for value in row.values():
            texts = ", ".join(value) if isinstance(value, list) else str(value)
            missing = set(texts.split()) - words
            assert not [word for word in missing if len(word) < width // 2]


def test_rows_are_records_where_there_is_no_room():
    rows = introspect.Rows([{"name": "a.b", "tags": ["x", "y"], "doc": "[red]what\x1b it is"}] * 2)
    record = ["a.b", "  tags  x, y", r"  doc   [red]what\x1b it", "        is"]
    assert [line.rstrip() for line in shown_at(24, rows).splitlines()] == record * 2
    head, _, first, _ = shown_at(80, rows).splitlines()
    assert head.split() == ["name", "tags", "doc"]
    assert first.split() == ["a.b", "x,", "y", r"[red]what\x1b", "it", "is"]


def test_the_command_describes_legibly(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(app, ["describe", "simp.pcall_static"]).output.splitlines()
    assert max(map(len, lines)) <= 100  # lines of a docstring are as they were written
    assert "effects     none" in [line.rstrip() for line in lines]


@pytest.mark.needs("jax", "spu")
def test_the_registry_finds_by_predicate():
    compilers = mp.registry.find(predicate=lambda meta: meta.op_kind == "compiler")
    assert {"jax.compile", "spu.run_jax"} <= {op.__feop_meta__.name for op in compilers}
    assert mp.registry.capabilities("spu.run_jax")["requires_device"]["members"] == ">=2"
    assert mp.registry.config_schema("jax.compile") is None


@pytest.mark.parametrize("command", ["plugins", "ops", "devices", "backends", "doctor"])
def test_the_commands_print_tables_and_json(command):
    runner = CliRunner()
    assert runner.invoke(app, [command]).exit_code == 0
    done = runner.invoke(app, [command, "--json"])
    assert isinstance(json.loads(done.output), list)


@pytest.mark.needs("jax", "spu")
def test_the_command_describes_an_op():
    runner = CliRunner()
    assert "single_rank" in runner.invoke(app, ["describe", "jax.compile"]).output
    facts = json.loads(runner.invoke(app, ["describe", "jax.compile", "--json"]).output)
    assert facts["name"] == "jax.compile"


@pytest.mark.needs("jax", "spu", "crypto")
def test_the_doctor_asks_each_plugin():
    rows = examine()
    assert not [row for row in rows if row["status"] == "failed"]
    told = {(row["package"], row["check"]) for row in rows}
    assert ("mplang-jax", "a function compiles and runs") in told
    assert ("mplang-spu", "libspu has channels") in told
    assert ("mplang-crypto", "AES-256-GCM works") in told
    assert {("mplang-core", "version"), ("mplang-jax", "version")} <= told


def test_the_doctor_says_what_is_missing_and_what_does_not_fit(tmp_path):
    requires = ("mplang-core>=0.1", "numpy<1", "no-such-package>=2", "pytest; extra == 'test'")
    source = """
        from mplang_core.plugins import hookimpl

        @hookimpl
        def mplang_doctor():
            raise OSError("no device")
        """
    wheel = make_wheel(
        tmp_path, "mplang-ill", "ill", source, {"mplang.frontends": ["ill"]}, requires
    )
    install(tmp_path / "here", wheel)
    command = [sys.executable, "-m", "mplang_cli.cli", "doctor", "--json"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "here")}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 1
    rows = [row for row in json.loads(done.stdout) if row["package"] == "mplang-ill"]
    assert [(row["check"], row["status"]) for row in rows] == [
        ("version", "failed"),
        ("its checks", "failed"),
    ]
    assert "needs numpy<1, found" in rows[0]["detail"]
    assert "needs no-such-package, which is missing; pip install" in rows[0]["detail"]
    assert rows[1]["detail"] == "OSError: no device"


def failed_of(folder, groups):
    """Return what the doctor says of a package with entry points, by its check."""
    wheel = make_wheel(folder, "mplang-ill", "ill", "", groups, ("mplang-core>=0.1",))
    install(folder / "here", wheel)
    command = [sys.executable, "-m", "mplang_cli.cli", "doctor", "--json"]
    env = {**os.environ, "PYTHONPATH": str(folder / "here")}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    rows = [row for row in json.loads(done.stdout) if row["package"] == "mplang-ill"]
    return {row["check"]: row["detail"] for row in rows if row["status"] == "failed"}


def test_the_doctor_says_what_nothing_looks_up(tmp_path):
    groups = {"mplang.pases": ["tidy"], "mplang.commands": ["run"], "mplang.compatible": ["0.1"]}
    told = failed_of(tmp_path, groups)
    assert "there are mplang.admission, mplang.analyses," in told["tidy in mplang.pases"]
    text = told["run in mplang.commands"]
    assert "mplang run is a command of mplang's own; it needs another name" in text
    assert not any("compatible" in check for check in told)


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        (
            {"mplang.compatible": ["0.1"], "mplang.passes": ["tidy"]},
            "it counts for no package with",
        ),
        ({"mplang.compatible": ["any"]}, "any is not a version; expected one such as 1.2.0"),
    ],
)
def test_the_doctor_says_which_declaration_does_not_count(tmp_path, groups, told):
    found = failed_of(tmp_path, groups)
    assert told in found[f"{groups['mplang.compatible'][0]} in mplang.compatible"]


@pytest.mark.needs("jax")
def test_the_shell_completes_families_and_ops():
    words = {"ops ": "jax", "describe jax.": "jax.compile"}
    for typed, completed in words.items():
        env = {
            "_MPLANG_COMPLETE": "complete_bash",
            "COMP_WORDS": f"mplang {typed}",
            "COMP_CWORD": "2",
        }
        command = [os.path.join(os.path.dirname(sys.executable), "mplang")]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})
        assert completed in done.stdout.split()


def test_the_command_tells_errors_in_a_line():
    command = [os.path.join(os.path.dirname(sys.executable), "mplang"), "describe", "quantum.x"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("mplang: no feop 'quantum.x'")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("xyzzy", r"no feop and no op 'xyzzy': a name is FAMILY\.NAME, such as jax\.compile"),
        ("simp.shufle_static", r"did you mean 'simp\.shuffle_static'"),
        pytest.param("jax.compil", r"did you mean 'jax\.compile'", marks=NEEDS_JAX),
        pytest.param(
            "weather.now", r"the family 'weather' is installed; there are: .*jax", marks=NEEDS_JAX
        ),
    ],
)
def test_describe_of_an_unknown_name_says_what_names_are(name, expected):
    with pytest.raises(mp.errors.PluginLoadError, match=expected):
        introspect.describe(name)
