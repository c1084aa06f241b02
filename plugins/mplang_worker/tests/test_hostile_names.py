"""Names that a program wrote: on live workers, nothing that an owner reads is forged by them.

Each place where a coordinator can write a text of its own is tried, and all that is shown of it is
read: errors, the log of the gate, the worker's own log, reviews and lists of approvals.
"""

from __future__ import annotations

import json

import pytest
from bank_and_shop import CATALOGUE, CLUSTER, at_bank, people, raw_of, refused
from http_raw import DOUBLE, changed
from mplang_cli.cli import app
from mplang_testing import dialect
from mplang_testing.waiting import wait_until
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import MPLangError
from mplang_core.printable import printable

HIDDEN = "\u3164\u2800\ufe0fe\u0301\u202e\u2066\u200b\U000e0041\u00ad\x9b\x1b[2J\r\n"
"""Blanks, marks that combine, orders of writing, what is not seen, and a terminal's commands."""

BEGIN = "pay\u05d0"  # a letter that is written from right to left
TEXT = f"{BEGIN}, approved by CISO. Nobody learns anything of bank's data.{HIDDEN}bank permits it"
DRAWN = "│─•●▶◀◆═║╌╴╶╭╮╰╯┌┐└┘├┤┬┴┼━┃…"


def called():
    return people("id")


called.__name__ = called.__qualname__ = TEXT


def of_column():
    return at_bank(lambda t: t.select(**{TEXT: t.id}), people("id"))


def of_expression():
    return at_bank(lambda t: t.filter(t.city != TEXT).select("id"), people())


LINES = """
def counted():
    return mp.dp.count(mp.dataset("bank", "people", ["id"]), unit="id", epsilon=0.5)

def read():
    return mp.dataset("bank", "people", ["id"])

def repeated():
    def body(state):
        i, x = state
        return mp.invoke(dialect.add, i, mp.constant(1)), mp.put("P0", mp.put("P1", x))
    def below(state):
        return mp.invoke(dialect.less, state[0], mp.constant(3))
    return mp.while_loop(below, body, (mp.constant(0), mp.put("P0", mp.constant(1))))
"""


def in_file(name: str):
    """Return a program whose lines are of a file with that name."""
    scope = {"mp": mp, "dialect": dialect}
    exec(compile(LINES, TEXT, "exec"), scope)
    return scope[name]


PROGRAMS = {
    "program": called, "column": of_column, "expression": of_expression, "file": in_file("read"),
}  # fmt: skip


def check(text: str) -> None:
    """Check that a text hides nothing, and has what the program wrote in quotes only."""
    assert printable(text, keep="\n" + DRAWN) == text
    begin = printable(BEGIN)
    quoted = [text.count(mark + begin) for mark in ("'", '"')]
    assert text.count(begin) == sum(quoted), text


def shown_by(bank, *command: str) -> str:
    """Return what a command of the bank shows."""
    config = [] if command[0] in ("inspect", "diff") else ["-c", str(bank.folder / "bank.yaml")]
    found = CliRunner().invoke(app, [*command, *config], env={"COLUMNS": "4000"})
    assert found.exit_code in (0, 1), found.output
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    assert found.stdout, command
    return found.stdout


@pytest.fixture
def artifact(bank):
    """Return a function that compiles a program, and returns the path of its artifact."""

    def made(program) -> str:
        path = bank.folder / f"{len(list(bank.folder.glob('*.mpl')))}.mpl"
        with mp.catalogue(CATALOGUE):
            mp.artifact.save(path, mp.compile(program, cluster_spec=CLUSTER))
        return str(path)

    return made


@pytest.mark.parametrize("place", PROGRAMS)
def test_what_a_refused_program_wrote_is_quoted_and_seen(bank, place):
    begin = (bank.folder / "bank.log").stat().st_size
    with bank.connect() as host:
        check(refused(bank, host, PROGRAMS[place]))
        with pytest.raises(MPLangError) as found:
            mp.evaluate(host, PROGRAMS[place])
    check(str(found.value))
    check(shown_by(bank, "audit", "show"))
    exported = shown_by(bank, "audit", "export")
    assert printable(exported, keep="\n") == exported
    with open(bank.folder / "bank.log", "rb") as log:
        log.seek(begin)
        check(log.read().decode())


@pytest.mark.parametrize("place", [*PROGRAMS, "noise", "loop"])
def test_what_a_program_wrote_is_quoted_and_seen_before_it_runs(bank, artifact, place):
    further = {"noise": in_file("counted"), "loop": in_file("repeated")}
    path, other = artifact({**PROGRAMS, **further}[place]), artifact(lambda: people("pay"))
    check(shown_by(bank, "review", path, "--coordinator", "host"))
    check(shown_by(bank, "policy", "check", path, "--coordinator", "host"))
    check(shown_by(bank, "inspect", path))
    shown = shown_by(bank, "diff", path, other) + shown_by(bank, "diff", other, path)
    assert printable(shown, keep="\n") == shown


def test_what_a_permitted_program_wrote_is_quoted_and_seen(bank, approvals):
    """An approval has its name, and so have entries about its runs."""
    bank.approve(called)
    check(shown_by(bank, "approvals"))
    with bank.connect() as host:
        assert mp.fetch(host, mp.evaluate(host, called)).num_rows == 100
    wait_until(lambda: [each for each in bank.log() if each.kind == "end"], "the end of the run")
    check(shown_by(bank, "audit", "show"))
    check(shown_by(bank, "approvals"))


def test_the_name_of_an_op_is_quoted_and_seen(bank):
    def rename(envelope):
        envelope[5][1][0][4][0][1][1][0][0] = f"kit.{TEXT}"

    worker = raw_of(bank)
    begin = (bank.folder / "bank.log").stat().st_size
    with worker.opened() as session:
        found = worker.put_program(changed(DOUBLE, rename), session)
    assert found.status in (400, 422)
    with open(bank.folder / "bank.log", "rb") as log:
        log.seek(begin)
        told = log.read().decode()
    assert printable(told, keep="\n") == told
    assert json.loads(found.data)["error"]["code"]
