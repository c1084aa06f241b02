"""Queries 12 to 22 of TPC-H as Ibis expressions: those of ibis-project/ibis (Apache-2.0).

Their SQL beside this file, in ``tpch_sql``, is of there, too.
"""

# ruff: noqa: RET504 - as they are there

from __future__ import annotations

import ibis
from ibis import _
from tpch_data import add_date


def q12(orders, lineitem):
    SHIPMODE1 = "MAIL"
    SHIPMODE2 = "SHIP"
    DATE = "1994-01-01"

    q = orders
    q = q.join(lineitem, orders.o_orderkey == lineitem.l_orderkey)

    q = q.filter(
        q.l_shipmode.isin([SHIPMODE1, SHIPMODE2]),
        q.l_commitdate < q.l_receiptdate,
        q.l_shipdate < q.l_commitdate,
        q.l_receiptdate >= ibis.date(DATE),
        q.l_receiptdate < add_date(DATE, dy=1),
    )

    gq = q.group_by([q.l_shipmode])
    q = gq.agg(
        high_line_count=q.o_orderpriority.cases(("1-URGENT", 1), ("2-HIGH", 1), else_=0).sum(),
        low_line_count=q.o_orderpriority.cases(("1-URGENT", 0), ("2-HIGH", 0), else_=1).sum(),
    )
    q = q.order_by(q.l_shipmode)

    return q


def q13(customer, orders):

    WORD1 = "special"
    WORD2 = "requests"

    innerq = customer
    innerq = innerq.left_join(
        orders,
        (customer.c_custkey == orders.o_custkey) & ~orders.o_comment.like(f"%{WORD1}%{WORD2}%"),
    )
    innergq = innerq.group_by([innerq.c_custkey])
    innerq = innergq.agg(c_count=innerq.o_orderkey.count())

    gq = innerq.group_by([innerq.c_count])
    q = gq.agg(custdist=innerq.count())

    q = q.order_by([ibis.desc(q.custdist), ibis.desc(q.c_count)])
    return q


def q14(part, lineitem):

    DATE = "1995-09-01"

    q = lineitem
    q = q.join(part, lineitem.l_partkey == part.p_partkey)
    q = q.filter(q.l_shipdate >= ibis.date(DATE), q.l_shipdate < add_date(DATE, dm=1))

    revenue = q.l_extendedprice * (1 - q.l_discount)
    promo_revenue = q.p_type.like("PROMO%").ifelse(revenue, 0)

    q = q.agg(promo_revenue=100 * promo_revenue.sum() / revenue.sum())
    return q


def q15(lineitem, supplier):

    DATE = "1996-01-01"

    qrev = lineitem
    qrev = qrev.filter(
        lineitem.l_shipdate >= ibis.date(DATE), lineitem.l_shipdate < add_date(DATE, dm=3)
    )

    gqrev = qrev.group_by([lineitem.l_suppkey])
    qrev = gqrev.agg(total_revenue=(qrev.l_extendedprice * (1 - qrev.l_discount)).sum())

    q = supplier.join(qrev, supplier.s_suppkey == qrev.l_suppkey)
    q = q.filter(q.total_revenue == qrev.total_revenue.max())
    q = q.select(q.s_suppkey, q.s_name, q.s_address, q.s_phone, q.total_revenue)
    return q.order_by([q.s_suppkey])


def q16(partsupp, part, supplier):

    BRAND = "Brand#45"
    TYPE = "MEDIUM POLISHED"
    SIZES = (49, 14, 23, 45, 19, 3, 36, 9)

    q = partsupp.join(part, part.p_partkey == partsupp.ps_partkey)
    q = q.filter(
        q.p_brand != BRAND,
        ~q.p_type.like(f"{TYPE}%"),
        q.p_size.isin(SIZES),
        ~q.ps_suppkey.isin(
            supplier.filter(supplier.s_comment.like("%Customer%Complaints%")).s_suppkey
        ),
    )
    gq = q.group_by([q.p_brand, q.p_type, q.p_size])
    q = gq.agg(supplier_cnt=q.ps_suppkey.nunique())
    q = q.order_by([ibis.desc(q.supplier_cnt), q.p_brand, q.p_type, q.p_size])
    return q


def q17(lineitem, part):
    BRAND = "Brand#23"
    CONTAINER = "MED BOX"

    q = lineitem.join(part, part.p_partkey == _.l_partkey)

    return q.filter(
        _.p_brand == BRAND,
        _.p_container == CONTAINER,
        _.l_quantity < 0.2 * lineitem.filter(_.l_partkey == q.p_partkey).l_quantity.mean(),
    ).agg(avg_yearly=_.l_extendedprice.sum() / 7.0)


def q18(customer, orders, lineitem):
    QUANTITY = 300

    subq = (
        lineitem.group_by(_.l_orderkey).agg(qty_sum=_.l_quantity.sum()).filter(_.qty_sum > QUANTITY)
    )

    q = (
        customer.join(orders, _.c_custkey == orders.o_custkey)
        .join(lineitem, orders.o_orderkey == lineitem.l_orderkey)
        .filter(_.o_orderkey.isin(subq.l_orderkey))
    )

    return (
        q.group_by(_.c_name, _.c_custkey, _.o_orderkey, _.o_orderdate, _.o_totalprice)
        .agg(sum_qty=_.l_quantity.sum())
        .order_by(ibis.desc(_.o_totalprice), _.o_orderdate)
        .limit(100)
    )


def q19(lineitem, part):

    QUANTITY1 = 1
    QUANTITY2 = 10
    QUANTITY3 = 20
    BRAND1 = "Brand#12"
    BRAND2 = "Brand#23"
    BRAND3 = "Brand#34"

    q = lineitem.join(part, part.p_partkey == lineitem.l_partkey)

    q1 = (
        (q.p_brand == BRAND1)
        & (q.p_container.isin(("SM CASE", "SM BOX", "SM PACK", "SM PKG")))
        & (q.l_quantity >= QUANTITY1)
        & (q.l_quantity <= QUANTITY1 + 10)
        & (q.p_size.between(1, 5))
        & (q.l_shipmode.isin(("AIR", "AIR REG")))
        & (q.l_shipinstruct == "DELIVER IN PERSON")
    )

    q2 = (
        (q.p_brand == BRAND2)
        & (q.p_container.isin(("MED BAG", "MED BOX", "MED PKG", "MED PACK")))
        & (q.l_quantity >= QUANTITY2)
        & (q.l_quantity <= QUANTITY2 + 10)
        & (q.p_size.between(1, 10))
        & (q.l_shipmode.isin(("AIR", "AIR REG")))
        & (q.l_shipinstruct == "DELIVER IN PERSON")
    )

    q3 = (
        (q.p_brand == BRAND3)
        & (q.p_container.isin(("LG CASE", "LG BOX", "LG PACK", "LG PKG")))
        & (q.l_quantity >= QUANTITY3)
        & (q.l_quantity <= QUANTITY3 + 10)
        & (q.p_size.between(1, 15))
        & (q.l_shipmode.isin(("AIR", "AIR REG")))
        & (q.l_shipinstruct == "DELIVER IN PERSON")
    )

    q = q.filter(q1 | q2 | q3)
    q = q.agg(revenue=(q.l_extendedprice * (1 - q.l_discount)).sum())
    return q


def q20(supplier, nation, partsupp, part, lineitem):
    COLOR = "forest"
    DATE = "1994-01-01"
    NATION = "CANADA"

    q1 = supplier.join(nation, supplier.s_nationkey == nation.n_nationkey)

    q3 = part.filter(part.p_name.like(f"{COLOR}%"))
    q2 = partsupp

    q4 = lineitem.filter(
        lineitem.l_partkey == q2.ps_partkey,
        lineitem.l_suppkey == q2.ps_suppkey,
        lineitem.l_shipdate >= ibis.date(DATE),
        lineitem.l_shipdate < add_date(DATE, dy=1),
    )

    q2 = q2.filter(
        partsupp.ps_partkey.isin(q3.p_partkey), partsupp.ps_availqty > 0.5 * q4.l_quantity.sum()
    )

    q1 = q1.filter(q1.n_name == NATION, q1.s_suppkey.isin(q2.ps_suppkey))

    q1 = q1.select(q1.s_name, q1.s_address)

    return q1.order_by(q1.s_name)


def q21(supplier, lineitem, orders, nation):
    NATION = "SAUDI ARABIA"

    L2 = lineitem.view()
    L3 = lineitem.view()

    q = supplier
    q = q.join(lineitem, supplier.s_suppkey == lineitem.l_suppkey)
    q = q.join(orders, orders.o_orderkey == lineitem.l_orderkey)
    q = q.join(nation, supplier.s_nationkey == nation.n_nationkey)
    q = q.select(
        q.l_orderkey.name("l1_orderkey"),
        q.o_orderstatus,
        q.l_receiptdate,
        q.l_commitdate,
        q.l_suppkey.name("l1_suppkey"),
        q.s_name,
        q.n_name,
    )
    q = q.filter(
        q.o_orderstatus == "F",
        q.l_receiptdate > q.l_commitdate,
        q.n_name == NATION,
        ((L2.l_orderkey == q.l1_orderkey) & (L2.l_suppkey != q.l1_suppkey)).any(),
        ~(
            (
                (L3.l_orderkey == q.l1_orderkey)
                & (L3.l_suppkey != q.l1_suppkey)
                & (L3.l_receiptdate > L3.l_commitdate)
            ).any()
        ),
    )

    gq = q.group_by([q.s_name])
    q = gq.aggregate(numwait=q.count())
    q = q.order_by([ibis.desc(q.numwait), q.s_name])
    return q.limit(100)


def q22(customer, orders):
    COUNTRY_CODES = ("13", "31", "23", "29", "30", "18", "17")

    q = customer.filter(_.c_acctbal > 0.0, _.c_phone.substr(0, 2).isin(COUNTRY_CODES)).agg(
        avg_bal=_.c_acctbal.mean()
    )

    custsale = customer.filter(
        _.c_phone.substr(0, 2).isin(COUNTRY_CODES),
        _.c_acctbal > q.avg_bal,
        ~(orders.o_custkey == customer.c_custkey).any(),
    ).select(_.c_phone.substr(0, 2).name("cntrycode"), _.c_acctbal)

    return (
        custsale.group_by(_.cntrycode)
        .agg(numcust=_.count(), totacctbal=_.c_acctbal.sum())
        .order_by(_.cntrycode)
    )
