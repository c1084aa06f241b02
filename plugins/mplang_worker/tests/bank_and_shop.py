"""A bank and a shop with their gates, on live workers with TLS; an analyst and another one."""

from __future__ import annotations

import datetime
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
import yaml
from http_raw import RawWorker
from mplang_http import LocalCluster
from mplang_http.tls.contexts import client_context
from mplang_policy import Ledger
from mplang_policy.approving import made_of, review_of
from mplang_policy.envelope import new_key, read_key, sign
from mplang_policy.owner import Owner
from mplang_testing.waiting import wait_until
from mplang_worker.tls.keygen import make_certificates

import mplang_core as mp
from mplang_core.errors import MPLangError

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
            quotas={"jobs": 16}, log=str(folder), log_level="debug", log_format="text",
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


def refused(bank, host, program, *args) -> str:
    """Return why a program is refused, as its owner has it on record."""
    before = len(bank.log())
    with pytest.raises(MPLangError) as found:
        mp.fetch(host, mp.evaluate(host, program, *args))

    def refusals():  # the host is told as soon as one of the parties refuses
        return [each for each in bank.log()[before:] if each.kind == "refusal"]

    entries = wait_until(refusals, f"a record of: {found.value}")
    assert not any(each.kind == "fetch" for each in bank.log()[before:])
    return str(entries[-1].body["why"])


def people(*columns):
    return mp.dataset("bank", "people", list(columns) or ["id", "city", "pay"])


def at_bank(fn, *tables):
    return mp.device("P0")(fn)(*tables)


def mean_pay(table, k=20, by=("city",), **bounds):
    return mp.guard.aggregate(table, unit="id", k=k, by=by, pay=("pay", "mean"), **bounds)


def most():
    return at_bank(lambda t: t.agg(pay=t.pay.max()), people())


def raw_of(bank, who="host", rank=0) -> RawWorker:
    return RawWorker(bank.cluster, rank, client_context(bank.files[who], "http/1.1"))
