"""The tables of the bank and of the shop: TPC-H's, each with some of the customers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb

SCALE = 0.01
TABLES = ("nation", "customer", "orders", "lineitem")
OWN = {
    "bank": {
        "nation": "SELECT n_nationkey, n_name FROM nation",
        "customer": "SELECT c_custkey, c_nationkey, c_acctbal, c_mktsegment FROM customer "
        "WHERE c_custkey % 5 <> 0",
    },
    "shop": {
        "orders": "SELECT o_orderkey, o_custkey FROM orders WHERE o_custkey % 7 <> 0",
        "lineitem": "SELECT l_orderkey, l_extendedprice, l_discount, l_shipdate FROM lineitem",
    },
}
"""What each of them has of which table."""

NATIONS = (
    *("ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "CHINA", "EGYPT", "ETHIOPIA", "FRANCE"),
    *("GERMANY", "INDIA", "INDONESIA", "IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO"),
    *("MOZAMBIQUE", "PERU", "ROMANIA", "RUSSIA", "SAUDI ARABIA", "UNITED KINGDOM"),
    *("UNITED STATES", "VIETNAM"),
)
KNOWN: dict[str, dict[str, Any]] = {
    "nation": {"values": {"n_name": list(NATIONS)}},
    "customer": {
        "keys": {"c_custkey": {"at_most": 1200}}, "ranges": {"c_acctbal": [-999.99, 9999.99]}
    },
    "orders": {"keys": {"o_custkey": {"at_most": 1200}}},
    "lineitem": {},
}  # fmt: skip
"""What their owners publish: bounds of keys, and which values there may be, but no data."""


def make(folder: Path) -> None:
    """Write each owner's tables as Parquet files, ``bank/nation.parquet`` and so on."""
    program = shutil.which("tpchgen-cli", path=Path(sys.executable).parent)
    assert program is not None, "needs tpchgen-cli, of the extra `dev`"
    for table in TABLES:
        arguments = ["parquet", f"--scale-factor={SCALE}", f"--tables={table}"]
        subprocess.run(
            [program, *arguments, f"--output-dir={folder}"], check=True, capture_output=True
        )
    with duckdb.connect() as con:
        for table in TABLES:
            con.execute(f"CREATE VIEW {table} AS FROM '{folder}/{table}.parquet'")
        for party, tables in OWN.items():
            (folder / party).mkdir()
            for name, query in tables.items():
                con.sql(query).write_parquet(str(folder / party / f"{name}.parquet"))


def catalogue(folder: Path, party: str) -> dict[str, dict[str, Any]]:
    """Return the data sets of an owner, as its worker's file has them."""
    found = {}
    for name in OWN[party]:
        path = folder / party / f"{name}.parquet"
        described = duckdb.sql(f"DESCRIBE FROM '{path}'").fetchall()
        columns = {column: _TYPES.get(kind, kind.lower()) for column, kind, *_ in described}
        found[name] = {"source": f"parquet:{path}", "columns": columns, **KNOWN[name]}
    return found


_TYPES = {"BIGINT": "int64", "INTEGER": "int32", "VARCHAR": "string", "DATE": "date"}
