"""With an analyst's credentials and the raw wire, on live workers: refused, and on record."""

from __future__ import annotations

import threading
from contextlib import closing

import mplang_jax  # noqa: F401  (compiled code)
import mplang_tables
import numpy as np
import pytest
from bank_and_shop import (
    CATALOGUE,
    CLUSTER,
    NAMES,
    at_bank,
    mean_pay,
    most,
    people,
    raw_of,
    refused,
)
from mplang_policy import Ledger
from mplang_policy.sums import sums_that_differ
from mplang_policy.verification import mistakes

import mplang_core as mp
from mplang_core.errors import MPLangError
from mplang_core.ext import to_bytes


@pytest.fixture(scope="module")
def host(bank):
    with bank.connect() as made:
        yield made


# -- what is permitted


def test_aggregates_are_told_and_groups_of_less_persons_are_not(bank, host):
    """Chur has forty rows, of one person."""
    found = mp.fetch(host, mp.evaluate(host, lambda: mean_pay(people()))).to_pylist()
    assert found == [{"city": "Basel", "pay": 144.5}, {"city": "Bern", "pay": 114.5}]


def test_groups_of_which_one_person_has_too_large_a_part_are_not_told(bank, host):
    """The best paid of Bern has 3.76 % of its pay, that of Basel 3.67 %."""
    found = mp.fetch(host, mp.evaluate(host, lambda: mean_pay(people(), max_share=0.037)))
    assert found.to_pylist() == [{"city": "Basel", "pay": 144.5}]


def test_noise_is_told_within_its_budget(bank, host):
    def noisy():
        return mp.dp.count(mp.dataset("bank", "visits"), unit="id", epsilon=1.5)

    found = mp.fetch(host, mp.evaluate(host, noisy))
    assert abs(int(found) - 61) < 40
    assert bank.spent()["visits", "host"] == 1_500_000


# -- programs that would tell more


def another_data_set():
    return mp.dataset("bank", "secret")


def another_column():
    return mp.guard.aggregate(people("id", "note"), unit="id", k=20, n=("note", "count"))


def rows():
    return people()


def a_group_under_k():
    return mean_pay(people(), k=19)


def one_persons_pay():
    return mean_pay(at_bank(lambda t: t.mutate(pay=t.pay * (t.id == 7).cast("float64")), people()))


def a_case_before():
    return mean_pay(at_bank(lambda t: t.mutate(pay=(t.id == 7).ifelse(t.pay, 0.0)), people()))


def a_made_up_count():
    return at_bank(lambda t: t.group_by("city").agg(pay=t.pay.mean(), n=t.count() + 99), people())


def compiled_code_before():
    paid = at_bank(lambda t: t.select("pay"), people())
    x = mp.device("P0")(mplang_tables.to_tensor)(paid, rows=100)
    x = at_bank(lambda x: x * 1.0, x)
    back = mp.device("P0")(mplang_tables.from_tensor)(x, columns=("pay",))
    return mp.guard.aggregate(back, unit="pay", k=20, pay=("pay", "mean"))


def duplicates_for_persons():
    twice = at_bank(lambda t: t.union(t).union(t), people())
    return mean_pay(twice)


def a_row_a_thousand_times():
    sold = mp.put("P0", mp.dataset("shop", "sales"))
    joined = at_bank(lambda t, s: t.inner_join(s, "id").select("id", "city", "pay"), people(), sold)
    return mean_pay(joined)


def noise_of_a_computed_column():
    hidden = at_bank(lambda t: t.mutate(pay=t.pay * (t.id == 7).cast("float64")), people())
    return mp.dp.sum(hidden, "pay", low=0, high=1e4, unit="id", epsilon=0.1)


def noise_by_another_unit():
    return mp.dp.sum(people(), "pay", low=0, high=1e4, unit="city", epsilon=0.1)


def noise_in_a_loop():
    """As many draws as it likes, of which the mean has no noise."""
    table = people()

    def turn(state):
        i, total = state
        found = mp.dp.count(table, unit="id", epsilon=0.1)
        return i + 1, mp.device("P0")(lambda a, b: a + b)(total, found)

    zero = mp.put("P0", np.int64(0))
    return mp.while_loop(lambda state: state[0] < 3, turn, (0, zero))[1]


PROGRAMS = {
    another_data_set: '"reads"',
    another_column: "not among them: people.note",
    rows: "mp.guard.aggregate, or an op of mp.dp, computes aggregates",
    a_group_under_k: "context.k >= 20 (k is 19)",
    one_persons_pay: "column 'pay' is computed",
    a_case_before: "column 'pay' is computed",
    a_made_up_count: "mp.guard.aggregate, or an op of mp.dp, computes aggregates",
    compiled_code_before: "its table is not of rows as a data set gives them",
    duplicates_for_persons: "its table is not of rows as a data set gives them",
    a_row_a_thousand_times: "its table is not of rows as a data set gives them",
    noise_of_a_computed_column: "column 'pay' is computed",
    noise_by_another_unit: "it counts by people.city, and its unit is id",
    noise_in_a_loop: "it runs in a loop",
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda fn: fn.__name__)
def test_a_program_that_would_tell_more(bank, host, program):
    before = bank.spent()
    assert PROGRAMS[program] in refused(bank, host, program)
    assert bank.spent() == before


def test_a_value_that_says_it_is_another_partys(bank, host):
    """What a program kept has the label of whose data it is, wherever it lies."""
    bank.approve(keep_at_shop)
    kept = mp.evaluate(host, keep_at_shop)

    def tell(x):
        return mp.device("P1")(lambda t: t.limit(5))(x)

    assert "made of people" in refused(bank, host, tell, kept)


def keep_at_shop():
    return mp.keep(mp.put("P1", people()))


# -- the raw wire


def test_bytes_that_are_not_those_of_an_approved_digest(approvals):
    bank = approvals
    found = bank.approve(most)
    with mp.catalogue(CATALOGUE):
        data = to_bytes(mp.compile(most, cluster_spec=CLUSTER).program)
    raw, before = raw_of(bank), len(bank.log())
    with raw.opened() as session:
        for at in range(20, len(data), 97):
            changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            path = f"/v1/sessions/{session}/programs/{found.program}"
            assert raw.ask("PUT", path, changed).status in (400, 422)
    kinds = [each.kind for each in bank.log()[before:] if each.kind != "end"]  # of runs before
    assert kinds == ["refusal"] * len(kinds)
    assert len(kinds) == len(range(20, len(data), 97))


def test_eager_calls_and_standard_mode(bank, host):
    """The shop permits everything."""
    with pytest.raises(MPLangError, match="Write it inside of one function"), mp.with_ctx(host):
        mp.dataset("shop", "sales")

    def sales():
        return mp.dataset("shop", "sales")

    with mp.catalogue(CATALOGUE):
        alone = mp.ClusterSpec([{"name": "shop"}])
        data = to_bytes(mp.compile(sales, cluster_spec=alone).program)
    raw = raw_of(bank, rank=1)
    session = raw.open()
    assert raw.put_program(data, session).status == 200
    assert raw.submit(session, data, step=True).status == 403
    refusals = [each.body for each in bank.log("shop") if each.kind == "refusal"]
    (mine,) = [each for each in refusals if each.get("run", "").startswith(f"{session}-")]
    assert "Write it inside of one function" in mine["why"]
    assert raw.submit(session, data).json["error"] is None  # so it is not the data


def test_a_fetch_of_what_is_no_result(approvals, host):
    bank = approvals
    bank.approve(keep_here)
    kept = mp.evaluate(host, keep_here)
    before = len(bank.log())
    path = f"/v1/sessions/{host.session}/values/{kept.value.values[0].name}"
    assert raw_of(bank).ask("GET", path).error == (403, "protected")
    assert raw_of(bank, "other").ask("GET", path).status == 404  # of another coordinator
    entries = [each for each in bank.log()[before:] if each.kind != "end"]
    assert [each.kind for each in entries] == ["refusal"]
    assert "is not a result of a program" in entries[-1].body["why"]


def keep_here():
    return mp.keep(people())


# -- budgets


def count(epsilon):
    def noisy():
        return mp.dp.count(people(), unit="id", epsilon=epsilon)

    return noisy


def test_eight_jobs_at_once_use_up_what_they_say_and_no_more(unspent):
    """A coordinator has 2 of the data set: five times 0.4 fit, and no sixth."""
    hosts = [unspent.connect() for _ in range(8)]
    told, lock = [], threading.Lock()

    def ask(host):
        try:
            mp.fetch(host, mp.evaluate(host, count(0.4)))
            found = ""
        except MPLangError as error:
            found = str(error)
        with lock:
            told.append(found)

    threads = [threading.Thread(target=ask, args=(host,)) for host in hosts]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for each in hosts:
        each.close()
    assert told.count("") == 5
    assert sum("host has used up epsilon 2 of epsilon 2" in each for each in told) == 3
    assert unspent.spent()["people", "host"] == 2_000_000


def test_a_repeated_query_when_epsilon_is_spent(unspent):
    with unspent.connect() as host:
        for _ in range(4):
            mp.fetch(host, mp.evaluate(host, count(0.5)))
        why = refused(unspent, host, count(0.5))
    assert "it asks for epsilon 0.5 of data set people; host has used up epsilon 2" in why
    with unspent.connect("other") as other:
        mp.fetch(other, mp.evaluate(other, count(0.75)))
        why = refused(unspent, other, count(1.0))
    assert "more than all coordinators together have left" in why


def test_the_logs_are_whole_afterwards(bank):
    for name in NAMES:
        with closing(Ledger(bank.folder / f"{name}.db", read_only=True)) as ledger:
            assert list(mistakes(ledger.entries(), ledger.detail)) == []
            assert list(sums_that_differ(ledger)) == []
