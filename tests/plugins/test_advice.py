"""Code that a message says to write runs as it stands there.

A call in a message has a row in ``TYPED``, where the test fills its places in and runs it, or in
``ELSEWHERE``, which names the test that makes the mistake and runs what the error says.
"""

from __future__ import annotations

import ast
import re

import advice
import pytest

import mplang_core as mp

ROW = "a message of {} says {!r}: add a row to TYPED, or to ELSEWHERE the test that runs it"

# what is typed for each □, … and ... in the code, in their order
TYPED: dict[str, list[str]] = {
    "ibis.ifelse(condition, t.x, None)": [],
    "ibis.interval(hours=…)": ["9"],
    "jnp.float32(...)": ["1.1"],
    "mp.ClusterSpec.simple(2)": [],
    "mp.Simulator(cluster)": [],
    'mp.TableType((("age", "int64"), …))': ['("pay", "float64")'],
    "mp.compile(fn)": [],
    "mp.compile(fn, *args, cluster_spec=cluster)": [],
    "mp.compile(fn, *args, cluster_spec=…)": ["cluster"],
    "mp.device(...)": ["'P0'"],
    "mp.device(...)(mp.registry.get(□))(fn, x)": ["'P0'", "'jax.compile'"],
    "mp.device(□)": ["'P0'"],
    "mp.device(□)(compiler)(fn, x)": ["'P0'"],
    "mp.evaluate(host, fn, x)": [],
    "mp.fe_materialize(fn, x)": [],
    "mp.fetch(host, result)": [],
    "mp.frontend(□)": ["'jax'"],
    "mp.invoke(fn, x)": [],
    "mp.kernel(□)": ["'demo.advice'"],
    "mp.pshfl_s(x, □, □)": ["[0, 1]", "[0, 0]"],
    "mp.public(...)": ["[1, 2]"],
    "mp.put(□, mp.reveal(x, to=□))": ["'SP0'", "'P1'"],
    "mp.put(□, x)": ["'P1'"],
    "mp.record(host)": [],
    "mp.registry.get(□)": ["'jax.compile'"],
    "mp.reveal(x)": [],
    "mp.reveal(x, to=□)": ["'P1'"],
    "mp.seal(x, range=…)": ["(0, 9)"],
    "mp.seal(x, to=□)": ["'SP0'"],
    "mp.while_loop(lambda x: mp.reveal(mp.device('SP0')(again)(x)), mp.device('SP0')(step), x)": [],
    "mp.with_ctx(host)": [],
    "mp.with_ctx(simulator)": [],
    "np.asarray(x)": [],
    "np.int64(...)": ["2**62"],
    "np.uint64([...])": ["2**63"],
    "np.unique(names, return_inverse=True)": [],
    "t.filter(ibis.row_number().over(group_by=□, order_by=…) == 0)": ["['x']", "'x'"],
    "t.x.notnull()": [],
    "x.astype('int64')": [],
    "x.filled(0)": [],
    "x.fillna(0)": [],
}
MISTAKES = "tests/semantics/test_mistakes.py::"
STORED = "plugins/mplang_data/tests/test_stored.py::"
REMEDIES = "plugins/mplang_spu/tests/test_remedies.py::"
FOURIER = REMEDIES + "test_a_fourier_transform_by_its_matrix_is_that_of_numpy"
FOLLOWED = "plugins/mplang_policy/tests/test_advice_followed.py::"
FOLLOWED += "test_a_refused_program_that_follows_the_advice_is_permitted"
FUNCTIONS = "plugins/mplang_he/tests/test_functions.py::"
IN_CALLS = "tests/semantics/test_mistakes_in_jax.py::test_a_device_that_is_no_name"
IN_JAX: tuple[str, ...] = (
    "jax.lax.fori_loop(0, n, lambda i, x: x + i, x)",
    "jax.random.normal(jax.random.key(0), (3,))",
    "jax.vmap(fn)(x)",
    "jnp.asarray([1, 2, 3])",
    "jnp.concatenate([x, y])",
    "jnp.exp(x)",
    "jnp.isnan(x)",
    "jnp.maximum(a, b)",
    "jnp.minimum(a, b)",
    "jnp.nan_to_num(x)",
    "jnp.roll(x, 1)",
    "jnp.sort(x)",
    "jnp.stack([x, y])",
    "jnp.where(jnp.arange(x.size) < n, x, 0)",
    "jnp.where(x > 0, x, 0)",
    "x.astype(int)",
    "x.astype(jnp.float32)",
)
IN_TABLES: tuple[str, ...] = (
    "t.a.cases((1, 'one'), else_='other')",
    "t.a.cast('float64')",
    "t.a.cast('string')",
    "t.a.first()",
    "t.a.isin(['x', 'y'])",
    "t.a.max()",
    "t.a.mean()",
    "t.a.sum()",
    "t.a.upper()",
    "t.count()",
    "t.distinct()",
    "t.filter(...)",
    "t.filter(t.a > 1)",
    "t.group_by('a')",
    "t.join(u, 'key')",
    "t.join(u, t.a == u.b)",
    "t.limit(5)",
    "t.mutate(...)",
    "t.mutate(twice=t.a * 2)",
    "t.order_by('a')",
    "t.pivot_longer(...)",
    "t.pivot_wider(names_from='a', values_from='b', names=['x', 'y'])",
    "t.schema()",
    "t.select('a')",
    "t.select(...)",
    "t.union(u)",
)
ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(
        IN_JAX, "tests/semantics/test_mistakes_in_jax.py::test_a_mistake_and_its_remedy"
    ),
    **dict.fromkeys(
        IN_TABLES,
        "tests/semantics/test_mistakes_with_tables.py::test_a_mistake_with_a_table_and_its_remedy",
    ),
    "mp.device('P0')(fn)(x)": IN_CALLS,
    "mp.put('P0', x)": IN_CALLS,
    "mp.device(□)(function)(x)": FUNCTIONS + "test_what_is_sealed_for_no_function_is_refused",
    "mp.put(…, x, range=(low, high))": FUNCTIONS + "test_floats_without_a_range_are_refused",
    "mp.dataset(□, □, □)": FOLLOWED,
    "mp.dataset(…, match=[□])": "plugins/mplang_match/tests/test_rules_of_matches.py::"
    "test_a_column_to_match_on_is_named_as_the_error_says",
    "mp.guard.aggregate(mp.dataset(□, □, □), □)": FOLLOWED,
    "jax.random.key(seed, impl='threefry2x32')": REMEDIES
    + "test_a_key_of_threefry_draws_as_it_does_elsewhere",
    "jnp.arange(n)": FOURIER,
    "jnp.cos(2 * jnp.pi / n * jnp.outer(i, i))": FOURIER,
    "jnp.sum({0})": MISTAKES + "test_a_function_of_jax_on_a_value",
    'mp.analysis.costs(program, link="lan")': "plugins/mplang_spu/tests/test_costs.py::"
    "test_lines_seconds_and_links_are_told",
    "mp.analysis.costs(…)": "plugins/mplang_testing/tests/test_planted_changes.py::"
    "test_messages_that_are_not_counted_are_listed",
    "mplang_core.ext.check_fetchable(value)": "examples/mplang_grpc/tests/test_planted_holes.py::"
    "test_a_worker_that_leaves_something_out_is_found",
    "mp.catalogue(…)": "plugins/mplang_data/tests/test_datasets.py::"
    "test_a_program_is_compiled_by_a_catalogue_file",
    "mp.device('P0')(lambda p: p.mean())(padded)": "plugins/mplang_tables/tests/test_tensors.py::"
    "test_sums_of_integers_do_not_wrap",
    "mp.device(...)(mplang_tables.to_tensor)(t, rows=...)": MISTAKES
    + "test_a_table_in_a_function_of_jnp",
    "mp.device(□)(□)(□)": MISTAKES + "test_a_method_of_arrays_is_written_at_the_party",
    "mp.guard.aggregate(..., max_share=0.5)": "plugins/mplang_guard/tests/test_dominance.py::"
    "test_a_sum_that_is_one_persons_is_not_told",
    "mp.invoke(□, □)": MISTAKES + "test_a_method_of_arrays_is_written_at_the_party",
    "mp.load(□, □)": STORED + "test_a_model_in_shares_outlives_its_session",
    'mp.put("P0", frame.collect())': "tests/language/test_whole_literals.py::"
    "test_the_remedy_that_the_error_names_runs",
    'mp.put("P0", pyarrow.table({"name": ["a", "b"]}))': MISTAKES
    + "test_strings_are_columns_of_tables",
    "mp.remove(□, □)": STORED + "test_values_are_replaced_and_removed",
    "mp.evaluate(host, compiled, x)": MISTAKES + "test_a_compiled_function_is_called",
    "mp.introspect.list_ops()": "plugins/mplang_cli/tests/test_introspection.py::"
    "test_the_answers_are_plain_data_and_complete",
    "mp.store(x, 'name')": STORED + "test_values_are_replaced_and_removed",
    "mp.store(□)": STORED + "test_values_are_replaced_and_removed",
    "mp.dataset(…)": "plugins/mplang_ibis/tests/test_sql_text.py::test_a_select_over_a_data_set",
    't.alias("people")': "plugins/mplang_ibis/tests/test_compile.py::"
    "test_sql_text_within_a_function",
    "t.agg(x=t.x.mean())": MISTAKES + "test_a_table_in_a_function_of_jnp",
}
# words that follow "mplang" in a sentence
PROSE = {"and", "asks", "assumes", "brings", "is", "lists", "looks", "makes", "or", "takes"}
PROSE |= {"runs", "test", "that", "without", "writes"}


def test_each_call_in_a_message_has_a_row():
    calls = {code: file for file, text in advice.messages() for code in advice.calls_in(text)}
    missing = [ROW.format(file, code) for code, file in calls.items() if code not in known()]
    assert not missing, "\n".join(missing)
    assert not known() - calls.keys(), "rows of what no message says any more"


def known():
    """Return the calls that have a row."""
    return TYPED.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("test", sorted(set(ELSEWHERE.values())))
def test_the_test_that_runs_it_is_there(test):
    file, name = test.split("::")
    tree = ast.parse((advice.ROOT / file).read_text(encoding="utf-8"))
    assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.fixture(scope="module")
def host():
    with mp.Simulator(mp.ClusterSpec.simple(3)) as host:
        yield host


def names_of(host, code):
    """Return what the sentence around the code takes for granted."""
    import ibis
    import jax.numpy as jnp
    import numpy as np

    t = ibis.table({"x": "float64"}, name="t")
    names = {"mp": mp, "np": np, "jnp": jnp, "ibis": ibis, "t": t, "condition": t.x > 0}
    names |= {"host": host, "simulator": host, "cluster": host.cluster_spec, "args": (1.0,)}
    names |= {"fn": abs_of, "again": lambda x: x < 9, "step": lambda x: x + 1, "names": ["b", "a"]}
    names |= {"compiler": mp.registry.get("jax.compile")}
    if re.search(r"fetch|reveal|seal|put|while|device|invoke|evaluate|fe_mat|pshfl", code):
        names["x"] = names["result"] = mp.put("P0", np.float64(3))
    if "reveal" in code:
        names["x"] = mp.seal(names["x"])
    if "pshfl" in code or "fe_mat" in code:
        names["x"] = mp.constant(1.0)
    if code.startswith(("np.asarray", "x.astype")):
        names["x"] = np.float64([1, 2])
    if "filled" in code:
        names["x"] = np.ma.array([1.0, 2.0], mask=[True, False])
    if "fillna" in code:
        names["x"] = pytest.importorskip("pandas").Series([1.0, None])
    return names


def abs_of(x):
    return x * x


@pytest.mark.needs("jax", "spu", "ibis", "tables")
@pytest.mark.parametrize("code", TYPED)
def test_what_a_message_says_runs(host, code):
    typed = iter(TYPED[code])
    written = re.sub(r"□|…|\.\.\.", lambda _: next(typed), code)
    assert next(typed, None) is None, "more is typed than the code has places"
    with mp.with_ctx(host):
        assert eval(written, names_of(host, code)) is not None


@pytest.mark.needs("cli", "http", "policy", "data")
def test_commands_in_messages_are_there():
    import click
    import typer.main
    from mplang_cli import cli

    commands = typer.main.get_command(cli.app)
    ctx = click.Context(commands)  # type: ignore[arg-type]
    there = set(commands.list_commands(ctx))
    unknown = []
    for file, text in advice.messages():
        for first, second in advice.commands_in(text):
            group = commands.get_command(ctx, first) if first in there else None
            inner = {"", *PROSE, *getattr(group, "commands", {second})}
            if (first not in there and first not in PROSE) or second not in inner:
                unknown.append(f"a message of {file} says `mplang {first} {second}`")
    assert not unknown, "no such commands; if it is prose, add its word to PROSE:\n" + "\n".join(
        unknown
    )
