"""Guards, as rules are told of them: what counts as an aggregate of at least k persons."""

from __future__ import annotations

import mplang_tables
import pytest
from mplang_analysis import Guard, Source
from mplang_policy.approval import rows_of, uncovered
from mplang_policy.guarded import told_of_guards
from policy_testbed import RUNS, decided, line_of, program_of

import mplang_core as mp

AGGREGATES = (
    RUNS
    + """
@id("aggregates") permit (principal, action == Action::"fetch", resource)
when { context.declassifiers.contains("guard") && context.k >= 20 };
permit (principal, action == Action::"disclose", resource is Party) when { !context.discloses };
"""
)


def people(*columns):
    return mp.dataset("bank", "people", columns or None)


def at_bank(fn, *tables):
    return mp.device("P0")(fn)(*tables)


def mean_pay(table, k=20, unit="id", by=("city",)):
    return mp.guard.aggregate(table, unit=unit, k=k, by=by, pay=("pay", "mean"))


def filtered():
    return mean_pay(at_bank(lambda t: t.filter(t.pay > 3, t.city.upper() != "X"), people()))


def renamed():
    chosen = at_bank(lambda t: t.select("id", "city", wage="pay"), people())
    return mp.guard.aggregate(chosen, unit="id", k=20, wage=("wage", "sum"), n="count")


def computed_aside():
    return mean_pay(at_bank(lambda t: t.mutate(twice=t.pay * 2), people()))


def after_it():
    found = mean_pay(people())
    return at_bank(lambda t: t.mutate(twice=t.pay * 2).order_by("pay").limit(1), found)


def overlap():
    """The shop's customers are matched at the bank; the bank is not asked for the shop's rows."""
    sold = mp.put("P0", mp.dataset("shop", "sales", ["id"]))
    return mean_pay(at_bank(lambda t, s: t.semi_join(s, t.id == s.id), people(), sold))


def no_overlap():
    sold = mp.put("P0", mp.dataset("shop", "sales", ["id"]))
    return mean_pay(at_bank(lambda t, s: t.anti_join(s, "id"), people(), sold))


def constants():
    found = mean_pay(people())
    return found, mp.guard.aggregate(people("id"), unit="id", k=25, n="units")


@pytest.mark.parametrize(
    "program", [filtered, renamed, computed_aside, after_it, overlap, no_overlap, constants]
)
def test_an_aggregate_of_enough_persons_is_permitted(program):
    decision, text = decided(program, AGGREGATES)
    assert decision.allowed, text


def small_group():
    return mean_pay(people(), k=19)


def one_persons_pay():
    """The sum of what is 0 for everyone else."""
    hidden = at_bank(lambda t: t.mutate(pay=t.pay * (t.id == 7).cast("float64")), people())
    return mean_pay(hidden)


def case_before():
    hidden = at_bank(lambda t: t.mutate(pay=(t.id == 7).ifelse(t.pay, 0.0)), people())
    return mean_pay(hidden)


def grouped_by_person():
    hidden = at_bank(lambda t: t.mutate(city=(t.id == 7).cast("string")), people())
    return mean_pay(hidden)


def made_up_count():
    def counted(t):
        return t.group_by("city").agg(pay=t.pay.mean(), units=t.count() + 100)

    return at_bank(counted, people())


def weighted():
    """One person's row comes a thousand times: by a join with what the analyst gives."""
    sold = mp.put("P0", mp.dataset("shop", "sales", ["id"]))
    joined = at_bank(lambda t, s: t.inner_join(s, "id").select("id", "city", "pay"), people(), sold)
    return mean_pay(joined)


def doubled():
    joined = at_bank(lambda t: t.union(t), people())
    return mean_pay(joined)


def cut_off():
    return mean_pay(at_bank(lambda t: t.order_by(t.pay.desc()).limit(20), people()))


def window():
    return mean_pay(at_bank(lambda t: t.mutate(pay=t.pay.max().over(group_by="city")), people()))


def other_unit():
    return mean_pay(people(), unit="pay")


def by_another_persons_row():
    """All rows of a city are there if person 7 of it earns enough: 20 persons, one's pay."""

    def chosen(t, other):
        seventh = other.filter(other.id == 7, other.pay > 4000).select("city")
        return t.semi_join(seventh, "city")

    return mean_pay(at_bank(chosen, people(), people()))


def by_itself():
    def chosen(t):
        seventh = t.filter(t.id == 7, t.pay > 4000).select("city")
        return t.semi_join(seventh, "city")

    return mean_pay(at_bank(chosen, people()))


def by_computed_filter():
    marked = at_bank(lambda t: t.mutate(mark=t.pay.max().over()), people())
    return mean_pay(at_bank(lambda t: t.filter(t.mark > 1), marked))


def through_numbers():
    def back(t):
        x = mp.device("P0")(mplang_tables.to_tensor)(at_bank(lambda t: t.select("pay"), t), rows=3)
        return mp.device("P0")(mplang_tables.from_tensor)(x, columns=("pay",))

    return mp.guard.aggregate(back(people()), unit="pay", k=20, pay=("pay", "mean"))


def beside_it():
    return mean_pay(people()), at_bank(lambda t: t.agg(pay=t.pay.mean()), people())


def mixed():
    """A guarded number plus one that is not."""

    def both(a, b):
        return a.cross_join(b)

    other = at_bank(lambda t: t.agg(most=t.pay.max()), people())
    return at_bank(both, mean_pay(people()), other)


def cast_to_less():
    def rounded(t):
        return t.mutate(pay=t.pay.cast("float32"))

    return mean_pay(at_bank(rounded, people()))


def filtered_by_person():
    """Whoever earns nothing, and person 7: the sum is one person's pay."""
    return mean_pay(at_bank(lambda t: t.filter((t.pay == 0) | (t.id == 7)), people()))


def not_matched_with():
    """Nineteen that the shop makes up, and person 7 if it earns less."""
    sold = mp.put("P0", mp.dataset("shop", "sales", ["id"]))

    def others(s, t):
        return s.anti_join(t.filter(t.id == 7, t.pay > 4000), "id")

    chosen = at_bank(others, sold, people("id", "pay"))
    return mp.guard.aggregate(chosen, unit="id", k=20, n="units")


def thresholds():
    """Twenty of the shop for each amount, if person 7 earns more."""
    sold = mp.put("P0", mp.dataset("shop", "sales"))

    def decided_by(s, t):
        return s.semi_join(t, [s.id == t.id, (t.id != 7) | (t.pay > s.amount)])

    chosen = at_bank(decided_by, sold, people("id", "pay"))
    return mp.guard.aggregate(chosen, unit="id", k=20, by=["amount"], n="units")


def either_of_two_tables():
    """A public table that passes for one of the bank."""
    public = at_bank(mplang_tables.table({"id": list(range(30))}))
    either = mp.uniform_cond(
        mp.constant(True), lambda a, b: a, lambda a, b: b, public, people("id")
    )
    return mp.guard.aggregate(either, unit="id", k=20, n="units")


REFUSED = [
    filtered_by_person, not_matched_with, thresholds, either_of_two_tables,
    small_group, one_persons_pay, case_before, grouped_by_person, made_up_count, weighted, doubled,
    cut_off, window, other_unit, by_another_persons_row, by_itself, by_computed_filter,
    through_numbers, beside_it, mixed, cast_to_less,
]  # fmt: skip


@pytest.mark.parametrize("program", REFUSED)
def test_what_could_tell_of_one_person_is_refused(program):
    decision, text = decided(program, AGGREGATES)
    assert not decision.allowed
    assert '"aggregates"' in text


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (one_persons_pay, "column 'pay' is computed"),
        (grouped_by_person, "column 'city' is computed"),
        (weighted, "its table is not of rows as a data set gives them"),
        (other_unit, "it counts by people.pay, and its unit is id"),
        (made_up_count, "mp.guard.aggregate, or an op of mp.dp, computes aggregates"),
    ],
)
def test_a_denial_tells_why_a_guard_does_not_count(program, reason):
    _, text = decided(program, AGGREGATES)
    assert reason in text


def test_a_denial_names_the_line_of_the_guard():
    def program():
        hidden = at_bank(lambda t: t.mutate(pay=t.pay * t.id), people())
        return mp.guard.aggregate(hidden, unit="id", k=20, pay=("pay", "mean"))

    _, text = decided(program, AGGREGATES)
    assert f"guard.aggregate at {line_of(program, 2)} does not count: column 'pay'" in text


def flow_of(program) -> dict:
    """Return what rules are told of the result."""
    decision, _ = decided(program, AGGREGATES)
    (found,) = (each.context for each in decision.requests if each.action == "fetch")
    fields = ("aggregates", "grouped", "filtered", "matched", "joined_with", "functions")
    return {
        name: [getattr(each, "id", each) for each in found[name]] for name in fields if found[name]
    }


def test_rules_are_told_what_each_column_is_used_for():
    assert flow_of(filtered) == {
        "aggregates": ["mean(people.pay)"],
        "grouped": ["people.city"],
        "filtered": ["people.city", "people.pay"],
        "functions": ["upper"],
    }
    assert flow_of(renamed) == {"aggregates": ["count(people.id)", "sum(people.pay)"]}
    assert flow_of(overlap) == {
        "aggregates": ["mean(people.pay)"],
        "grouped": ["people.city"],
        "matched": ["people.id"],
        "joined_with": ["shop"],
    }


def test_a_match_with_what_the_analyst_gives_is_told():
    def chosen():
        public = at_bank(mplang_tables.table({"id": list(range(30))}))
        return mean_pay(at_bank(lambda t, s: t.semi_join(s, "id"), people(), public))

    assert flow_of(chosen)["matched"] == ["people.id"]


def test_the_shop_is_asked_as_well_and_its_persons_are_counted_by_the_match():
    rules = RUNS + 'permit (principal, action == Action::"disclose", resource == Party::"bank");'
    decision, _ = decided(overlap, rules, "shop")
    (found,) = (each.context for each in decision.requests if each.action == "fetch")
    assert [each.id for each in found["matched"]] == ["sales.id"]
    assert found["k"] == 0  # the shop has not said what its unit is


def together():
    """Each party adds its own noise; what is revealed is the sum."""
    here = mp.dp.count(people("id"), unit="id", epsilon=0.5)
    there = mp.dp.count(mp.dataset("shop", "sales", ["id"]), unit="id", epsilon=0.25)
    total = mp.device("SP0")(lambda a, b: a + b)(mp.seal(here), mp.seal(there))
    return mp.reveal(total, to="P1")


def test_noisy_numbers_stay_so_in_shares_of_several_parties():
    rules = (
        RUNS
        + """
    permit (principal, action == Action::"disclose", resource is Party) when { !context.discloses };
    @id("noise") permit (principal, action in [Action::"fetch", Action::"disclose"], resource)
    when { context.declassifiers.contains("dp") };
    """
    )
    decision, text = decided(together, rules)
    assert decision.allowed, text
    (run,) = (each for each in decision.requests if each.action == "run")
    assert run.context["epsilon"] == 500_000

    def bare():
        here = mp.dp.count(people("id"), unit="id", epsilon=0.5)
        pay = at_bank(lambda t: t.agg(n=t.pay.max()), people("pay"))
        pay = mp.device("P0")(mplang_tables.to_tensor)(pay, rows=1)
        total = mp.device("SP0")(lambda a, b: a + b)(mp.seal(here), mp.seal(pay))
        return mp.reveal(total, to="P1")

    decision, text = decided(bare, rules)
    assert not decision.allowed
    assert "declassifiers is []" in text


def test_what_the_guard_of_another_plugin_tells_is_told_as_well():
    """Else a rule that lists means would permit it: nothing is beyond an empty set."""
    guard = Guard("other", ("data set people.id",), 20, ("filter", "median"))
    source = Source(0, mp.Mask.of(0), "data set people.pay", (guard,))
    told = told_of_guards([source], 0, ["bank"], {"people": "id"})
    assert [each.id for each in told["aggregates"]] == ["median(people.pay)"]
    assert [each.id for each in told["filtered"]] == ["people.pay"]


def test_what_is_called_as_a_data_set_is_none():
    """A source that no data set is has no unit, whatever its name."""
    guard = Guard("guard", ("data set people.id",), 20, ("mean",))
    for name, k in (("data set people.pay", 20), ("people.pay", 0), ("people", 0)):
        source = Source(0, mp.Mask.of(0), name, (guard,))
        told = told_of_guards([source], 0, ["bank"], {"people": "id"})
        assert told["k"] == k
        assert told["declassifiers"] == (("guard",) if k else ())


BOUNDED = (
    RUNS
    + """
@id("aggregates") permit (principal, action == Action::"fetch", resource)
when { context.k >= 20 && context.max_share <= 500000 };
"""
)


def total_pay(table, k=20, **bounds):
    return mp.guard.aggregate(table, unit="id", k=k, pay=("pay", "sum"), **bounds)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (lambda: total_pay(people(), max_share=0.5), None),
        (lambda: total_pay(people(), max_share=0.1234567), None),
        (lambda: total_pay(people(), max_share=0.6), "max_share is 600000"),
        (lambda: total_pay(people()), "max_share is 1000000"),
        (lambda: (total_pay(people(), max_share=0.5), total_pay(people())), "max_share is 1000000"),
        (lambda: mp.dp.count(people("id"), unit="id", epsilon=0.5), "max_share is 1000000"),
    ],
)
def test_rules_are_told_which_part_of_a_number_one_unit_adds(program, told):
    decision, text = decided(program, BOUNDED)
    assert decision.allowed == (told is None), text
    assert told is None or told in text


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        (lambda: total_pay(people()), "max_share= of mp.guard.aggregate leaves them out"),
        (lambda: total_pay(people(), k=5, max_share=0.5), "a larger k= of mp.guard.aggregate"),
        (lambda: people(), "it discloses single rows"),
    ],
)
def test_a_refusal_tells_what_can_be_changed(program, hint):
    _, text = decided(program, BOUNDED)
    assert hint in text
    assert text.count("mp.guard.aggregate") == 1


def test_an_approval_covers_no_larger_part_than_was_shown():
    decision, _ = decided(lambda: total_pay(people(), max_share=0.5), BOUNDED)
    shown = rows_of(decision.requests)

    def covered(**changes):
        rows = [row | changes if row["action"] == "fetch" else row for row in shown]
        return uncovered(rows, decision.requests) is None

    assert covered(max_share=500_000)
    assert covered(max_share=600_000)
    assert not covered(max_share=499_999)


def test_a_part_by_another_unit_than_the_owners_does_not_count():
    decision, text = decided(
        lambda: mp.guard.aggregate(people(), unit="pay", k=20, max_share=0.5, n="count"), BOUNDED
    )
    assert not decision.allowed
    assert "max_share is 1000000" in text


def test_the_larger_part_counts_where_data_is_on_two_paths():
    def both(a, b):
        return a.cross_join(b.rename(other="pay"))

    def program():
        return at_bank(
            both, total_pay(people(), max_share=0.25), total_pay(people(), max_share=0.5)
        )

    decision, _ = decided(program, BOUNDED)
    (found,) = (each.context for each in decision.requests if each.action == "fetch")
    assert found["max_share"] == 500_000


def test_the_disclosure_table_tells_what_guards_bound():
    table = mp.analysis.disclosure(program_of(lambda: total_pay(people(), max_share=0.5)))
    (row,) = (each for each in table.rows if each.what == "result")
    assert row.guards == ("guard k=20 max_share=0.5",)
    assert row.to_dict()["guards"] == ["guard k=20 max_share=0.5"]
    assert "0/people (city, id, pay), guard k=20 max_share=0.5" in " ".join(row.texts())
    bare = mp.analysis.disclosure(program_of(beside_it))
    assert [each.guards for each in bare.rows if each.what == "result"] == [("guard k=20",), ()]
