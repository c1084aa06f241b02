"""What tests of matching share: parties, tables, and what Python's sets have in common."""

from __future__ import annotations

import itertools
import unicodedata

import pyarrow as pa

import mplang_core as mp

CLUSTER = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
PROTOCOLS = ("RR22", "KKRT", "ECDH")


def table(ids, kind=None):
    """Return a table of keys, with the number of each row."""
    return pa.table({"id": pa.array(ids, kind), "row": pa.array(range(len(ids)), pa.int64())})


def program(**arguments):
    """Match the data sets ``keys`` of both parties."""
    a, b = mp.dataset("bank", "keys"), mp.dataset("shop", "keys")
    return mp.match(a, b, **{"on": "id", "keep": True, **arguments})


def matched(host, **arguments):
    """Return what the parties have of a match, as rows."""
    found = mp.fetch(host, mp.evaluate(host, lambda: program(**arguments)))
    return [each.to_pylist() for each in (found if isinstance(found, tuple | list) else [found])]


def plain(value):
    """Return a value as it is compared."""
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


def check(found, a, b):
    """Compare what both parties have with Python's sets."""
    common = {plain(x) for x in a if x is not None} & {plain(x) for x in b if x is not None}
    numbers = []
    for rows, ids in zip(found, (a, b), strict=True):
        expected = [i for i, each in enumerate(ids) if plain(each) in common]
        assert sorted(row["row"] for row in rows) == expected
        assert all(row["id"] == ids[row["row"]] for row in rows)
        assert [row["match"] for row in rows] == sorted(row["match"] for row in rows)
        numbers.append({plain(row["id"]): row["match"] for row in rows})
        for first, second in itertools.pairwise(rows):  # a key's rows stay in order
            assert first["match"] < second["match"] or first["row"] < second["row"]
    assert numbers[0] == numbers[-1]
    assert sorted(numbers[0].values()) == list(range(len(common)))
