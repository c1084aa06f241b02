"""What rules see of a match, what they bound, and columns that are matched on and not read."""

from __future__ import annotations

import re

import pytest
from mplang_policy import Names, Rules
from mplang_policy.decision import decide_program
from mplang_policy.offline import asked_of
from mplang_policy.tried import Tried, over_tried, tries
from mplang_tables import encode

import mplang_core as mp
from mplang_core.errors import TraceError

NAMES = ["bank", "shop", "lab"]
CLUSTER = mp.ClusterSpec([{"name": name} for name in NAMES])
CUSTOMERS = {"columns": {"city": "string", "debt": "int64"}, "match": ["iban"]}
CATALOGUE = {
    "bank": {"customers": CUSTOMERS},
    "shop": {"orders": {"columns": {"account": "string", "spent": "int64"}}},
}
BEGIN = """
permit (principal, action in [Action::"run", Action::"read", Action::"forward"], resource);
permit (principal, action == Action::"disclose", resource is Everyone)
when { context.what == "failure" };
"""
MATCHES = """
permit (principal, action == Action::"disclose", resource == Party::"shop") when {
  (context.what == "match" || context.form == "handle") &&
  context.declassifiers.contains("match") &&
  [Column::"customers.iban"].containsAll(context.matched) && context.filtered.isEmpty() &&
  context.functions.isEmpty() && context.tried <= 1000 && context.least >= 50
};
"""
SIZES = """
permit (principal, action == Action::"disclose", resource == Party::"shop")
when { context.what == "size" && context.declassifiers.contains("match") };
"""


def customers(*columns, change=None):
    t = mp.dataset("bank", "customers", columns or None, match=["iban"])
    return t if change is None else mp.device("P0")(change)(t)


def code_of(t):
    """Return a table with the column ``key`` as codes."""
    return mp.device("P0")(encode)(t, column="key", values=("x",), others=True)


def matched(change=None, coded=False, **arguments):
    """Return the bank's and the shop's part of a match that rules permit."""
    orders = mp.dataset("shop", "orders")
    usual = {"rows": {"bank": 500, "shop": 1000}, "at_least": 50}
    mine = code_of(customers(change=change)) if coded else customers(change=change)
    return mp.match(mine, orders, on=[("iban", "account")], **{**usual, **arguments})


def asked(fn):
    with mp.catalogue(CATALOGUE):
        program = mp.compile(fn, cluster_spec=CLUSTER).trace(None).program
    return asked_of(program, NAMES, "bank", "analyst", "production")


def refused(fn, rules=BEGIN + MATCHES):
    """Return why the bank refuses a program; nothing if it permits it."""
    data = {name: {**each, "readers": ["analyst"]} for name, each in CATALOGUE["bank"].items()}
    worker = {"name": "bank", "coordinators": ["analyst"], "tls": "bank", "data": data}
    names = Names.of({**worker, "peers": NAMES})
    decision = decide_program(Rules.of({"bank.cedar": rules}, names), asked(fn))
    return decision.text("bank")


def kept_at_the_shop(**arguments):
    """Return a program that tells the shop which customers it has, and the host nothing."""
    return lambda: mp.store(matched(**arguments)[1], "common")


def test_a_match_that_rules_permit():
    assert refused(kept_at_the_shop(), BEGIN + MATCHES + STORES) == ""


STORES = """
permit (principal, action == Action::"store", resource == Party::"shop")
when { context.declassifiers.contains("match") };
"""


@pytest.mark.parametrize(
    ("arguments", "lacks"),
    [
        ({"rows": {"bank": 500, "shop": 1001}}, "context.tried <= 1000"),
        ({"rows": {"bank": 500}}, "context.tried"),
        ({"at_least": 49}, "context.least >= 50"),
        ({"rows": {"shop": 1000}}, "size"),
        ({"change": lambda t: t.filter(t.city == "Rome")}, "context.filtered"),
        ({"change": lambda t: t.mutate(iban=t.iban.lower())}, "context.functions"),
        ({"change": lambda t: t.mutate(iban=t.city)}, "containsAll(context.matched)"),
    ],
)
def test_what_rules_lack_is_told(arguments, lacks):
    assert lacks in refused(kept_at_the_shop(**arguments), BEGIN + MATCHES + STORES)


def test_who_learns_nothing_of_the_other_one_is_told_of_tokens_alone():
    told = [
        row
        for row in asked(lambda: matched(learn="bank")).rows
        if row.sender == 0 and row.receiver == 1
    ]
    assert [(row.what, row.form, row.discloses) for row in told] == [("move", "handle", ())]


def test_numbers_of_what_is_in_common_are_no_tokens():
    """Who may match may not be given the other one's result."""

    def program():
        rows = matched(learn="bank")
        return mp.store(mp.put("P1", mp.device("P0")(lambda t: t.select("match"))(rows)), "numbers")

    assert "(move)" in refused(program, BEGIN + MATCHES + STORES)


READS_ALL = "permit (principal, action, resource);"
MORE = {
    "the column itself": lambda: customers(),
    "another column of a filtered table": lambda: customers(
        change=lambda t: t.filter(t.iban == "x").select("debt")
    ),
    "a computed one": lambda: customers(change=lambda t: t.select(n=t.iban.length())),
    "a number of rows": lambda: customers(
        change=lambda t: t.filter(t.iban.startswith("DE")).count().as_table()
    ),
    "shares": lambda: mp.seal(mp.device("P0")(lambda t: t.agg(n=t.iban.nunique()))(customers())),
    "a result that keeps it": lambda: matched(keep=True)[0],
    "a key that is true for one": lambda: matched(
        change=lambda t: t.mutate(iban=(t.iban == "x").cast("string"))
    )[0],
    "a letter of it": lambda: matched(change=lambda t: t.mutate(iban=t.iban[:1]))[0],
    "whether it is there": lambda: matched(change=lambda t: t.mutate(iban=t.iban.fill_null("x")))[
        0
    ],
    "a guard that counts by it": lambda: mp.guard.aggregate(
        customers(), unit="iban", k=20, n="units"
    ),
    "a guard after a list": lambda: mp.guard.aggregate(
        mp.device("P0")(lambda t, s: t.semi_join(s, t.iban == s.account))(
            customers(), mp.put("P0", mp.dataset("shop", "orders"))
        ),
        unit="iban",
        k=2,
        n="units",
    ),
    "a key that is left": lambda: matched(change=lambda t: t.mutate(key=t.iban))[0],
    "a code of it that is left": lambda: matched(change=lambda t: t.mutate(key=t.iban), coded=True)[
        0
    ],
}


@pytest.mark.parametrize("way", [way for way in MORE if way != "shares"])
def test_what_tells_more_of_a_column_to_match_on_is_refused_whatever_rules_say(way):
    found = refused(MORE[way], READS_ALL)
    assert "customers.iban is offered for matching only" in found


CASES = {
    "compared": lambda t: t.iban < "m",
    "among": lambda t: t.iban.isin(["x", "y"]),
    "between": lambda t: t.iban.between("a", "b"),
    "null": lambda t: t.iban.notnull(),
    "filled": lambda t: t.iban.fill_null("x"),
    "case": lambda t: (t.iban == "x").ifelse(None, t.iban),
    "both": lambda t: (t.iban > "a") & (t.iban < "b"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_key_that_chooses_is_a_filter_for_rules(case):
    change = CASES[case]
    program = kept_at_the_shop(change=lambda t: t.mutate(iban=change(t).cast("string")))
    assert "no filter may name it" in refused(program, READS_ALL)
    told = [row for row in asked(program).rows if row.what == "match" and row.sender == 0]
    uses = {use for source in told[0].sources for guard in source.guards for use in guard.uses}
    assert "filter" in uses


def test_a_guard_after_a_match_counts_its_computed_keys_as_filters():
    def program():
        mine = mp.device("P1")(lambda t: t.mutate(key=(t.account == "x").ifelse(None, t.account)))(
            mp.dataset("shop", "orders")
        )
        theirs = customers()
        rows = mp.match(theirs, mine, on=[("iban", "key")], rows={"bank": 9, "shop": 9}, keep=True)
        return mp.guard.aggregate(rows[1], unit="account", k=20, total=("spent", "sum"))

    assert "does not count: a filter names the unit" in " ".join(asked(program).remarks)


@pytest.mark.parametrize("learn", ["both", "bank"])
def test_rows_that_matched_leave_it_out(learn):
    def program():
        rows = matched(learn=learn)
        return rows if learn == "bank" else rows[0]

    assert refused(program, READS_ALL) == ""
    cleaned = {"change": lambda t: t.mutate(iban=t.iban.lower().strip())}
    assert refused(lambda: matched(**cleaned)[0], READS_ALL) == ""


def test_a_column_to_match_on_is_named_as_the_error_says():
    with pytest.raises(TraceError, match="may be matched on, and is not read") as error:
        asked(lambda: mp.dataset("bank", "customers", ["iban"]))
    call = re.search(r"match=(\[.*?\])\)", str(error.value))
    assert call is not None
    names = [each.strip("'") for each in call[1].strip("[]").split(", ")]
    assert asked(lambda: mp.dataset("bank", "customers", ["debt"], match=names)).reads


def test_keys_that_others_try_are_counted_by_day():
    (tried,) = tries(asked(matched))
    assert tried == Tried("customers", "shop", 1000)
    assert over_tried([tried], {}, {"customers": 1000}) == ""
    before = {("customers", "shop"): 1}
    assert "would try 1001 keys" in over_tried([tried], before, {"customers": 1000})
    assert over_tried([tried], {("customers", "lab"): 1}, {"customers": 1000}) == ""
    assert over_tried([tried], {("customers", "shop"): 10**9}, {}) == ""
    (unbounded,) = tries(asked(lambda: matched(rows={"bank": 500})))
    assert "the number of keys" in over_tried([unbounded], {}, {"customers": 1000})
    assert tries(asked(lambda: matched(learn="bank"))) == [tried]  # the bank's rows may go on
    assert tries(asked(lambda: mp.dataset("bank", "customers"))) == []


@pytest.mark.parametrize(
    "change",
    [lambda t: t.order_by("debt"), lambda t: t.distinct(), lambda t: t.union(t)],
    ids=["ordered", "distinct", "twice"],
)
def test_keys_that_are_tried_on_other_rows_are_any_number(change):
    (tried,) = tries(asked(lambda: matched(change=change)))
    assert tried == Tried("customers", "shop", 0)


def test_keys_of_a_third_party_are_tried_on_all_that_a_chain_matches():
    def chain():
        bank = matched(keep=True)[0]
        lab = mp.put("P2", mp.dataset("shop", "orders"))
        rows = {"bank": 500, "lab": 77}
        return mp.match(bank, lab, on=[("iban", "account")], rows=rows, number="both")

    assert [each for each in tries(asked(chain)) if each.party == "lab"] == [
        Tried("customers", "lab", 77)
    ]
