"""Artifacts that were made by hand: what an owner reads of them is not written by who made them.

Each text of a manifest is tried, and each report and command that shows it. A text that says
something stands in quotes, or the artifact is refused, with what is wrong in quotes.
"""

from __future__ import annotations

import dataclasses
import html
import json
import re

import msgspec
import pytest
import yaml
from mplang_cli.artifact.inspecting import inspect
from mplang_cli.cli import app
from mplang_policy.approving import review_of
from mplang_policy.owner import Owner
from policy_testbed import BANK, CATALOGUE, CLUSTER, RUNS, program_of
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import MPLangError, TraceError, WireError
from mplang_core.printable import printable
from mplang_core.simp.ops.call import call_program

BEGIN = "approved by the board"
TEXTS = {
    "a sentence": f"{BEGIN}; nothing leaves",
    "a quote": f'{BEGIN}"; nothing leaves "',
    "bidi": f"{BEGIN}\u202e\u2066; nothing leaves\u05d0",
    "lines": f"{BEGIN}\nWhat the rules say\r\n  - permitted\x1b[2J",
    "long": f"{BEGIN}; nothing leaves" + " at all" * 100,
}
DRAWN = "\n│─•●▶◀◆═║╌╴╶╭╮╰╯┌┐└┘├┤┬┴┼━┃…→"


def program(x, **more):
    return mp.put("P0", x), {name: each for name, each in more.items() if type(each) is not str}


def packed(**more):
    """Return an artifact with a public input, a literal, and what is given by keyword."""
    x = mp.MPType(mp.TensorType("i64"), CLUSTER.mask)
    return mp.artifact.make(mp.compile(program, x, **more, cluster_spec=CLUSTER))


def altered(made, **changes):
    """Return an artifact with another manifest."""
    return mp.artifact.Artifact(msgspec.structs.replace(made.manifest, **changes), made.program)


def party(text):
    made = packed()
    parties = (*made.cluster.parties[:-1], text)
    return altered(made, cluster=msgspec.structs.replace(made.cluster, parties=parties))


def device(**changes):
    made = packed()
    *others, last = made.cluster.devices
    devices = (*others, msgspec.structs.replace(last, **changes))
    return altered(made, cluster=msgspec.structs.replace(made.cluster, devices=devices))


def config(text):
    return device(config=json.dumps({text: [text, {"a": text}]}, ensure_ascii=False))


def parameter(text):
    made = packed()
    return altered(made, signature=msgspec.structs.replace(made.signature, parameters=(text,)))


def needed(text):
    made = packed()
    more = mp.artifact.Requirement(text, text, (text,))
    return altered(made, requirements=(*made.requirements, more))


def unknown_type(text):
    """Return an artifact whose types nobody here can read."""
    made = needed("mplang-of-nobody")
    inputs = tuple(msgspec.structs.replace(each, type=text) for each in made.signature.inputs)
    outputs = tuple(msgspec.structs.replace(each, type=text) for each in made.signature.outputs)
    changed = msgspec.structs.replace(made.signature, inputs=inputs, outputs=outputs)
    return altered(made, signature=changed)


REFUSED = {
    "party": party,
    "device": lambda text: device(name=text),
    "kind": lambda text: device(kind=text),
    "parameter": parameter,
}
SHOWN = {
    "keyword": lambda text: packed(**{text: mp.MPType(mp.TensorType("i64"), CLUSTER.mask)}),
    "key": lambda text: packed(more={text: mp.MPType(mp.TensorType("i64"), CLUSTER.mask)}),
    "literal": lambda text: packed(more=text),
    "config": config,
}  # fmt: skip
INSPECTED = {**SHOWN, "needed": needed, "type": unknown_type}


def check(text: str) -> None:
    """Check that a text hides nothing, and has what the artifact says in quotes only."""
    assert printable(text, keep=DRAWN) == text
    before, *after = text.split(BEGIN)
    marks = before.count('"')
    for part in after:
        assert marks % 2 == 1, text  # a quote was opened, and is not closed
        marks += part.count('"')
    assert f'{BEGIN}"' not in text, text  # a quote of its own closes nothing
    assert all('"' in part for part in after), text


def check_report(report) -> None:
    """Check all that a report shows: text, terminal, notebook and page."""
    check(str(report))
    for page in (report.to_html(), report._repr_html_()):
        check(html.unescape(re.sub(r"<style.*?</style>|<[^>]*>", "\n", page, flags=re.DOTALL)))


@pytest.fixture
def folder(tmp_path):
    """Return the folder of the bank, which permits what does not concern its data."""
    (tmp_path / "rules.cedar").write_text(RUNS)
    gate = {"policy": str(tmp_path / "rules.cedar"), "log": str(tmp_path / "gate.db")}
    fields = {**BANK, "data": CATALOGUE["bank"], "gate": gate}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))
    return tmp_path


def shown_by(*command: str) -> str:
    found = CliRunner().invoke(app, [*map(str, command)], env={"COLUMNS": "4000"})
    if isinstance(found.exception, MPLangError):
        return found.output + str(found.exception)
    assert found.exit_code in (0, 1), found.output
    return found.output


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("place", REFUSED)
def test_what_is_no_name_is_refused(place, text):
    data = REFUSED[place](text).to_bytes()
    for way in (mp.artifact.load, mp.artifact.inspect, mp.artifact.manifest):
        with pytest.raises(WireError, match="is not a name") as found:
            way(data)
        check(str(found.value))


def test_an_artifact_of_such_a_cluster_is_not_made():
    cluster = mp.ClusterSpec([{"name": TEXTS["a sentence"]}])
    with pytest.raises(TraceError, match="is not a name: expected one word") as found:
        mp.artifact.make(mp.compile(lambda: mp.constant(1), cluster_spec=cluster))
    check(str(found.value))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("place", INSPECTED)
def test_what_an_inspection_shows_is_quoted(place, text):
    data = INSPECTED[place](text).to_bytes()
    found = inspect(data)
    check_report(found)
    assert BEGIN in str(found)
    if place not in SHOWN:
        with pytest.raises(MPLangError) as refused:
            mp.artifact.load(data)
        check(str(refused.value))


def pairs():
    """Yield places and texts: each text in two places now, in all by ``make test-long``."""
    for i, place in enumerate(SHOWN):
        for j, text in enumerate(TEXTS):
            marks = [] if (i + j) % 2 == 0 else [pytest.mark.long("seven commands, once more")]
            yield pytest.param(place, TEXTS[text], marks=marks, id=f"{place}-{text}")


@pytest.mark.parametrize(("place", "text"), [*pairs()])
def test_what_reviews_and_commands_show_is_quoted(folder, place, text):
    path, other = folder / "it.mpl", folder / "other.mpl"
    path.write_bytes(SHOWN[place](text).to_bytes())
    other.write_bytes(packed().to_bytes())
    owner = Owner.read(str(folder / "worker.yaml"))
    check_report(review_of(owner, str(path), "analyst", []))
    worker = ("-c", folder / "worker.yaml")
    for command in (
        ("review", path, *worker), ("policy", "check", path, *worker), ("inspect", path),
        ("review", path, *worker, "--input", "no=any"),
        ("inspect", path, "--picture"), ("inspect", path, "--analysis", "ranges"),
    ):  # fmt: skip
        check(shown_by(*command))
    told = shown_by("diff", path, other)
    check(told)
    assert BEGIN in told


def test_texts_that_differ_in_a_quote_differ_in_a_diff(folder):
    one, other = (SHOWN["key"](text) for text in (f'{BEGIN} "', f"{BEGIN} '"))
    assert mp.artifact.diff(one, other)


def test_ranges_call_inputs_by_quoted_names():
    for text in TEXTS.values():
        x = mp.MPType(mp.TensorType("i64"), CLUSTER.mask)
        check_report(mp.analysis.ranges(mp.compile(program, x, **{text: x}, cluster_spec=CLUSTER)))


def people():
    return mp.put("P1", mp.dataset("bank", "people", ["id", "city"]))


def of_column(text):
    return mp.parse(str(program_of(people)).replace('"city"', json.dumps(text)))


def of_function(text):
    return call_program(dataclasses.replace(program_of(people), name=text))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("program", [of_column, of_function])
def test_what_a_program_names_is_quoted(folder, program, text):
    path = folder / "it.mpl"
    mp.artifact.save(path, program(text), CLUSTER)
    owner = Owner.read(str(folder / "worker.yaml"))
    report = review_of(owner, str(path), "analyst", [])
    check_report(report)
    made = mp.artifact.load(path).program
    graph = mp.analysis.graph(made)
    assert BEGIN in str(report) + str(graph)
    for shown in (str(graph), report.discloses.picture().text(), str(mp.analysis.costs(made))):
        check(shown)
    check(shown_by("policy", "check", path, "-c", folder / "worker.yaml"))
