"""Programs that read a value by sizes or by time: workers whose owners permit neither run none."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from mplang_crypto import encrypt, keygen
from mplang_http import LocalCluster
from mplang_tables import table as literal, to_tensor
from mplang_worker.tls.keygen import make_certificates

import mplang_core as mp

RULES = """
permit (principal, action in [Action::"run", Action::"read"], resource);
permit (principal, action in [Action::"disclose", Action::"store", Action::"forward"], resource)
when { !context.discloses };
permit (principal, action == Action::"disclose", resource is Everyone)
when { context.what == "failure" };
"""
NUMBERS = pd.DataFrame({"n": range(5000)})
COLUMNS = {"id": "int64", "pay": "float64", "city": "string"}
DEVICES = {
    "P0": {"kind": "PPU", "members": ["bank"]},
    "P1": {"kind": "PPU", "members": ["shop"]},
    "SP0": {"kind": "SPU", "members": ["bank", "shop"], "config": {"protocol": "CHEETAH"}},
}


def at_bank(fn, *args, **attrs):
    return mp.device("P0")(fn)(*args, **attrs)


def people():
    return mp.dataset("bank", "people")


def pay():
    return at_bank(to_tensor, at_bank(lambda t: t[["pay"]], people()), rows=30)


def bits(s):
    """The attack of the review: as many turns as a bit of a person's pay says."""

    def turns(x, s):
        bit = (jax.lax.bitcast_convert_type(x[0, 0], jnp.uint64) >> s) & 1
        busy = bit.astype(jnp.int64) * 120_000_000
        return jax.lax.fori_loop(0, busy, lambda i, a: a * 1.0000001 + 1.0, 0.0)

    return mp.keep(at_bank(turns, pay(), s))


def branch(s):
    def taken(x):
        busy = lambda: jax.lax.fori_loop(0, 10**9, lambda i, a: a * 1.1, 0.0)  # noqa: E731
        return jax.lax.cond(x[0, 0] > 0, busy, lambda: 0.0)

    return mp.keep(at_bank(taken, pay()))


def batch(s):
    def until(x):
        return jax.vmap(lambda v: jax.lax.while_loop(lambda i: i < v, lambda i: i + 1, 0.0))(
            x[:, 0]
        )

    return mp.keep(at_bank(until, pay()))


def sizes(s):
    """The other attack: rows of an encrypted table, as many as a person's pay."""
    numbers, key = at_bank(literal(NUMBERS)), at_bank(keygen)
    longer = at_bank(lambda t, n: n.join(t, n.n < t.pay)[["n"]], people(), numbers)
    return mp.keep(mp.put("P1", at_bank(encrypt, longer, key)))


def of_sql(fn):
    return lambda s: mp.keep(at_bank(fn, people(), at_bank(literal(NUMBERS))))


def sealed(fn):
    def program(s):
        return mp.keep(mp.put("P1", at_bank(encrypt, at_bank(fn, people()), at_bank(keygen))))

    return program


def shared(fn):
    return lambda s: mp.keep(mp.device("SP0")(fn)(mp.seal(pay())))


def chained(s, joins=3):
    """Each join gives sixteen times the rows of the one before, if a person earns enough."""
    found = at_bank(lambda t: t.filter(t.pay > 3000)[["id"]], people())
    same = at_bank(literal(pd.DataFrame({"id": [3] * 16})))
    for _ in range(joins):
        found = at_bank(lambda t, n: t.join(n, "id"), found, same)
    return mp.keep(found)


ATTACKS = {
    "turns by a bit": (bits, "duration"),
    "one branch works": (branch, "duration"),
    "turns in a batch": (batch, "duration"),
    "rows by a value": (sizes, "size"),
    "cross join": (of_sql(lambda t, n: t.filter(t.pay > 0).cross_join(n)), "duration"),
    "inequality": (of_sql(lambda t, n: n.join(t, n.n < t.pay)[["n"]]), "duration"),
    "equality and more": (
        of_sql(lambda t, n: n.join(t, [n.n == t.id, n.n < t.pay])[["n"]]),
        "duration",
    ),
    "repeat": (of_sql(lambda t, n: t.mutate(s=t.city.repeat(t.id))), "duration"),
    "unnest": (of_sql(lambda t, n: t.select(s=t.city.split(",").unnest())), "duration"),
    "texts that grow": (
        of_sql(lambda t, n: t.mutate(s=t.city.repeat(999).repeat(999))),
        "duration",
    ),
    "joins of joins": (chained, "duration"),
    "encrypted filter": (sealed(lambda t: t.filter(t.pay > 0)), "size"),
    "encrypted groups": (sealed(lambda t: t.group_by("city").agg(n=t.count())), "size"),
}


@pytest.fixture(scope="module", params=["starter", "encrypted"])
def host(request, tmp_path_factory):
    """Production workers with mutual TLS; the bank's rules are those of ``mplang policy init``."""
    here = tmp_path_factory.mktemp("bank")
    pays = np.random.default_rng(3).normal(3000, 500, 30)
    frame = pd.DataFrame({"id": range(30), "pay": pays, "city": ["Bern", "Basel"] * 15})
    frame.to_csv(here / "people.csv", index=False)
    source = {"source": f"csv:{here}/people.csv", "columns": COLUMNS, "unit": "id"}
    gate = {"policy": str(here / "bank.cedar"), "log": str(here / "bank.db")}
    files = make_certificates(here / "certs", ["bank", "shop", "host"])
    if request.param == "encrypted":
        (here / "bank.cedar").write_text(RULES)
    else:
        write_starter(here, source, gate, files["bank"])
    options = {"data": {"bank": {"people": source}}, "gates": {"bank": gate}, "mode": "production"}
    with LocalCluster(["bank", "shop"], tls=files, log=str(here), **options) as cluster:
        nodes = [{"name": each.name, "address": each.address} for each in cluster.spec.nodes]
        spec = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": DEVICES})
        with mp.connect("http", spec, tls=cluster.tls) as connected:
            yield connected


def write_starter(here, source, gate, tls):
    import yaml
    from mplang_policy.owner import Owner
    from mplang_policy.starter import starter

    fields = {"name": "bank", "coordinators": ["host"], "gate": gate, "data": {"people": source}}
    fields["tls"] = tls.model_dump()
    (here / "worker.yaml").write_text(yaml.safe_dump(fields))
    owner = Owner.read(str(here / "worker.yaml"))
    (here / "bank.cedar").write_text(starter(owner))


@pytest.mark.parametrize("name", ATTACKS)
def test_what_reads_a_value_by_sizes_or_time_does_not_run(host, name):
    program, what = ATTACKS[name]
    with pytest.raises(mp.MPLangError, match=rf"bank refuses that .*\({what}\)"):
        mp.evaluate(host, program, np.uint64(0))


def test_what_types_bound_runs(host):
    def program(s):
        fixed = at_bank(lambda x: jax.lax.fori_loop(0, 9, lambda i, a: a * 1.1, x), pay())
        alone = mp.keep(at_bank(lambda x: jnp.sort(jnp.where(x > 3000, x, 0), axis=0), fixed))
        return alone, shared(lambda x: (jnp.sort(x, axis=0) > 3000).sum())(s), chained(s, joins=2)

    mp.evaluate(host, program, np.uint64(0))
