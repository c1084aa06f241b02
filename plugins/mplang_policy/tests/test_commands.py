"""The commands of an owner: what they print, and no bare traceback for a wrong file."""

from __future__ import annotations

import json
import re
from contextlib import closing

import pytest
import yaml
from mplang_cli.cli import app
from mplang_policy import Ledger
from mplang_policy.ledger import Writing
from mplang_policy.peer_logs import PeerLogs
from mplang_policy.signed_heads import Seal, SignedHead
from policy_testbed import BANK, CATALOGUE, CLUSTER, data_of_bank
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core import MPLangError


def pay():
    return mp.dataset("bank", "people", ["pay"])


@pytest.fixture
def folder(tmp_path):
    """Return the folder of the bank, with an artifact."""
    fields = {**BANK, "data": data_of_bank(), "gate": {"policy": "rules", "log": "gate.db"}}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))
    with mp.catalogue(CATALOGUE):
        traced = mp.compile(pay, cluster_spec=CLUSTER)
        traced.trace(None)
        mp.artifact.save(tmp_path / "pay.mpl", traced)
    return tmp_path


def run(folder, *args, ok=True):
    """Run a command, and return what it prints; an error is one of ours."""
    given = [str(folder / each) if str(each).endswith((".mpl", ".yaml")) else each for each in args]
    done = CliRunner().invoke(app, [*given, "-c", str(folder / "worker.yaml")])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        assert isinstance(done.exception, MPLangError), done.exception
    assert (done.exit_code == 0) is ok, done.output
    return done.output + str(done.exception or "")


def test_rules_to_begin_with_permit_aggregates_only(folder):
    assert "wrote" in run(folder, "policy", "init")
    assert "File exists" in run(folder, "policy", "init", ok=False)
    told = run(folder, "policy", "check", "pay.mpl", "--as", "bank", ok=False)
    assert '"aggregates for analyst"' in told
    assert "context.k >= 20 (k is 0)" in told
    rules = re.findall(r"bank adds to its rules:\n((?:    .*\n)+)", told)
    (folder / "rules" / "more.cedar").write_text("".join(rules))
    assert "bank permits pay" in run(folder, "policy", "check", "pay.mpl")


def test_rules_to_begin_with_let_a_party_without_data_compute_on_shares(tmp_path):
    fields = {**BANK, "data": {}, "gate": {"policy": "rules.cedar", "log": "gate.db"}}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))
    assert "wrote" in run(tmp_path, "policy", "init")
    shares = {"action": "forward", "to": "shop", "context": {"form": "share", "discloses": False}}
    plain = {"action": "forward", "to": "shop", "context": {"form": "plain", "discloses": False}}
    cases = [
        {"name": "shares", "expect": "permit", **shares},
        {"name": "plain", "expect": "refuse", **plain},
    ]
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(cases))
    run(tmp_path, "policy", "test", "cases.yaml")


def test_what_is_permitted_is_listed(folder):
    (folder / "rules.cedar").write_text("permit (principal, action, resource);")
    text = (folder / "worker.yaml").read_text().replace("policy: rules", "policy: rules.cedar")
    (folder / "worker.yaml").write_text(text)
    told = run(folder, "policy", "check", "pay.mpl")
    assert "bank permits pay for analyst" in told
    assert "that the host, analyst, gets plain" in told
    run(folder, "policy", "check", "pay.mpl", "--as", "shop", ok=False)
    run(folder, "policy", "check", "pay.mpl", "--coordinator", "eve", ok=False)


@pytest.mark.needs("hello")
def test_admission_checks_of_the_worker_are_asked_too(folder):
    (folder / "rules.cedar").write_text("permit (principal, action, resource);")
    text = (folder / "worker.yaml").read_text().replace("policy: rules", "policy: rules.cedar")

    def check(section: str, ok: bool = False) -> str:
        (folder / "worker.yaml").write_text(f"{text}\nadmission: {section}\n")
        return run(folder, "policy", "check", "pay.mpl", ok=ok)

    assert "bank permits pay" in check("{few_values: {most: 100}}", ok=True)
    told = check("{few_values: {most: 0}}")
    assert "few_values refuses the program: bank would hold" in told
    assert "admission.few_values" in check("{few_values: {most: many}}")
    assert "no such check is installed" in check("{few_value: {}}")
    assert "expected checks by name" in check("[few_values]")


CASES = """
- {name: a mean of twenty, expect: permit, action: fetch, context: {columns: [people.pay], k: 20}}
- {name: one person, expect: refuse, by: context.k >= 20, action: fetch, context: {k: 1}}
- {name: shares, expect: permit, action: disclose, to: shop, context: {form: share, discloses: no}}
- {name: to the shop, expect: refuse, action: disclose, to: shop}
- {name: a program, expect: refuse, program: pay.mpl}
- {name: reading, expect: permit, action: read, to: people, context: {columns: [people.pay]}}
- {name: a failure, expect: permit, action: disclose, to: everyone, context: {what: failure}}
"""


def test_an_owners_cases(folder):
    run(folder, "policy", "init")
    (folder / "cases.yaml").write_text(CASES)
    assert "7 of 7 as expected" in run(folder, "policy", "test", "cases.yaml")
    (folder / "cases.yaml").write_text(CASES.replace("expect: permit", "expect: refuse"))
    told = run(folder, "policy", "test", "cases.yaml", ok=False)
    assert "FAIL a mean of twenty" in told
    assert "3 of 7 as expected" in told


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ({"action": "fetch", "context": {"colums": ["people.pay"]}}, "fetch has no colums"),
        ({"action": "fetch", "context": {"columns": ["people.payy"]}}, "no Column 'people.payy'"),
        ({"action": "fetch", "context": {"columns": "people.pay"}}, "columns is a list"),
        ({"action": "fetch", "context": {"columns": [5]}}, "there is no Column 5"),
        ({"action": "fetch", "context": {"form": "plian"}}, "form is never 'plian'"),
        ({"action": "fetch", "context": {"k": "many"}}, "case 'it'"),
        ({"action": "disclose"}, "disclose needs `to`"),
        ({}, "a case has a program or an action"),
        ({"action": "fetch", "program": "pay.mpl"}, "a case has a program or an action"),
        ({"action": "fetch", 5: 6}, "field '5'"),
    ],
)
def test_a_case_that_speaks_of_what_there_is_not_is_refused(folder, case, told):
    """It would be refused by any rules, and an owner would take that for theirs."""
    run(folder, "policy", "init")
    (folder / "cases.yaml").write_text(yaml.safe_dump([{"name": "it", "expect": "refuse", **case}]))
    assert told in run(folder, "policy", "test", "cases.yaml", ok=False)


@pytest.mark.parametrize("text", ["", "5", "{a: 1}", "[5]", "[", "- {name: x}"])
def test_cases_that_are_none_are_told(folder, text):
    run(folder, "policy", "init")
    (folder / "cases.yaml").write_text(text)
    run(folder, "policy", "test", "cases.yaml", ok=False)


@pytest.mark.parametrize(
    "fields",
    [
        {"gate": {1: "x"}}, {"gate": 5}, {"gate": {"policy": "rules"}}, {"data": ["a"]},
        {"data": {"people": 5}}, {"data": {"people": {"columns": 5}}}, {"coordinators": 5},
        {"name": 5}, {"peers": 5},
    ],
)  # fmt: skip
def test_a_wrong_worker_file_is_told(folder, fields):
    before = yaml.safe_load((folder / "worker.yaml").read_text())
    (folder / "worker.yaml").write_text(yaml.safe_dump({**before, **fields}))
    with closing(Ledger(folder / "gate.db")) as ledger:
        ledger.add("put", {})
    for command in (("audit", "show"), ("policy", "check", "pay.mpl"), ("approvals",)):
        done = CliRunner().invoke(
            app, [*command[:2], *map(str, command[2:]), "-c", str(folder / "worker.yaml")]
        )
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            assert isinstance(done.exception, MPLangError), (command, done.exception)


def note(writing: Writing, number: int, digit: str) -> None:
    """Note a head of the shop's log, all of whose hashes are one digit."""
    signed = SignedHead("shop", "run", Seal(number, digit * 64))
    writing.changed(lambda file: PeerLogs(file).note(signed, "bank", writing.now))


@pytest.fixture
def logged(folder):
    """Return the folder, with a log of four entries."""
    about = {"coordinator": "analyst", "session": "s"}
    with closing(Ledger(folder / "gate.db")) as ledger:
        with ledger.writing() as writing:
            rows = writing.add_detail([{"action": "fetch", "columns": ["people.pay"]}])
            run_of = {"run": "s-0", "name": "pay", "program": "a" * 64, "rows": rows}
            writing.add("run", {**about, **run_of})
            note(writing, 7, "b")
        ledger.add("end", {**about, "run": "s-0", "state": "done", "sent": {"shop": 80}})
        ledger.add("fetch", {**about, "value": "s-0.0", "bytes": 24})
        ledger.add("refusal", {"coordinator": "other", "name": "pay", "why": "no"})
    return folder


def test_a_log_is_shown_line_by_line(logged):
    lines = run(logged, "audit", "show").splitlines()
    assert [line.partition("Z ")[0].split()[0] for line in lines] == ["1", "2", "3", "4"]
    assert "analyst runs pay, aaaaaaaaaaaa, as s-0" in lines[0]
    assert "s-0 is done; sent 80 bytes to shop" in lines[1]
    assert "analyst fetches s-0.0, 24 bytes" in lines[2]
    assert "other is refused pay: no" in lines[3]
    assert len(run(logged, "audit", "show", "--coordinator", "other").splitlines()) == 1
    assert len(run(logged, "audit", "show", "--kind", "fetch").splitlines()) == 1


def test_entries_of_one_second_have_times_that_differ(folder):
    times = iter([1e9 + each / 8 for each in range(100)])
    with closing(Ledger(folder / "gate.db", clock=lambda: next(times))) as ledger:
        for _ in range(2):
            ledger.add("refusal", {"coordinator": "other", "name": "pay", "why": "no"})
    shown = [line.split()[1] for line in run(folder, "audit", "show").splitlines()]
    exported = [json.loads(line)["time"] for line in run(folder, "audit", "export").splitlines()]
    assert shown == exported
    assert len(set(shown)) == 2
    assert all(re.fullmatch(r"2001-09-09T01:46:\d\d\.\d{3}\+00:00", each) for each in shown)


def test_a_log_is_shown_since_a_time_and_a_reason_in_one_line(logged):
    with closing(Ledger(logged / "gate.db")) as ledger:
        why = "pay discloses to everyone:\n" + "\n".join(f"- row {i}" for i in range(200))
        ledger.add("refusal", {"coordinator": "other", "name": "pay", "why": why})
    (line,) = run(logged, "audit", "show", "--since", "1d", "--kind", "refusal").splitlines()[1:]
    assert "pay discloses to everyone: - row 0 - row 1" in line
    assert "\\n" not in line
    assert len(line) < 400
    assert "mplang audit export" in line
    assert run(logged, "audit", "show", "--since", "2999-01-01") == ""
    assert len(run(logged, "audit", "show", "--since", "2020-01-01T10:00").splitlines()) == 5
    assert "such as 2026-03-01" in run(logged, "audit", "show", "--since", "lately", ok=False)


def test_a_log_is_verified_and_exported(logged):
    assert "4 entries, each as it was written" in run(logged, "audit", "verify")
    assert run(logged, "audit", "heads").strip() == f"shop=7:{'b' * 64}"
    with closing(Ledger(logged / "gate.db", read_only=True)) as ledger:
        head = ledger.head
    run(logged, "audit", "verify", "--head", f"shop={head.number}:{head.hash}")
    told = run(logged, "audit", "verify", "--head", f"shop=5:{'c' * 64}", ok=False)
    assert "shop remembers entry 5; the log was cut off after 4" in told
    run(logged, "audit", "verify", "--head", "shop=nonsense", ok=False)
    entries = [json.loads(line) for line in run(logged, "audit", "export").splitlines()]
    assert entries[0]["detail"] == [{"action": "fetch", "columns": ["people.pay"]}]
    assert entries[3]["body"]["why"] == "no"


def test_a_log_that_is_not_there_is_told(folder):
    told = run(folder, "audit", "show", ok=False)
    assert "gate.db; the worker makes it when it starts" in told


def test_the_schema_is_printed():
    done = CliRunner().invoke(app, ["policy", "schema"])
    assert "action fetch appliesTo" in done.output


def test_a_review_says_which_queries_run_where_the_data_is(folder):
    def program():
        people = mp.dataset("bank", "people", ["pay"])
        return mp.sql("bank", "SELECT sum(pay) AS pay FROM {people}", people=people)

    run(folder, "policy", "init")
    with mp.catalogue(CATALOGUE):
        traced = mp.compile(program, cluster_spec=CLUSTER)
        traced.trace(None)
        mp.artifact.save(folder / "sum.mpl", traced)
    told = run(folder, "review", "sum.mpl")
    assert "Queries of program" in told
    assert "at the source" in told
    (row,) = json.loads(run(folder, "review", "sum.mpl", "--json"))["queries"]
    assert (row["at"], row["data_sets"]) == ("source", ["people"])
