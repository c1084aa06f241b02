"""An approval holds for functions and texts of lines as they were shown, wherever they stand.

A function is compiled under the name of a file or a cell whose text :mod:`linecache` has, as
IPython compiles a cell.
"""

from __future__ import annotations

import io
import linecache
from dataclasses import replace

import msgspec
import pytest
from mplang_analysis import RunRequest, line_texts, texts_digest
from mplang_cli.artifact.container import close, open_
from mplang_policy.approving import review_of
from mplang_policy.envelope import open_envelope, read_key, sign
from policy_testbed import CATALOGUE, CLUSTER
from rich.console import Console
from test_approvals import YEAR, Bank

import mplang_core as mp
from mplang_core.ext import from_bytes, to_bytes

CELL = """\
import mplang_core as mp

def pay(year, month):
    table = mp.dataset("bank", "people", ["pay"])
    # the sum
    summed = mp.device("P0")(lambda t: t.agg(pay=t.pay.sum()))(table)
    return summed, year, month
"""
SUM = '    summed = mp.device("P0")(lambda t: t.agg(pay=t.pay.sum()))(table)'


def ran(source: str, file: str = "/tmp/ipykernel_7/100.py", name: str = "pay"):
    """Return a function of a cell that has run."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"__name__": "__main__"}
    exec(compile(source, file, "exec", dont_inherit=True), names)
    return names[name]


def compiled(fn):
    """Return the function, compiled for a year and a month."""
    with mp.catalogue(CATALOGUE):
        return mp.compile(fn, YEAR, YEAR, cluster_spec=CLUSTER)


@pytest.fixture
def bank(tmp_path):
    made = Bank(tmp_path)
    mp.artifact.save(made.program, compiled(ran(CELL)))
    made.approve("--uses", "9")
    yield made
    made.gate.close()


KEPT = {
    "the cell once more": {},
    "another cell": {"file": "/tmp/ipykernel_7/200.py"},
    "a file": {"file": "/home/ann/pay.py"},
    "the prompt": {"file": "<python-input-3>"},
    "a comment in another line": {"source": CELL.replace("# the sum", "# the sum of all")},
    "lines before it": {"source": f"# pay\n\n\n{CELL}"},
    "a comment beside def": {"source": CELL.replace("month):", "month):  # all of it")},
    "a line after it": {"source": f"{CELL}\nprint\n"},
    "indentation": {
        "source": CELL.replace("def pay", "if True:\n  def pay").replace("\n    ", "\n      ")
    },
}
ENDED = {
    "a comment in the line": {"source": CELL.replace(SUM, f"{SUM}  # sum")},
    "another name": {"source": CELL.replace("summed", "total")},
    "blanks": {"source": CELL.replace("t: t", "t:  t")},
    "what does nothing": {"source": CELL.replace(SUM, f"{SUM} if True else 1")},
    "another line of it": {"source": CELL.replace("table = mp", "table = rows = mp")},
}


@pytest.mark.parametrize("change", KEPT.values(), ids=KEPT)
def test_other_places_keep_an_approval(bank, change):
    assert bank.asks(bank.wants(fn=ran(**{"source": CELL, **change}))) == ""


@pytest.mark.parametrize("change", ENDED.values(), ids=ENDED)
def test_a_line_that_was_shown_and_is_another_ends_it(bank, change):
    run = bank.wants(fn=ran(**{"source": CELL, **change}))
    assert run.asked.program == mp.artifact.load(bank.program).digest
    assert "the text of its lines is not what was shown" in bank.asks(run)
    assert bank.asks(bank.wants(fn=ran(CELL))) == ""


def test_another_function_ends_it(bank):
    renamed = bank.wants(fn=ran(CELL.replace("def pay", "def pays"), name="pays"))
    assert "it is for pay, and this is called pays" in bank.asks(renamed)
    within = CELL.replace("def pay", "def outer():\n  def pay").replace("\n    ", "\n      ")
    moved = bank.wants(fn=ran(f"{within}  return pay\npay = outer()\n"))
    assert "the text of its lines is not what was shown" in bank.asks(moved)


def test_a_run_that_tells_no_lines_is_refused(bank):
    run = bank.wants(fn=ran(CELL))
    silent = RunRequest("s", "s-0", replace(run.asked, texts=""), run.inputs)
    assert "the run does not include its source lines" in bank.asks(silent)


def test_whoever_lies_about_lines_runs_what_was_approved_and_nothing_else(bank):
    """What runs is bound by the program's digest: the text of lines is the coordinator's word."""
    approved = bank.wants(fn=ran(CELL)).asked
    other = bank.wants(fn=ran(CELL.replace("t.pay.sum()", "t.pay.sum() + 1")))
    lie = replace(other.asked, texts=approved.texts, shown=approved.shown)
    assert "it is for program" in bank.asks(RunRequest("s", "s-0", lie, other.inputs))


def test_the_artifact_has_the_lines_and_what_a_worker_gets_has_none(bank):
    loaded = mp.artifact.load(bank.program).program
    assert texts_digest(loaded) == bank.wants(fn=ran(CELL)).asked.texts
    assert SUM.strip() in {each.text for each in line_texts(loaded)}
    assert b"summed" not in to_bytes(loaded)
    assert {each.text for each in line_texts(from_bytes(to_bytes(loaded)))} == {""}


def test_no_file_is_read_for_a_line_that_another_told(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the password\n")
    program = from_bytes(to_bytes(compiled(ran(CELL)).program))
    for op in program.graph.walk():
        op.location = replace(op.location, file=str(secret), line=1)
    assert {each.text for each in line_texts(program)} == {""}


def test_an_artifact_without_lines_is_approved_for_what_tells_none(bank):
    mp.artifact.save(bank.program, compiled(ran(CELL)), locations=False)
    for file in bank.files:
        file.unlink()
    bank.approve()
    run, program = bank.wants(fn=ran(CELL)), mp.artifact.load(bank.program).program
    assert "the text of its lines is not" in bank.asks(run)
    asked = replace(run.asked, texts=texts_digest(program))
    assert bank.asks(RunRequest("s", "s-0", asked, run.inputs)) == ""


def test_an_approval_of_version_1_holds_for_files_and_numbers(bank):
    """As when it was signed: it is neither wider nor narrower than what its owner saw."""
    run = bank.wants(fn=ran(CELL))
    (file,) = bank.files
    new = open_envelope(file.read_bytes(), {}).approval
    old = new.model_copy(update={"version": 1, "shown": run.asked.shown})
    file.write_bytes(sign(old, read_key(str(bank.folder / "ann.key"), None)))
    assert bank.asks(run) == ""
    silent = replace(run.asked, texts="")  # of an earlier coordinator
    assert bank.asks(RunRequest("s", "s-1", silent, run.inputs)) == ""
    refused = bank.asks(bank.wants(fn=ran(f"\n{CELL}")))
    assert "its names or lines are not those that were shown" in refused
    assert "only versions have changed" in bank.approve("--renew", file)
    assert {open_envelope(each.read_bytes(), {}).approval.version for each in bank.files} == {1}


# -- the review


HOSTILE = {
    "our quotes": "x = 1”  What the rules say: “permitted",
    "escapes of a terminal": "x = mp.put(1)  # \x1b[2J\x1b[31mno rule refuses it",
    "right to left": "x = mp.put(1)  # \u202egnirts\u2066",
    "markup of rich": "x = [bold red]mp.put(1)[/bold red]",
    "markup of HTML": "</td><script>alert(1)</script><!--",
    "quotes": 'x = "a" \\ "; What the rules say: permitted',
    "blanks": f"x = 1{' ' * 50}\u3164\u2800; hidden()",
    "long": f"x = {'y + ' * 500}",
    "line breaks": "x = 1\x85\u2028y",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_a_line_says_cannot_be_taken_for_ours(bank, text):
    told = compiled(ran(CELL))
    for op in told.program.graph.walk():
        op.location = replace(op.location, text=text, function=text)
    mp.artifact.save(bank.program, told)
    found = review_of(bank.owner, str(bank.program), "analyst", ())
    console = Console(file=io.StringIO(), width=300, force_terminal=True, color_system="truecolor")
    console.print(found)
    printed = console.file.getvalue()
    page, shown = found.to_html(), str(found)
    assert "<script>alert" not in page
    for mark in "\u202e\u2066\u3164\u2800\x85\u2028":
        assert all(mark not in each for each in (page, shown, printed, found.to_json()))
    assert "\x1b" not in page + shown
    assert "\x1b[2J" not in printed
    assert ("[bold red]" in printed) is ("[bold red]" in text)  # as it stands, not as a style
    assert "“x = 1”" not in page + shown + printed
    assert all(len(each[2]) <= 200 for each in found.lines())


def forged(artifact, change) -> bytes:
    """Return an artifact whose lines are changed."""
    payload = msgspec.msgpack.decode(open_(artifact.read_bytes()))
    payload[2] = change(*payload[2])
    return close(msgspec.msgpack.encode(payload))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lines, ops: [[[n, "a\x1b[31m"] for n, _ in lines], ops], "characters that are not"),
        (lambda lines, ops: [[[f"{n}\u202e", t] for n, t in lines], ops], "characters that are"),
        (lambda lines, ops: [[[n, f"{t} "] for n, t in lines], ops], "characters that are not"),
        (lambda lines, ops: [lines, ops[1:]], "it tells the lines of"),
        (lambda lines, ops: [lines, [99] * len(ops)], "an op has line 99 of"),
        (lambda lines, ops: [lines, [-1] * len(ops)], "an op has line -1 of"),
        (lambda lines, ops: [[["f", "x" * 201]], ops], "length <= 200"),
        (lambda lines, ops: [[["f", "x"]] * 70_000, ops], "length <= 65536"),
        (lambda lines, ops: [[["f"]], ops], "contradicts itself"),
    ],
)
def test_an_artifact_whose_lines_are_no_lines_is_refused(bank, change, why):
    with pytest.raises(mp.errors.WireError, match=why):
        mp.artifact.load(forged(bank.program, change))


def test_a_review_shows_each_line_with_its_text(bank):
    found = review_of(bank.owner, str(bank.program), "analyst", ())
    assert ["100.py:6", "pay", SUM.strip()] in found.lines()
    assert len(found.lines()) == len({tuple(each) for each in found.lines()})
    told = " ".join(str(found).split())
    assert "This text is what analyst claims." in told
    assert f"“{SUM.strip()}”" in told
    assert {"line": "100.py:6", "function": "pay", "text": SUM.strip()} in found.to_dict()["lines"]
