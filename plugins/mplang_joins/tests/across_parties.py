"""What tests of queries over several parties share: a cluster with data, and bare DuckDB."""

from __future__ import annotations

import duckdb
import ibis
from mplang_data.description import Description
from mplang_data.simulated import Described
from mplang_tables import arrow
from secret_joining import cluster

import mplang_core as mp

PARTIES = ("bank", "shop", "lab")


def held(rows, keys, /, **known):
    """Return a data set in memory, with what its owner publishes.

    Args:
        rows: a table.
        keys: by column how many different values there are at most.
        **known: values and ranges.
    """
    columns = dict(arrow.type_of(rows).columns)
    bounds = {column: {"at_most": most} for column, most in keys.items()}
    return Described(Description(columns=columns, keys=bounds, **known), rows)


def program_of(data, query, *, as_table=False, match="secret"):
    """Return a program that asks a query, and reveals the result to the bank, or gives a table."""
    names = {name: party for party, sets in data.items() for name in sets}

    def program():
        tables = {name: mp.dataset(party, name) for name, party in names.items()}
        if isinstance(query, str):
            read = {k: v for k, v in tables.items() if f"{{{k}}}" in query}
            made = mp.sql("SP0", query, match=match, **read)
        else:
            made = mp.device("SP0", match=match)(query)(**tables)
        found = mp.reveal(made, to="bank")
        return found.table() if as_table else found

    return program


def compiled(data, query, protocol="SEMI2K", parties=2, match="secret", **config):
    """Return the program of a query."""
    with mp.Simulator(cluster(protocol, parties, **config), data=data) as sim:
        return mp.compile(program_of(data, query, match=match)).trace(sim)


def asked(data, query, protocol="SEMI2K", parties=2, match="secret", **config):
    """Return the result of a query over data sets of parties, as a list of rows.

    Args:
        data: for each party its data sets by name.
        query: SQL, in which a table stands in braces, or a function of Ibis tables by name.
        protocol: of the SPU.
        parties: how many there are.
        match: how keys are found that are in common.
        **config: of the SPU.
    """
    program = program_of(data, query, match=match)
    with mp.Simulator(cluster(protocol, parties, **config), data=data) as sim:
        return mp.fetch(sim, mp.evaluate(sim, program)).to_arrow().to_pylist()


def expected(data, query):
    """Return what DuckDB gives over all tables together."""
    tables = {name: each.value for sets in data.values() for name, each in sets.items()}
    con = duckdb.connect()
    for name, table in tables.items():
        con.register(name, table)
    if isinstance(query, str):
        return con.sql(query.format(**{name: name for name in tables})).to_arrow_table().to_pylist()
    found = ibis.duckdb.from_connection(con)
    made = query(**{name: found.table(name) for name in tables})
    return con.sql(ibis.to_sql(made, dialect="duckdb")).to_arrow_table().to_pylist()
