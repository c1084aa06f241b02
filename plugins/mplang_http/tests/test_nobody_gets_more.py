"""With an analyst's credentials and the raw wire, on live workers: refused, and on record."""

from __future__ import annotations

import datetime
import os
import threading
from contextlib import closing
from pathlib import Path

import mplang_jax  # noqa: F401  (compiled code)
import mplang_tables
import numpy as np
import pandas as pd
import pytest
import yaml
from http_raw import RawWorker
from mplang_http import LocalCluster
from mplang_http.keygen import make_certificates
from mplang_http.tls import client_context
from mplang_policy import Ledger
from mplang_policy.approving import made_of, review_of
from mplang_policy.envelope import new_key, read_key, sign
from mplang_policy.owner import Owner
from mplang_policy.sums import sums_that_differ
from mplang_policy.verification import mistakes

import mplang_core as mp
from mplang_core.errors import MPLangError
from mplang_core.ext import to_bytes

NAMES = ["bank", "shop"]
COLUMNS = {"id": "int64", "city": "string", "pay": "float64", "note": "string"}
CATALOGUE = {
    "bank": {
        "people": {"columns": COLUMNS, "unit": "id"},
        "visits": {"columns": {"id": "int64"}, "unit": "id"},
        "secret": {"columns": {"id": "int64"}},
    },
    "shop": {
        "sales": {"columns": {"id": "int64"}, "unit": "id"},
        "orders": {"columns": {"id": "int64"}, "unit": "id", "rows": {"at_most": 1000}},
    },
}
SHOP = """
permit (principal, action, resource);
forbid (principal, action == Action::"fetch", resource)
when { context.columns.contains(Column::"orders.id") } unless { context.approved };
"""
BANK = """
@id("runs") permit (principal, action == Action::"run", resource);
@id("reads") permit (principal, action == Action::"read", resource)
when { [Column::"people.id", Column::"people.city", Column::"people.pay", Column::"visits.id"]
       .containsAll(context.columns) };
@id("aggregates") permit (principal, action == Action::"fetch", resource)
when { context.declassifiers.contains("guard") && context.k >= 20 };
@id("noise") permit (principal, action == Action::"fetch", resource)
when { context.declassifiers.contains("dp") };
@id("approved") permit (principal, action in [Action::"fetch", Action::"disclose"], resource)
when { context.approved };
@id("failures") permit (principal, action == Action::"disclose", resource == Everyone::"everyone");
"""
BUDGETS = {"people": {"epsilon": 3.0, "per_coordinator": 2.0}, "visits": {"epsilon": 100.0}}
CLUSTER = mp.ClusterSpec([{"name": name} for name in NAMES])
YEAR = mp.MPType(mp.TensorType("i64"), mp.Mask.all(2))


class Bank:
    """A bank and a shop with their gates; two coordinators."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = [(i, "Bern" if i < 30 else "Basel", 100.0 + i, "x") for i in range(60)]
        rows += [(99, "Chur", 7000.0, "x")] * 40  # many rows of one person
        people = pd.DataFrame(rows, columns=list(COLUMNS))
        people.to_csv(folder / "people.csv", index=False)
        people[["id"]].to_csv(folder / "ids.csv", index=False)
        people[["id"]].to_csv(folder / "orders.csv", index=False)
        for name in NAMES:
            (folder / f"{name}.cedar").write_text(BANK if name == "bank" else SHOP)
        for name in ("ann", "eve"):
            new_key(folder / f"{name}.key", None)
        self.gates = {
            name: {"policy": str(folder / f"{name}.cedar"), "log": str(folder / f"{name}.db")}
            for name in NAMES
        }
        keys = {name: str(folder / f"{name}.pub") for name in ("ann", "eve")}
        approvers = {"approvals": str(folder), "approvers": {"ann": keys["ann"]}}
        self.gates["bank"] |= {"budgets": BUDGETS, **approvers}
        self.gates["shop"] |= {**approvers, "approvers": keys, "threshold": 2}
        readers = {"readers": ["host", "other"]}
        self.data = {
            name: {
                data_set: {**each, **readers, "source": f"csv:{folder}/{self.file(data_set)}"}
                for data_set, each in sets.items()
            }
            for name, sets in CATALOGUE.items()
        }
        self.files = make_certificates(folder / "keys", [*NAMES, "host", "other"])
        self.cluster = LocalCluster(
            NAMES, tls=self.files, coordinators=("host", "other"), data=self.data,
            gates=self.gates, mode="production", imports=("mplang_testing.dialect",),
            quotas={"jobs": 16},
        )  # fmt: skip
        for name in NAMES:
            fields = {
                "name": name, "data": self.data[name], "gate": self.gates[name], "tls": name,
                "coordinators": ["host", "other"], "peers": dict.fromkeys(NAMES),
            }  # fmt: skip
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(fields))

    @staticmethod
    def file(data_set: str) -> str:
        return f"{data_set}.csv" if data_set in ("people", "orders") else "ids.csv"

    def connect(self, who: str = "host", **options):
        return mp.connect("http", self.cluster.spec, tls=self.files[who], **options)

    def log(self, name: str = "bank"):
        with closing(Ledger(self.folder / f"{name}.db", read_only=True)) as ledger:
            return list(ledger.entries())

    def spent(self):
        with closing(Ledger(self.folder / "bank.db", read_only=True)) as ledger:
            return {key: amount.epsilon for key, amount in ledger.spent().items()}

    def approve(
        self,
        fn,
        *args,
        key="ann",
        coordinator="host",
        inputs=(),
        party="bank",
        also=None,
        **changes,
    ):
        """Sign a program, perhaps with other fields than it has."""
        owner = Owner.read(str(self.folder / f"{party}.yaml"))
        path = self.folder / "program.mpl"
        with mp.catalogue(CATALOGUE):
            made = mp.compile(fn, *args, cluster_spec=CLUSTER)
            mp.artifact.save(path, made)
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
        review = review_of(owner, str(path), coordinator, inputs)
        approval = made_of(owner, str(path), [review], changes.pop("uses", 1), until)
        if "made_for" in changes:
            changes["party"] = changes.pop("made_for")
        approval = approval.model_copy(update=changes)
        signed = sign(approval, read_key(str(self.folder / f"{key}.key")))
        if also is not None:
            signed = sign(approval, read_key(str(self.folder / f"{also}.key")), signed)
        (self.folder / f"{approval.id}.approval").write_bytes(signed)
        return approval


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        made = Bank(tmp_path_factory.mktemp("bank"))
        with made.cluster:
            yield made


@pytest.fixture(scope="module")
def host(bank):
    with bank.connect() as made:
        yield made


def refused(bank, host, program, *args) -> str:
    """Return why a program is refused, as its owner has it on record."""
    before = len(bank.log())
    with pytest.raises(MPLangError) as found:
        mp.fetch(host, mp.evaluate(host, program, *args))
    entries = [each for each in bank.log()[before:] if each.kind == "refusal"]
    assert entries, f"not on record: {found.value}"
    assert not any(each.kind == "fetch" for each in bank.log()[before:])
    return str(entries[-1].body["why"])


def people(*columns):
    return mp.dataset("bank", "people", list(columns) or ["id", "city", "pay"])


def at_bank(fn, *tables):
    return mp.device("P0")(fn)(*tables)


def mean_pay(table, k=20, by=("city",)):
    return mp.guard.aggregate(table, unit="id", k=k, by=by, pay=("pay", "mean"))


# -- what is permitted


def test_aggregates_are_told_and_groups_of_less_persons_are_not(bank, host):
    """Chur has forty rows, of one person."""
    found = mp.fetch(host, mp.evaluate(host, lambda: mean_pay(people()))).to_pylist()
    assert found == [{"city": "Basel", "pay": 144.5}, {"city": "Bern", "pay": 114.5}]


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
    rows: "mp.guard.aggregate, or an op of mp.dp, aggregates a table",
    a_group_under_k: "context.k >= 20 (k is 19)",
    one_persons_pay: "column 'pay' is computed",
    a_case_before: "column 'pay' is computed",
    a_made_up_count: "mp.guard.aggregate, or an op of mp.dp, aggregates a table",
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


# -- approvals


def total(year):
    table = at_bank(lambda t: t.agg(pay=t.pay.sum() + 3), people())
    return table, mp.device("P1")(lambda y: y * 3)(year)


def other_constant(year):
    table = at_bank(lambda t: t.agg(pay=t.pay.sum() + 4), people())
    return table, mp.device("P1")(lambda y: y * 3)(year)


def other_sql(year):
    table = at_bank(lambda t: t.filter(t.id != 7).agg(pay=t.pay.sum() + 3), people())
    return table, mp.device("P1")(lambda y: y * 3)(year)


def other_code(year):
    table = at_bank(lambda t: t.agg(pay=t.pay.sum() + 3), people())
    return table, mp.device("P1")(lambda y: y * 4)(year)


def most():
    return at_bank(lambda t: t.agg(pay=t.pay.max()), people())


def parts_of_both(year):
    return total(year), most()


@pytest.fixture
def approvals(bank):
    """Have no approval of another test."""
    yield bank
    for each in bank.folder.glob("*.approval"):
        each.unlink()


def test_an_approved_program_runs_and_none_that_is_nearly_the_same(approvals, host):
    bank = approvals
    bank.approve(total, YEAR, inputs=["year=2015..2025"], uses=3)
    bank.approve(most)
    for changed in (other_constant, other_sql, other_code, parts_of_both):
        changed.__name__ = "total"
        assert "is for program" in refused(bank, host, changed, 2020)
    assert "year is 2026, and may be from 2015 to 2025" in refused(bank, host, total, 2026)
    mp.fetch(host, mp.evaluate(host, total, 2020))
    with bank.connect("other") as other:
        assert "it is for host" in refused(bank, other, total, 2020)


WRONG = {
    "expired": ({"expires": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}, "expired"),
    "of another party": ({"made_for": "shop"}, "it is of shop"),
    "of another digest": ({"program": "0" * 64}, "it is for program 000000000000"),
    "of another coordinator": ({"coordinators": ("other",)}, "it is for other"),
    "of other versions": ({"versions": {"numpy": "0.1"}}, "numpy"),
    "of an unlisted key": ({"key": "eve"}, "mp.guard.aggregate"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_approval_that_does_not_count(approvals, host, case):
    changes, told = WRONG[case]
    approvals.approve(most, **changes)
    assert told in refused(approvals, host, most)


def test_an_approval_that_is_used_up_or_revoked_or_replayed(approvals, host):
    bank = approvals
    found = bank.approve(most)
    mp.fetch(host, mp.evaluate(host, most))
    assert "its 1 uses are used up" in refused(bank, host, most)
    file = bank.folder / f"{found.id}.approval"
    (bank.folder / "again.approval").write_bytes(file.read_bytes())
    assert "its 1 uses are used up" in refused(bank, host, most)
    another = bank.approve(most)
    with closing(Ledger(bank.folder / "bank.db")) as ledger, ledger.writing() as writing:
        writing.revoke(another.id)
    assert "it was revoked" in refused(bank, host, most)


def orders():
    return mp.dataset("shop", "orders")


def test_an_approval_that_one_of_two_has_signed(approvals, host):
    """The shop wants two signatures."""
    bank, before = approvals, len(approvals.log("shop"))
    for signers in ({"key": "ann"}, {"key": "eve"}, {"key": "ann", "also": "ann"}):
        bank.approve(orders, party="shop", **signers)
        with pytest.raises(MPLangError, match="once shop has approved this program"):
            mp.evaluate(host, orders)
    kinds = [each.kind for each in bank.log("shop")[before:] if each.kind != "end"]
    assert kinds == ["refusal"] * 3
    bank.approve(orders, party="shop", key="ann", also="eve")
    mp.fetch(host, mp.evaluate(host, orders))


def test_a_data_set_that_has_grown_is_still_the_one_that_was_approved(approvals, host):
    """Its bound is published, and its rows are not."""
    bank = approvals
    bank.approve(orders, party="shop", key="ann", also="eve", uses=2)
    before = mp.fetch(host, mp.evaluate(host, orders)).num_rows
    with (bank.folder / "orders.csv").open("a") as file:
        file.write("1000\n1001\n")
    assert mp.fetch(host, mp.evaluate(host, orders)).num_rows == before + 2


# -- approvals that the coordinator passes on


def passed_on(bank, **changes) -> str:
    """Return the file of an approval that only the coordinator has."""
    found = bank.approve(most, **changes)
    (bank.folder / "given").mkdir(exist_ok=True)
    moved = (bank.folder / f"{found.id}.approval").rename(bank.folder / "given" / found.id)
    return str(moved)


def test_an_approval_travels_with_the_job(bank):
    given = passed_on(bank)
    with bank.connect() as host:
        assert "of single rows" in refused(bank, host, rows)
        assert "once bank has approved this program" in refused(bank, host, most)
    with bank.connect(approvals=[given]) as host:
        mp.fetch(host, mp.evaluate(host, most))
        assert "its 1 uses are used up" in refused(bank, host, most)
    with bank.connect(approvals=[given]) as host:
        assert "its 1 uses are used up" in refused(bank, host, most)


@pytest.mark.parametrize("changes", [{"key": "eve"}, {"made_for": "shop"}])
def test_an_approval_that_counts_nowhere_is_told(bank, changes):
    given = passed_on(bank, **changes)
    with pytest.raises(MPLangError, match="counts at no party"), bank.connect(approvals=[given]):
        pass


def test_what_is_no_approval_is_not_passed_on(bank):
    with pytest.raises(MPLangError, match="cannot read the approval nowhere"):
        bank.connect(approvals=["nowhere"])
    raw = raw_of(bank)
    path = f"/v1/sessions/{raw.open()}/approvals"
    for data in (b"", b"[]", b"{" * 100_000, b'{"payload": 1}', b"\xff"):
        assert raw.ask("POST", path, data).status == 403
    signed = Path(passed_on(bank, key="eve")).read_bytes()
    assert raw.ask("POST", path, signed).json == {"counts": False}
    assert raw.ask("POST", path, b" " * (2 << 20)).status == 413
    for _ in range(64):
        assert raw.ask("POST", path, Path(passed_on(bank)).read_bytes()).json == {"counts": True}
    assert raw.ask("POST", path, Path(passed_on(bank)).read_bytes()).status == 429


# -- the raw wire


def raw_of(bank, who="host", rank=0) -> RawWorker:
    return RawWorker(bank.cluster, rank, client_context(bank.files[who], "http/1.1"))


def test_bytes_that_are_not_those_of_an_approved_digest(approvals):
    bank = approvals
    found = bank.approve(most)
    with mp.catalogue(CATALOGUE):
        data = to_bytes(mp.compile(most, cluster_spec=CLUSTER).program)
    raw, before = raw_of(bank), len(bank.log())
    session = raw.open()
    for at in range(20, len(data), 97):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        path = f"/v1/sessions/{session}/programs/{found.program}"
        assert raw.ask("PUT", path, changed).status in (400, 422)
    kinds = [each.kind for each in bank.log()[before:]]
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
    assert "Write it inside of one function" in bank.log("shop")[-1].body["why"]
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
    assert "is no result of a program" in entries[-1].body["why"]


def keep_here():
    return mp.keep(people())


# -- budgets


def count(epsilon):
    def noisy():
        return mp.dp.count(people(), unit="id", epsilon=epsilon)

    return noisy


def test_eight_jobs_at_once_use_up_what_they_say_and_no_more(bank):
    """A coordinator has 2 of the data set: five times 0.4 fit, and no sixth."""
    hosts = [bank.connect() for _ in range(8)]
    told, lock = [], threading.Lock()
    assert bank.spent().get(("people", "host"), 0) == 0

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
    assert bank.spent()["people", "host"] == 2_000_000


def test_a_repeated_query_when_epsilon_is_spent(bank, host):
    while bank.spent().get(("people", "host"), 0) <= 1_500_000:
        mp.fetch(host, mp.evaluate(host, count(0.5)))
    why = refused(bank, host, count(0.5))
    assert "it asks for epsilon 0.5 of data set people; host has used up epsilon 2" in why
    with bank.connect("other") as other:
        mp.fetch(other, mp.evaluate(other, count(0.75)))
        assert "more than all coordinators together have left" in refused(bank, other, count(1.0))


def test_the_logs_are_whole_afterwards(bank):
    for name in NAMES:
        with closing(Ledger(bank.folder / f"{name}.db", read_only=True)) as ledger:
            assert list(mistakes(ledger.entries(), ledger.detail)) == []
            assert list(sums_that_differ(ledger)) == []
