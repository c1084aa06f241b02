"""Queries 1 to 11 of TPC-H as Ibis expressions: those of ibis-project/ibis (Apache-2.0).

Their SQL beside this file, in ``tpch_sql``, is of there, too.
"""

# ruff: noqa: RET504 - as they are there

from __future__ import annotations

import ibis
from tpch_data import add_date


def q01(lineitem):
    t = lineitem

    q = t.filter(t.l_shipdate <= add_date("1998-12-01", dd=-90))
    discount_price = t.l_extendedprice * (1 - t.l_discount)
    charge = discount_price * (1 + t.l_tax)
    q = q.group_by(["l_returnflag", "l_linestatus"])
    q = q.agg(
        sum_qty=t.l_quantity.sum(),
        sum_base_price=t.l_extendedprice.sum(),
        sum_disc_price=discount_price.sum(),
        sum_charge=charge.sum(),
        avg_qty=t.l_quantity.mean(),
        avg_price=t.l_extendedprice.mean(),
        avg_disc=t.l_discount.mean(),
        count_order=lambda t: t.count(),
    )
    q = q.order_by(["l_returnflag", "l_linestatus"])
    return q


def q02(part, supplier, partsupp, nation, region):

    REGION = "EUROPE"
    SIZE = 15
    TYPE = "BRASS"

    expr = (
        part.join(partsupp, part.p_partkey == partsupp.ps_partkey)
        .join(supplier, supplier.s_suppkey == partsupp.ps_suppkey)
        .join(nation, supplier.s_nationkey == nation.n_nationkey)
        .join(region, nation.n_regionkey == region.r_regionkey)
    )

    subexpr = (
        partsupp.join(supplier, supplier.s_suppkey == partsupp.ps_suppkey)
        .join(nation, supplier.s_nationkey == nation.n_nationkey)
        .join(region, nation.n_regionkey == region.r_regionkey)
    )

    subexpr = subexpr.filter(subexpr.r_name == REGION, expr.p_partkey == subexpr.ps_partkey)

    q = expr.filter(
        expr.p_size == SIZE,
        expr.p_type.like(f"%{TYPE}"),
        expr.r_name == REGION,
        expr.ps_supplycost == subexpr.ps_supplycost.min(),
    )

    q = q.select(
        [
            q.s_acctbal,
            q.s_name,
            q.n_name,
            q.p_partkey,
            q.p_mfgr,
            q.s_address,
            q.s_phone,
            q.s_comment,
        ]
    )

    q = q.order_by([ibis.desc(q.s_acctbal), q.n_name, q.s_name, q.p_partkey]).limit(100)
    return q


def q03(customer, orders, lineitem):
    MKTSEGMENT = "BUILDING"
    DATE = ibis.date("1995-03-15")

    q = customer.join(orders, customer.c_custkey == orders.o_custkey)
    q = q.join(lineitem, lineitem.l_orderkey == orders.o_orderkey)
    q = q.filter(q.c_mktsegment == MKTSEGMENT, q.o_orderdate < DATE, q.l_shipdate > DATE)
    qg = q.group_by([q.l_orderkey, q.o_orderdate, q.o_shippriority])
    q = qg.agg(revenue=(q.l_extendedprice * (1 - q.l_discount)).sum()).relocate(
        "revenue", after="l_orderkey"
    )
    q = q.order_by([ibis.desc(q.revenue), q.o_orderdate])
    q = q.limit(10)

    return q


def q04(orders, lineitem):
    DATE = "1993-07-01"
    cond = (lineitem.l_orderkey == orders.o_orderkey) & (
        lineitem.l_commitdate < lineitem.l_receiptdate
    )
    q = orders.filter(
        cond.any(), orders.o_orderdate >= ibis.date(DATE), orders.o_orderdate < add_date(DATE, dm=3)
    )
    q = q.group_by([orders.o_orderpriority])
    q = q.agg(order_count=lambda t: t.count())
    q = q.order_by([orders.o_orderpriority])
    return q


def q05(customer, lineitem, orders, supplier, nation, region):
    NAME = "ASIA"
    DATE = "1994-01-01"

    q = customer
    q = q.join(orders, customer.c_custkey == orders.o_custkey)
    q = q.join(lineitem, lineitem.l_orderkey == orders.o_orderkey)
    q = q.join(supplier, lineitem.l_suppkey == supplier.s_suppkey)
    q = q.join(
        nation,
        (customer.c_nationkey == supplier.s_nationkey)
        & (supplier.s_nationkey == nation.n_nationkey),
    )
    q = q.join(region, nation.n_regionkey == region.r_regionkey)

    q = q.filter(
        q.r_name == NAME, q.o_orderdate >= ibis.date(DATE), q.o_orderdate < add_date(DATE, dy=1)
    )
    revexpr = q.l_extendedprice * (1 - q.l_discount)
    gq = q.group_by([q.n_name])
    q = gq.agg(revenue=revexpr.sum())
    q = q.order_by([ibis.desc(q.revenue)])
    return q


def q06(lineitem):
    DATE = "1994-01-01"
    DISCOUNT = 0.06
    QUANTITY = 24

    q = lineitem
    discount_min = round(DISCOUNT - 0.01, 2)
    discount_max = round(DISCOUNT + 0.01, 2)
    q = q.filter(
        q.l_shipdate >= ibis.date(DATE),
        q.l_shipdate < add_date(DATE, dy=1),
        q.l_discount.between(discount_min, discount_max),
        q.l_quantity < QUANTITY,
    )
    q = q.agg(revenue=(q.l_extendedprice * q.l_discount).sum())
    return q


def q07(supplier, lineitem, orders, customer, nation):
    NATION1 = "FRANCE"
    NATION2 = "GERMANY"
    DATE = "1995-01-01"

    q = supplier
    q = q.join(lineitem, supplier.s_suppkey == lineitem.l_suppkey)
    q = q.join(orders, orders.o_orderkey == lineitem.l_orderkey)
    q = q.join(customer, customer.c_custkey == orders.o_custkey)
    n1 = nation
    n2 = nation.view()
    q = q.join(n1, supplier.s_nationkey == n1.n_nationkey)
    q = q.join(n2, customer.c_nationkey == n2.n_nationkey)

    q = q.select(
        n1.n_name.name("supp_nation"),
        n2.n_name.name("cust_nation"),
        lineitem.l_shipdate,
        lineitem.l_extendedprice,
        lineitem.l_discount,
        lineitem.l_shipdate.year().name("l_year"),
        (lineitem.l_extendedprice * (1 - lineitem.l_discount)).name("volume"),
    )

    q = q.filter(
        ((q.cust_nation == NATION1) & (q.supp_nation == NATION2))
        | ((q.cust_nation == NATION2) & (q.supp_nation == NATION1)),
        q.l_shipdate.between(ibis.date(DATE), add_date(DATE, dy=2, dd=-1)),
    )

    gq = q.group_by(["supp_nation", "cust_nation", "l_year"])
    q = gq.agg(revenue=q.volume.sum())
    q = q.order_by(["supp_nation", "cust_nation", "l_year"])

    return q


def q08(part, supplier, region, lineitem, orders, customer, nation):
    NATION = "BRAZIL"
    REGION = "AMERICA"
    TYPE = "ECONOMY ANODIZED STEEL"
    DATE = "1995-01-01"

    n1 = nation
    n2 = n1.view()

    q = part
    q = q.join(lineitem, part.p_partkey == lineitem.l_partkey)
    q = q.join(supplier, supplier.s_suppkey == lineitem.l_suppkey)
    q = q.join(orders, lineitem.l_orderkey == orders.o_orderkey)
    q = q.join(customer, orders.o_custkey == customer.c_custkey)
    q = q.join(n1, customer.c_nationkey == n1.n_nationkey)
    q = q.join(region, n1.n_regionkey == region.r_regionkey)
    q = q.join(n2, supplier.s_nationkey == n2.n_nationkey)

    q = q.select(
        orders.o_orderdate.year().name("o_year"),
        (lineitem.l_extendedprice * (1 - lineitem.l_discount)).name("volume"),
        n2.n_name.name("nation"),
        region.r_name,
        orders.o_orderdate,
        part.p_type,
    )

    q = q.filter(
        q.r_name == REGION,
        q.o_orderdate.between(ibis.date(DATE), add_date(DATE, dy=2, dd=-1)),
        q.p_type == TYPE,
    )

    q = q.mutate(nation_volume=ibis.cases((q.nation == NATION, q.volume), else_=0))
    gq = q.group_by([q.o_year])
    q = gq.agg(mkt_share=q.nation_volume.sum() / q.volume.sum())
    q = q.order_by([q.o_year])
    return q


def q09(part, supplier, lineitem, partsupp, orders, nation):
    COLOR = "green"

    q = lineitem
    q = q.join(supplier, supplier.s_suppkey == lineitem.l_suppkey)
    q = q.join(
        partsupp,
        (partsupp.ps_suppkey == lineitem.l_suppkey) & (partsupp.ps_partkey == lineitem.l_partkey),
    )
    q = q.join(part, part.p_partkey == lineitem.l_partkey)
    q = q.join(orders, orders.o_orderkey == lineitem.l_orderkey)
    q = q.join(nation, supplier.s_nationkey == nation.n_nationkey)

    q = q.select(
        (q.l_extendedprice * (1 - q.l_discount) - q.ps_supplycost * q.l_quantity).name("amount"),
        q.o_orderdate.year().name("o_year"),
        q.n_name.name("nation"),
        q.p_name,
    )

    q = q.filter(q.p_name.like("%" + COLOR + "%"))

    gq = q.group_by([q.nation, q.o_year])
    q = gq.agg(sum_profit=q.amount.sum())
    q = q.order_by([q.nation, ibis.desc(q.o_year)])
    return q


def q10(customer, orders, lineitem, nation):
    DATE = "1993-10-01"

    q = customer
    q = q.join(orders, customer.c_custkey == orders.o_custkey)
    q = q.join(lineitem, lineitem.l_orderkey == orders.o_orderkey)
    q = q.join(nation, customer.c_nationkey == nation.n_nationkey)

    q = q.filter(
        (q.o_orderdate >= ibis.date(DATE)) & (q.o_orderdate < add_date(DATE, dm=3)),
        q.l_returnflag == "R",
    )

    gq = q.group_by(
        [q.c_custkey, q.c_name, q.c_acctbal, q.n_name, q.c_address, q.c_phone, q.c_comment]
    )
    q = gq.agg(revenue=(q.l_extendedprice * (1 - q.l_discount)).sum()).relocate(
        "revenue", after="c_name"
    )

    q = q.order_by(ibis.desc(q.revenue))
    return q.limit(20)


def q11(partsupp, supplier, nation):
    NATION = "GERMANY"
    FRACTION = 0.0001

    q = partsupp
    q = q.join(supplier, partsupp.ps_suppkey == supplier.s_suppkey)
    q = q.join(nation, nation.n_nationkey == supplier.s_nationkey)

    q = q.filter(q.n_name == NATION)

    innerq = partsupp
    innerq = innerq.join(supplier, partsupp.ps_suppkey == supplier.s_suppkey)
    innerq = innerq.join(nation, nation.n_nationkey == supplier.s_nationkey)
    innerq = innerq.filter(innerq.n_name == NATION)
    innerq = innerq.agg(total=(innerq.ps_supplycost * innerq.ps_availqty).sum())

    gq = q.group_by([q.ps_partkey])
    q = gq.agg(value=(q.ps_supplycost * q.ps_availqty).sum())
    q = q.filter(q.value > innerq.total * FRACTION)
    q = q.order_by(ibis.desc(q.value))
    return q
