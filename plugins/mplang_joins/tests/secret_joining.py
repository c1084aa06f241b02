"""What tests of joins share: clusters, tables, and what Python's dicts give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import mplang_core as mp

PARTIES = ("bank", "shop", "lab")
PROTOCOLS = ("ABY3", "CHEETAH", "SEMI2K")
HOWS = ("inner", "left", "semi", "anti")


def cluster(protocol="SEMI2K", parties=2, **config):
    """Return a cluster of parties, the first of which run an SPU of a protocol."""
    names = PARTIES[: max(parties, 3 if protocol == "ABY3" else 2)]
    members = names if protocol == "ABY3" else names[:2]
    devices = {name: {"kind": "PPU", "members": [name]} for name in names}
    config = {"protocol": protocol, "field": "FM64", **config}
    devices["SP0"] = {"kind": "SPU", "members": list(members), "config": config}
    return mp.ClusterSpec.from_dict(
        {"nodes": [{"name": name} for name in names], "devices": devices}
    )


def table(rows, column, kind=None):
    """Return a table of the keys and numbers of a dict; a list of pairs may have null keys."""
    pairs = list(rows.items()) if isinstance(rows, dict) else rows
    keys, numbers = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.table({"id": pa.array(keys, kind), column: pa.array(numbers, pa.int64())})


def joined(sim, tables, how="inner", rows=12, **arguments):
    """Join the data set ``t`` of each party, and return the rows that are there, as they are told.

    Args:
        sim: a simulator of the cluster.
        tables: how many parties bring one.
        how: which rows.
        rows: the bound of each, or by party.
        **arguments: of ``mp.join``.
    """

    def program():
        sets = [mp.dataset(name, "t") for name in PARTIES[:tables]]
        bounds = rows if isinstance(rows, dict) else dict.fromkeys(PARTIES[:tables], rows)
        return mp.reveal(
            mp.join(*sets, **{"on": "id", "how": how, "rows": bounds, **arguments}), to="bank"
        )

    columns, valid, found = mp.fetch(sim, mp.evaluate(sim, program))
    for values in (*columns.values(), *found.values()):
        assert not np.asarray(values)[~valid].any()  # what is not there is zero
    names = [*columns, *found]
    cells = [np.asarray(each)[valid].tolist() for each in (*columns.values(), *found.values())]
    rows = [sorted(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
    return sorted(rows)


def expected(tables, how):
    """Return what a join gives of dicts from keys to numbers, whose columns are x0, x1, …"""
    first, *others = tables
    rows = []
    for key, number in first:
        there = [key is not None and key in dict(other) for other in others]
        wanted = {"inner": all(there), "semi": all(there), "left": True, "anti": not any(there)}
        if not wanted[how]:
            continue
        row = {"x0": number}
        for i, other in enumerate(others if how in ("inner", "left") else [], 1):
            row[f"x{i}"] = dict(other).get(key, 0) if there[i - 1] else 0
        if how == "left":
            row |= dict(zip(PARTIES[1:], there, strict=False))
        rows.append(sorted(row.items()))
    return sorted(rows)
