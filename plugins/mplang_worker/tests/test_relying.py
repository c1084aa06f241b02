"""Results that a peer can change unnoticed: owners in production can forbid to rely on it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from mplang_http import LocalCluster
from mplang_tables import to_tensor

import mplang_core as mp
from mplang_core.errors import MPLangError

RULES = """
permit (principal, action in [Action::"run", Action::"read"], resource);
permit (principal, action in [Action::"disclose", Action::"store", Action::"forward"], resource)
when { context.form == "share" || context.what == "failure" };
permit (principal, action == Action::"disclose", resource == Party::"shop")
when { context.protocol == "" && context.what == "reveal" };
"""
FORBIDS = '@id("nobody") forbid (principal, action == Action::"rely", resource == Party::"shop");'
FORBIDS += '@id("SEMI2K") forbid (principal, action == Action::"rely", resource)'
FORBIDS += ' when { context.protocol == "SEMI2K" };'
COLUMNS = {"id": "int64", "pay": "float64"}


def sum_for(party, shown=True, then=None):
    """The pay of the bank's people and a number of the shop, added on shares, and sent on."""

    def program(number):
        t = mp.device("P0")(lambda t: t.agg(pay=t.pay.sum()))(mp.dataset("bank", "people"))
        pay, sold = mp.device("P0")(to_tensor)(t, rows=1), mp.put("P1", number)
        found = mp.device("SP0")(lambda a, b: a + b)(mp.seal(pay), mp.seal(sold))
        found = mp.reveal(found, to=party) if shown else found
        return mp.keep(mp.put(then, found) if then else found)

    return program


@pytest.fixture(scope="module", params=["silent", "forbids"])
def workers(request, tmp_path_factory):
    """Return a host of workers with TLS, and whether the bank forbids to rely on the shop."""
    here = tmp_path_factory.mktemp("bank")
    pd.DataFrame({"id": range(3), "pay": [1.0, 2.0, 4.0]}).to_csv(here / "people.csv", index=False)
    forbids = request.param == "forbids"
    (here / "bank.cedar").write_text(RULES + FORBIDS * forbids)
    source = {"source": f"csv:{here}/people.csv", "columns": COLUMNS}
    gate = {"policy": str(here / "bank.cedar"), "log": str(here / "bank.db")}
    options = {"data": {"bank": {"people": source}}, "gates": {"bank": gate}, "mode": "production"}
    with (
        LocalCluster(["bank", "shop"], log=str(here), **options) as cluster,
        mp.connect("http", cluster.spec) as host,
    ):
        yield host, forbids


@pytest.mark.parametrize(
    "program", [sum_for("P0"), sum_for("P1", then="P0")], ids=["revealed", "sent on"]
)
def test_the_owner_of_who_gets_a_result_can_forbid_to_rely_on_a_member(workers, program):
    host, forbids = workers
    if not forbids:
        mp.evaluate(host, program, np.array([[3.0]]))
        return
    told = (
        r"bank refuses that shop can change, unnoticed, plain f64\[1, 1\] \(change\) at "
        r'test_relying\.py:\d+ made of people\.id, people\.pay.*: it is forbidden by "nobody"'
    )
    with pytest.raises(MPLangError, match=told):
        mp.evaluate(host, program, np.array([[3.0]]))


def test_what_a_program_keeps_can_still_be_changed_in_the_next_one(workers):
    host, forbids = workers
    kept = mp.evaluate(host, sum_for("P1"), np.array([[3.0]]))
    if not forbids:
        mp.evaluate(host, lambda x: mp.keep(mp.put("P0", x)), kept)
        return
    with pytest.raises(MPLangError, match="bank refuses that shop can change, unnoticed, plain f6"):
        mp.evaluate(host, lambda x: mp.keep(mp.put("P0", x)), kept)


def test_what_others_get_and_what_nobody_gets_is_not_asked_about(workers):
    host, _ = workers
    mp.evaluate(host, sum_for("P1"), np.array([[3.0]]))
    mp.evaluate(host, sum_for("P0", shown=False), np.array([[3.0]]))
