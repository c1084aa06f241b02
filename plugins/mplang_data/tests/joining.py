"""Program that joins two tables of a database, and how its data sets are asked for."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import mplang_core as mp

CLUSTER = mp.ClusterSpec([{"name": "bank"}])
COLUMNS = {"id": "int64", "pay": "double", "town": "string"}
ROWS = 3000  # of people: with half of their number as pay, in nine towns
IDS = [[n for n in range(201, ROWS + 1) if n % 9 == zip] for zip in range(9)]
EXPECTED = [{"zip": zip, "n": len(ids), "most": ids[-1]} for zip, ids in enumerate(IDS)]


def two_tables(server, schema, **fields):
    """Return both tables of a server as data sets; that of people with more fields."""
    people = {"source": f"{server.place}#{schema}.people", "columns": COLUMNS, **fields}
    towns = {"source": f"{server.place}#towns", "columns": {"town": "string", "zip": "int32"}}
    return {"bank": {"people": people, "towns": towns}}


def by_town():
    """Return zip codes with the number of people who are paid much."""
    people, towns = mp.dataset("bank", "people"), mp.dataset("bank", "towns")

    def joined(people, towns):
        much = people.filter(people.pay > 100).join(towns, "town")
        return much.group_by("zip").agg(n=much.count(), most=much.id.max()).order_by("zip")

    return mp.device("P0")(joined)(people, towns)


@contextmanager
def watched():
    """Give a list of how data sets are asked for inside of ``with``: read whole, or queried."""
    from mplang_data import reading

    seen = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("read", "query"):
            ask = getattr(reading, name)

            def noted(*args, ask=ask, name=name, **options):
                seen.append(name)
                return ask(*args, **options)

            patch.setattr(reading, name, noted)
        yield seen


@pytest.fixture
def asked():
    """How the data sets of a test were asked for."""
    with watched() as seen:
        yield seen
