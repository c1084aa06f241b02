"""Constants that a program contains are in its review, however it matches or filters with them."""

from __future__ import annotations

import hashlib
import json

import mplang_tables
import numpy as np
import pytest
import yaml
from mplang_analysis import constants
from policy_testbed import BANK, CATALOGUE, CLUSTER, RUNS, program_of
from typer.testing import CliRunner

import mplang_core as mp


def people():
    return mp.dataset("bank", "people", ["id", "pay", "city"])


def at_bank(fn, *values):
    return mp.device("P0")(fn)(*values)


def tensor():
    pay = at_bank(lambda t: t.select("pay"), people())
    return mp.device("P0")(mplang_tables.to_tensor)(pay, rows=3)


def by_a_table():
    chosen = at_bank(mplang_tables.table({"id": [4711, 815], "why": ["x", None]}))
    return at_bank(lambda t, s: t.semi_join(s, "id"), people(), chosen)


def by_a_table_of_another_party():
    chosen = mp.device("P1")(mplang_tables.table({"id": [4711, 815]}))()
    return at_bank(lambda t, s: t.semi_join(s, "id"), people(), mp.put("P0", chosen))


def by_sql():
    return at_bank(
        lambda t: t.filter(t.city == "Bern", t.id.isin([4711, 815]), t.pay > 2.5), people()
    )


def by_a_number():
    return at_bank(lambda x: (x == 4711.0).sum(), tensor())


def by_an_array():
    return at_bank(lambda x, y: (x == y).any(), tensor(), mp.constant([4711.0, 815.0]))


def in_the_code():
    return at_bank(lambda x: (x == np.array([[4711.0], [815.0], [3.0]])).any(), tensor())


def on_shares():
    return mp.reveal(mp.device("SP0")(lambda x: x * 4711)(mp.seal(tensor())), to="P0")


SMALL = [
    (by_a_table, {("table.literal", "id", "4711, 815"), ("table.literal", "why", '"x", null')}),
    (by_a_table_of_another_party, {("table.literal", "id", "4711, 815")}),
    (
        by_sql,
        {("ibis.run", "", "4711, 815"), ("ibis.run", "", '"Bern"'), ("ibis.run", "", '"2.5"')},
    ),
    (by_a_number, {("jax.run", "", "4.711000e+03")}),
    (by_an_array, {("simp.constant", "", "4711.0, 815.0")}),
    (in_the_code, {("simp.constant", "", "4711.0, 815.0, 3.0")}),
    (on_shares, {("spu.run_jax", "", "4.711000e+03")}),
]


def found(program):
    return {(each.op, each.constant.name, each.constant.shown) for each in constants(program)}


@pytest.mark.parametrize(("program", "expected"), SMALL)
def test_small_constants_are_shown_whole(program, expected):
    assert expected <= found(program_of(program))


def test_large_ones_are_shown_by_number_digest_and_first_values():
    ids = list(range(1000, 1500))
    numbers = np.arange(500.0)

    def program():
        chosen = at_bank(mplang_tables.table({"id": ids}))
        some = at_bank(lambda t, s: t.filter(t.id.isin(ids)).semi_join(s, "id"), people(), chosen)
        return some, at_bank(lambda x, y: (x == y).sum(), tensor(), mp.constant(numbers))

    lines = hashlib.sha256("".join(f"{json.dumps(each)}\n" for each in ids).encode()).hexdigest()
    listed = f"500 values, SHA-256 {lines}, the first: 1000, 1001, 1002, 1003, …"
    array = hashlib.sha256(numbers.tobytes()).hexdigest()
    told = found(program_of(program))
    assert ("table.literal", "id", listed) in told
    assert ("ibis.run", "", listed) in told
    first = "the first: 0.0, 1.0, 2.0, 3.0, …"
    assert ("simp.constant", "", f"500 values, SHA-256 {array}, {first}") in told


def test_a_long_text_is_cut_and_has_its_digest():
    text = "x" * 500

    def program():
        return at_bank(lambda t: t.filter(t.city == text), people())

    digest = hashlib.sha256(json.dumps(text).encode() + b"\n").hexdigest()
    (shown,) = (shown for _, _, shown in found(program_of(program)) if digest in shown)
    assert len(shown) < 200


def test_the_review_has_them_in_text_and_on_its_page(tmp_path):
    from mplang_cli.cli import app

    (tmp_path / "rules.cedar").write_text(RUNS)
    gate = {"policy": "rules.cedar", "log": "gate.db"}
    fields = {**BANK, "data": CATALOGUE["bank"], "gate": gate}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))
    with mp.catalogue(CATALOGUE):
        mp.artifact.save(tmp_path / "it.mpl", mp.compile(by_a_table, cluster_spec=CLUSTER))
    args = ["review", str(tmp_path / "it.mpl"), "-c", str(tmp_path / "worker.yaml")]
    told = CliRunner().invoke(app, [*args, "--html", str(tmp_path / "it.html")])
    assert told.exit_code == 0, told.output
    text = CliRunner().invoke(app, args).output
    for shown in (text, (tmp_path / "it.html").read_text("utf-8")):
        assert "What the program contains" in shown
        assert "4711, 815" in shown
