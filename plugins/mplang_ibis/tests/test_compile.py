"""``ibis.compile``: golden SQL, declared types, the same bytes everywhere, refusals."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import ibis
import pytest
from mplang_ibis import ibis_compile
from mplang_ibis.query import admit

import mplang_core as mp
from mplang_core.errors import TraceError
from mplang_core.feop import flatten
from mplang_core.ir.compressed_text import unpack

SALES = mp.TableType(
    (
        ("id", "int64"),
        ("shop", "string"),
        ("price", "decimal128(10, 2)"),
        ("day", "date32[day]"),
        ("rate", "double"),
    )
)
SHOPS = mp.TableType((("shop", "string"), ("city", "string")))


def compiled(fn, *kinds, names=None, **literals):
    return ibis_compile(fn, mp.FeSignature(kinds, literals), names)


def sql_of(fn, *kinds, **options):
    return unpack(compiled(fn, *kinds, **options).pfunc.attrs["code"])


# -- programs


def test_a_signature_gives_a_program_without_data():
    pfunc = compiled(lambda t: t.filter(t.rate > 0.5)[["id", "shop"]], SALES).pfunc
    assert pfunc.fn_type == "ibis.run"
    assert pfunc.ins_info == (SALES,)
    assert pfunc.outs_info == (mp.TableType((("id", "int64"), ("shop", "string"))),)
    assert pfunc.attrs["names"] == ("table0",)
    assert pfunc.attrs["ibis"] == ibis.__version__
    assert pfunc.attrs["gives"] == pfunc.outs_info[0]


def test_golden_filter():
    sql = sql_of(lambda t, least: t.filter(t.rate > least)[["id"]], SALES, names=["sales"], least=2)
    assert sql == textwrap.dedent("""\
        SELECT
          "t0"."id"
        FROM "sales" AS "t0"
        WHERE
          "t0"."rate" > 2""")


def test_golden_join_and_group():
    def per_city(sales, shops):
        both = sales.join(shops, "shop")
        return both.group_by("city").agg(total=both.price.sum()).order_by("city")

    sql = sql_of(per_city, SALES, SHOPS, names=["sales", "shops"])
    assert sql == textwrap.dedent("""\
        SELECT
          *
        FROM (
          SELECT
            "t4"."city",
            SUM("t4"."price") AS "total"
          FROM (
            SELECT
              "t2"."id",
              "t2"."shop",
              "t2"."price",
              "t2"."day",
              "t2"."rate",
              "t3"."city"
            FROM "sales" AS "t2"
            INNER JOIN "shops" AS "t3"
              ON "t2"."shop" = "t3"."shop"
          ) AS "t4"
          GROUP BY
            1
        ) AS "t5"
        ORDER BY
          "t5"."city" ASC""")


@pytest.mark.parametrize(
    ("fn", "columns"),
    [
        (lambda t: t.agg(n=t.count(), s=t.id.sum()), [("n", "int64"), ("s", "int64")]),
        (lambda t: t.agg(p=t.price.sum()), [("p", "decimal128(38, 2)")]),
        (lambda t: t.agg(m=t.id.mean(), d=t.day.max()), [("m", "double"), ("d", "date32[day]")]),
        (lambda t: t.select(y=t.day.year(), u=t.shop.upper()), [("y", "int64"), ("u", "string")]),
        (lambda t: t.select(b=t.rate.isnan(), c=t.id.cast("int8")), [("b", "bool"), ("c", "int8")]),
        (lambda t: t.price.sum().name("p").as_table(), [("p", "decimal128(38, 2)")]),
    ],
)
def test_the_result_has_the_types_that_duckdb_gives(fn, columns):
    assert compiled(fn, SALES).pfunc.outs_info == (mp.TableType(tuple(columns)),)


def test_tables_and_literals_in_a_nest():
    def fn(nest, n):
        return nest["a"].union(nest["b"][0]).limit(n)

    program = ibis_compile(fn, mp.FeSignature(({"a": SHOPS, "b": [SHOPS]}, 3)))
    assert program.pfunc.ins_info == (SHOPS, SHOPS)
    assert 'FROM "table1"' in unpack(program.pfunc.attrs["code"])
    assert program.in_tree == flatten(({"a": 0, "b": [0]}, 0))[1]
    assert program.out_tree == flatten(0)[1]


@pytest.mark.parametrize("name", ["user", "current_date", "order", "SELECT", 'a"b', "é ü", "t0"])
def test_columns_may_have_any_name(name):
    kind = mp.TableType(((name, "int64"), ("other", "int64")))

    def fn(t):
        kept = t.filter(t[name] > 0).group_by(name).agg(n=t.other.sum()).order_by(name)
        return kept.join(t, name)[[name, "n"]].distinct()

    assert compiled(fn, kind).pfunc.outs_info[0].columns == ((name, "int64"), ("n", "int64"))


@pytest.mark.parametrize(
    "fn",
    [
        lambda t: t.select(x=t.shop.lpad(9, "-").substr(1, 3) + t.shop.strip().replace("a", "b")),
        lambda t: t.filter(t.shop.contains("a") | t.shop.like("%x") | t.shop.re_search("^b+")),
        lambda t: t.select(x=t.shop.split(",")[0], y=t.shop.length(), z=t.shop.find("a")),
        lambda t: t.select(x=t.rate.round(2), y=t.rate.ln().sqrt(), z=t.id % 3, w=t.id // 2),
        lambda t: t.select(x=t.rate.fill_null(0), y=ibis.coalesce(t.id, 1), z=t.id.nullif(1)),
        lambda t: t.select(x=ibis.cases((t.id > 1, "a"), (t.id > 0, "b"), else_=None)),
        lambda t: t.select(x=t.day.truncate("M"), y=t.day + ibis.interval(days=1)),
        lambda t: t.select(x=t.day.strftime("%Y"), y=t.day.day_of_week.index()),
        lambda t: t.select(x=t.day.delta(ibis.date("2020-01-01"), unit="day")),
        lambda t: t.select(x=ibis.row_number().over(group_by=t.shop, order_by=t.day)),
        lambda t: t.select(x=t.id.lag(1).over(order_by=t.id), y=t.rate.cummean()),
        lambda t: t.agg(x=t.rate.std(), y=t.rate.var(), z=t.rate.median(), w=t.id.nunique()),
        lambda t: t.agg(
            x=t.rate.quantile(0.9), y=t.rate.corr(t.id, how="pop"), z=t.shop.group_concat(",")
        ),
        lambda t: t.agg(x=t.id.sum(where=t.id > 1), y=t.id.argmax(t.rate), z=t.id.mode()),
        lambda t: t.filter(t.shop.isin(["a", "b"]) & ~t.id.between(1, 2) & t.day.notnull()),
        lambda t: t.filter(t.id.isin(t.filter(t.rate > 0).id)),
        lambda t: t.filter(t.rate > t.rate.mean()),
        lambda t: t.left_join(t.view(), "id")[["id"]].union(t[["id"]], distinct=True),
        lambda t: t[["id"]].intersect(t[["id"]]).difference(t[["id"]]),
        lambda t: t.distinct(on="shop", keep=None),
        lambda t: t.filter(ibis.row_number().over(group_by="shop", order_by="id") == 0),
        lambda t: t.order_by(ibis.desc("rate"), "id").limit(3, offset=1),
        lambda t: t.select(x=t.rate.cast("string"), y=t.shop.cast("float64"), z=t.id.cast("bool")),
        lambda t: t.select(
            x=t.shop.hexdigest("sha256"), y=t.id.nullif(0).abs().log2(), z=ibis.greatest(1, 2)
        ),
        lambda t: t.mutate(z=t.shop.try_cast("int64")).drop("shop"),
        lambda t: t.shop.topk(2),
        lambda t: t.pivot_wider(names_from="shop", names=["a", "b"], values_from="rate"),
        lambda t: t.drop_null().rename(number="id").fill_null({"rate": 0.0}),
    ],
)
def test_what_ibis_writes_is_admitted(fn):
    sql = sql_of(fn, SALES)
    admit(sql, ["table0"])
    assert sql == sql_of(fn, SALES)


def test_sql_text_within_a_function():
    def fn(t):
        per_shop = (
            t.filter(t.rate > 0)
            .alias("sold")
            .sql("SELECT shop, sum(price * 2) AS twice FROM sold GROUP BY shop;")
        )
        return per_shop.order_by("twice")

    expected = mp.TableType((("shop", "string"), ("twice", "decimal128(38, 2)")))
    assert compiled(fn, SALES).pfunc.outs_info == (expected,)
    admit(sql_of(fn, SALES), ["table0"])
    mysql = sql_of(
        lambda t: t.alias("sold").sql("SELECT `id` DIV 3 AS n FROM sold", dialect="mysql"), SALES
    )
    assert '"id" // 3 AS n' in mysql


# -- the same bytes


PROGRAM = """
    import hashlib
    import ibis
    import mplang_core as mp
    from mplang_ibis import ibis_compile
    {blank}
    names = [("a", *"uvwxyz"), ("b", *"uvwxyz")]
    kinds = [mp.TableType((("k", "string"), *((c, "int64") for c in each))) for each in names]
    def grouped(x, y):
        both = x.join(y, "k").filter(lambda t: t.a.isin({{3, 1, 2}}) | (t.b > 1))
        return both.group_by("k").agg(a=both.a.sum(), b=both.b.max()).order_by("k")
    def dropped(x, y):
        return x.drop("v", "w").join(y.drop("u", "w"), "k").drop("u", "v")
    def shared(x, y):
        some, others = x.filter(x.a > 1).limit(5), y.group_by("k").agg(n=y.count())
        more = some.join(others, "k").union(some.join(others, "k").filter(lambda t: t.n > 1))
        return more.join(others.rename(m="n"), "k").join(some.select("k", z="a"), "k")
    def filled(x, y):
        some = x.fill_null({{"u": 1, "v": 2, "w": 3}}).drop_null(["a", "u"]).distinct()
        return some.mutate(r=some.a.rank().over(group_by=["k", "u"], order_by="v")).rename(z="k")
    for fn in (grouped, dropped, shared, filled):
        attrs = dict(ibis_compile(fn, mp.FeSignature(tuple(kinds))).pfunc.attrs)
        attrs["gives"] = str(attrs["gives"])
        print(fn.__name__, hashlib.sha256(repr(sorted(attrs.items())).encode()).hexdigest())
"""


@pytest.mark.long("three processes import Ibis")
def test_the_same_bytes_in_two_processes_from_other_lines_with_other_hash_seeds():
    """Ibis has sets; what owners sign must not depend on their order."""
    seen = set()
    for seed, blank in (("1", "\n\n\n"), ("3", "\n"), ("12345", "")):
        out = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PROGRAM).format(blank=blank)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": "", "HOME": "/nonexistent"},
        )
        seen.add(out.stdout)
    assert len(seen) == 1


def test_the_same_bytes_in_one_process():
    def fn(t):
        return t.group_by("shop").agg(n=t.count(), last=t.day.max())

    one, other = compiled(fn, SALES), compiled(fn, SALES)
    assert one.pfunc == other.pfunc


# -- refusals


@ibis.udf.scalar.python
def plus_one(x: int) -> int:
    return x + 1


@ibis.udf.scalar.builtin
def getenv(name: str) -> str: ...


OTHER = ibis.table({"a": "int64"}, name="other")


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda t: t.mutate(x=ibis.random()), "random, which gives other values in"),
        (lambda t: t.mutate(x=ibis.now()), "CURRENT_TIMESTAMP.*write the time as a constant"),
        (lambda t: t.mutate(x=ibis.today()), "CURRENT_DATE"),
        (lambda t: t.mutate(x=ibis.uuid()), "the function uuid"),
        (lambda t: t.sample(0.5), "party: sample, which takes other rows in each run"),
        (lambda t: t.sample(0.5, method="block", seed=1), "sample"),
        (lambda t: t.cross_join(ibis.memtable({"a": [1]})), "a memtable"),
        (lambda t: t.mutate(x=plus_one(t.id)), "a Python function of yours"),
        (lambda t: t.mutate(x=getenv("HOME")), "the function getenv"),
        (lambda t: t.cross_join(OTHER), "reads another table, 'other'"),
        (lambda t: ibis.range(3).unnest().name("a").as_table(), None),
        (lambda t: t.no_such_column, "AttributeError"),
        (lambda t: t.filter(t.shop + 1), "Ibis cannot trace .*predicates"),
        (lambda t: t.rate.sum(), r"by .as_table\(\)"),
        (lambda t: 5, "returns a int"),
        (lambda t: t.select(x=t.shop.split(",")), r"'x' is of DuckDB's type VARCHAR\[\]"),
        (lambda t: t.sql("SELECT * FROM t"), r't\.alias\("people"\)\.sql'),
        (lambda t: t.alias("p").sql("SELECT agee FROM p"), 'column "agee" not found'),
        (lambda t: t.alias("p").sql("SELECT 1 AS a; SELECT 2 AS b"), "2 statements"),
        (lambda t: t.alias("p").sql("SELECT * FROM read_csv('x')"), "table function read_csv"),
        (lambda t: t.alias("table0").sql("SELECT id FROM table0"), "choose another alias"),
        (lambda t: t.alias("T").sql("SELECT id FROM T"), "not a name of a table here"),
        (lambda t: t.select(t.id, ID=t.id), "upper and lower case"),
        (lambda t: undefined_name, "NameError"),  # noqa: F821
    ],
)
def test_what_cannot_be_compiled_is_a_trace_error_with_the_line(fn, message):
    with pytest.raises(TraceError, match=message) as error:
        compiled(fn, SALES)
    assert "test_compile.py:" in str(error.value)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ((), r"it works on tables, got operands of \(\)"),
        ((mp.TensorType("f32", (3,)),), r"got operands of \(f32\[3\]\)"),
        ((SALES, mp.TensorType("f32", (3,))), "it works on tables"),
        ((mp.TableType((("a", "float64"),)),), "expected an Arrow type as pyarrow writes it"),
        ((mp.TableType((("a", "list<item: int64>"),)),), "'a' is of the type 'list<"),
        ((mp.TableType(()),), "1 to 4096 columns"),
        ((mp.TableType((("a", "int64"), ("A", "int64"))),), "upper and lower case"),
        ((mp.TableType((("", "int64"),)),), "not a name of a column"),
        ((mp.TableType((("\ud800", "int64"),)),), "not a name of a column"),
    ],
)
def test_operands_that_are_no_tables_are_refused(kinds, message):
    with pytest.raises(TraceError, match=message):
        compiled(lambda *tables: tables[0], *kinds)


@pytest.mark.parametrize(
    "names",
    [
        *([], ["a", "b"], ["t0"], ["t12x"], ["duckdb_settings"], ["pg_tables"], ["sqlite_master"]),
        *(["pragma_database_list"], ["information_schema"], ["A"], ["a.b"], ['a"b'], ["x.csv"]),
        [1],
    ],
)
def test_names_that_sql_could_take_for_something_else_are_refused(names):
    with pytest.raises(
        TraceError, match=r"not a name of a table here|names of tables|a different name"
    ):
        compiled(lambda t: t, SHOPS, names=names)
