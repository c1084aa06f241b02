"""A guard on shares runs on workers as on a simulator: each member compiles its code itself."""

from __future__ import annotations

import pandas as pd
import pytest
from mplang_http import LocalCluster

import mplang_core as mp

PARTIES = ("bank", "shop", "lab")


def program():
    people, sales = mp.dataset("bank", "people"), mp.dataset("shop", "sales")
    both = mp.overlap(people, sales, on=[("id", "who")])
    told = mp.guard.aggregate(
        both, k=5, by=["city", "kind"], max_share=0.5, pay=("pay", "mean"), n="units"
    )
    return mp.reveal(told, to="P0").table()


def test_workers_tell_what_a_simulator_tells(tmp_path):
    ids, others = range(40), range(10, 60)
    people = {"id": [f"p{i}" for i in ids], "pay": ids, "city": ["a", "b"] * 20}
    pd.DataFrame(people).to_csv(tmp_path / "people.csv", index=False)
    sales = {"who": [f"p{i}" for i in others], "kind": [i % 2 for i in others]}
    pd.DataFrame(sales).to_csv(tmp_path / "sales.csv", index=False)
    data = {
        "bank": {
            "people": {
                "source": f"csv:{tmp_path}/people.csv", "unit": "id",
                "columns": {"id": "string", "pay": "int64", "city": "string"},
                "keys": {"id": {"at_most": 50}}, "values": {"city": ["a", "b"]},
            }
        },
        "shop": {
            "sales": {
                "source": f"csv:{tmp_path}/sales.csv", "unit": "who",
                "columns": {"who": "string", "kind": "int64"},
                "keys": {"who": {"at_most": 60}}, "ranges": {"kind": [0, 1]},
            }
        },
    }  # fmt: skip
    with LocalCluster(PARTIES, data=data) as workers, mp.connect("http", workers.spec) as host:
        found = mp.fetch(host, mp.evaluate(host, program)).to_pylist()
    assert [(row["city"], row["kind"], row["n"]) for row in found] == [("a", 0, 15), ("b", 1, 15)]
    assert [row["pay"] for row in found] == pytest.approx([24, 25])
