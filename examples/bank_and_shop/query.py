"""What the analyst asks: the customers' revenue by nation and balance, over both tables."""

from __future__ import annotations

import mplang_core as mp

LEAST = 4
"""How many customers a group has at least, or it is left out."""

REVENUE = f"""
SELECT n_name, CAST(floor(c_acctbal / 5000) AS BIGINT) AS balance,
       sum(CAST(l_extendedprice * (1 - l_discount) * 10000 AS BIGINT)) AS revenue
FROM {{customer}}
JOIN {{nation}} ON c_nationkey = n_nationkey
JOIN {{orders}} ON c_custkey = o_custkey
JOIN {{lineitem}} ON o_orderkey = l_orderkey
WHERE c_mktsegment <> 'MACHINERY' AND l_shipdate >= DATE '1995-01-01'
GROUP BY n_name, balance
HAVING count(DISTINCT c_custkey) >= {LEAST}
ORDER BY n_name, balance
"""


def by_secret_join():
    """Return the revenue by group, in hundredths of cents: the host's alone. Nobody learns more."""
    return _revenue("secret")


def by_match():
    """Return the same, where both owners learn which customers they have in common: faster."""
    return _revenue("psi")


def _revenue(match):
    tables = {name: mp.dataset("bank", name) for name in ("nation", "customer")}
    tables |= {name: mp.dataset("shop", name) for name in ("orders", "lineitem")}
    return mp.reveal(mp.sql("SP0", REVENUE, match=match, **tables), to="P0").table()
