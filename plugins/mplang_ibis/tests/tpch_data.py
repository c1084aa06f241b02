"""Small tables of TPC-H's schema, made so that each of the 22 queries finds rows."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal

import pyarrow as pa

MONEY = pa.decimal128(15, 2)
DAY = pa.date32()
NATIONS = ["FRANCE", "GERMANY", "BRAZIL", "CANADA", "CHINA", "JAPAN", "KENYA", "RUSSIA", "PERU"]
NATIONS += ["VIETNAM", "SAUDI ARABIA", "UNITED STATES"]
BRANDS = ["Brand#12", "Brand#23", "Brand#34", "Brand#45"]
REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
REGION_OF = [3, 3, 1, 1, 2, 2, 0, 3, 1, 2, 4, 1]


def _money(random, low, high):
    return Decimal(random.randint(low, high)).scaleb(-2)


def _day(random, first=1992, last=1998):
    start = datetime.date(first, 1, 1)
    return start + datetime.timedelta(random.randrange((last - first) * 365))


def tables(seed: int = 7) -> dict[str, pa.Table]:
    """Return the eight tables by name; the same ones for a seed."""
    r = random.Random(seed)
    parts, suppliers, customers, orders = 40, 12, 60, 400
    made = {
        "region": {"r_regionkey": list(range(5)), "r_name": REGIONS, "r_comment": ["none"] * 5},
        "nation": {
            "n_nationkey": list(range(12)),
            "n_name": NATIONS,
            "n_regionkey": REGION_OF,
            "n_comment": ["none"] * 12,
        },
        "part": {
            "p_partkey": list(range(parts)),
            "p_name": [r.choice(["green", "forest green", "forest", "red"]) for _ in range(parts)],
            "p_mfgr": [f"Manufacturer#{i % 5}" for i in range(parts)],
            "p_brand": [r.choice(BRANDS) for _ in range(parts)],
            "p_type": [
                r.choice(
                    [
                        "ECONOMY ANODIZED STEEL",
                        "PROMO BRUSHED BRASS",
                        "LARGE BRASS",
                        "MEDIUM POLISHED TIN",
                    ]
                )
                for _ in range(parts)
            ],
            "p_size": [r.choice([1, 3, 5, 9, 14, 15, 15, 49]) for _ in range(parts)],
            "p_container": [
                r.choice(["SM CASE", "SM BOX", "MED BOX", "MED BAG", "LG CASE"])
                for _ in range(parts)
            ],
            "p_retailprice": [_money(r, 90_000, 200_000) for _ in range(parts)],
            "p_comment": ["none"] * parts,
        },
        "supplier": {
            "s_suppkey": list(range(suppliers)),
            "s_name": [f"Supplier#{i:09d}" for i in range(suppliers)],
            "s_address": [f"street {i}" for i in range(suppliers)],
            "s_nationkey": list(range(suppliers)),
            "s_phone": [f"{10 + i}-555" for i in range(suppliers)],
            "s_acctbal": [_money(r, -99_999, 999_999) for _ in range(suppliers)],
            "s_comment": [r.choice(["none", "Customer many Complaints"]) for _ in range(suppliers)],
        },
        "customer": {
            "c_custkey": list(range(customers)),
            "c_name": [f"Customer#{i:09d}" for i in range(customers)],
            "c_address": [f"road {i}" for i in range(customers)],
            "c_nationkey": [i % 12 for i in range(customers)],
            "c_phone": [
                r.choice(["13-555", "31-555", "23-555", "11-555"]) for _ in range(customers)
            ],
            "c_acctbal": [_money(r, -99_999, 999_999) for _ in range(customers)],
            "c_mktsegment": [r.choice(["BUILDING", "MACHINERY"]) for _ in range(customers)],
            "c_comment": ["none"] * customers,
        },
    }
    pairs = [(i, s) for i in range(parts) for s in range(suppliers)]
    made["partsupp"] = {
        "ps_partkey": [i for i, _ in pairs],
        "ps_suppkey": [s for _, s in pairs],
        "ps_availqty": [r.randint(1, 9_999) for _ in pairs],
        "ps_supplycost": [_money(r, 100, 100_000) for _ in pairs],
        "ps_comment": ["none"] * len(pairs),
    }
    placed = [_day(r) for _ in range(orders)]
    made["orders"] = {
        "o_orderkey": list(range(orders)),
        "o_custkey": [r.randrange(customers * 2 // 3) for _ in range(orders)],
        "o_orderstatus": [r.choice("FOP") for _ in range(orders)],
        "o_totalprice": [_money(r, 90_000, 50_000_000) for _ in range(orders)],
        "o_orderdate": placed,
        "o_orderpriority": [r.choice(["1-URGENT", "2-HIGH", "3-MEDIUM"]) for _ in range(orders)],
        "o_clerk": ["clerk"] * orders,
        "o_shippriority": [0] * orders,
        "o_comment": [r.choice(["none", "a special kind of requests"]) for _ in range(orders)],
    }
    made["lineitem"] = _lines(r, placed, parts, suppliers)
    return {name: _table(columns) for name, columns in made.items()}


def _lines(r, placed, parts, suppliers):
    rows = []
    for order, day in enumerate(placed):
        large = order % 50 == 0
        for line in range(9 if large else r.choice([1, 2, 3, 9])):
            shipped = day + datetime.timedelta(r.randint(1, 120))
            quantity = 50 if large else r.choice([1, 2, 8, 15, 25])
            rows.append(
                {
                    "l_orderkey": order,
                    "l_partkey": r.randrange(parts),
                    "l_suppkey": r.randrange(suppliers),
                    "l_linenumber": line,
                    "l_quantity": Decimal(quantity),
                    "l_extendedprice": _money(r, 90_000, 10_000_000),
                    "l_discount": _money(r, 0, 10),
                    "l_tax": _money(r, 0, 8),
                    "l_returnflag": r.choice("RAN"),
                    "l_linestatus": r.choice("OF"),
                    "l_shipdate": shipped,
                    "l_commitdate": day + datetime.timedelta(r.randint(30, 150)),
                    "l_receiptdate": shipped + datetime.timedelta(r.randint(1, 60)),
                    "l_shipinstruct": r.choice(["DELIVER IN PERSON", "NONE"]),
                    "l_shipmode": r.choice(["AIR", "AIR REG", "MAIL", "SHIP"]),
                    "l_comment": "none",
                }
            )
    return {name: [row[name] for row in rows] for name in rows[0]}


def _table(columns):
    kinds = {Decimal: MONEY, datetime.date: DAY, int: pa.int64(), str: pa.string()}
    return pa.table({k: pa.array(v, kinds[type(v[0])]) for k, v in columns.items()})
