"""What a user types by mistake: an error of ours with the line, and a remedy that works."""

from __future__ import annotations

import copy
import pickle
import random
import re
import statistics
import traceback

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import MissingAttributeError, MPLangError, NoDataError, TraceError

pytestmark = pytest.mark.needs("jax")

X = np.float32([3, 1, 2])
REMEDY = re.compile(r"write (mp\.(?:device|invoke)\(.*\))")


def at_p0():
    return mp.put("P0", X)


def remedy_of(error, **names):
    """Return a function that does what the message of an error says, typed in."""
    found = REMEDY.search(str(error))
    assert found, str(error)
    return lambda value: eval(found[1], {"mp": mp, "np": np, "x": value, "t": value, **names})


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (lambda x: x.sum(), 6),
        (lambda x: x.mean(), 2),
        (lambda x: x.max(), 3),
        (lambda x: x.T, X),
        (lambda x: round(x), X),
    ],
)
def test_a_method_of_arrays_is_written_at_the_party(simulate, mistake, expected):
    sim = simulate(2)
    for value in (at_p0, lambda: mp.constant(X)):
        with pytest.raises(TraceError, match=r"test_mistakes\.py:\d+") as error:
            mp.evaluate(sim, lambda value=value: mistake(value()))
        result = mp.evaluate(sim, lambda value=value, e=error: remedy_of(e.value)(value()))
        found = mp.fetch(sim, result)
        np.testing.assert_allclose(found if result.device else found[0], expected)


def test_a_method_that_takes_arguments_is_named():
    with mp.with_ctx(mp.TraceContext(mp.ClusterSpec.simple(1))):
        with pytest.raises(MissingAttributeError, match=r"lambda x: x\.astype\(\.\.\.\)") as error:
            at_p0().astype("f8")
        assert isinstance(error.value, AttributeError)
        assert not hasattr(at_p0(), "reshape")


def test_a_misspelt_name_is_told():
    with mp.with_ctx(mp.TraceContext(mp.ClusterSpec.simple(1))):
        with pytest.raises(MissingAttributeError, match="has no 'shap'; did you mean 'shape'"):
            getattr(at_p0(), "shap")  # noqa: B009
        with pytest.raises(AttributeError, match="'TraceVar' object has no attribute '_private'"):
            getattr(at_p0(), "_private")  # noqa: B009


def test_a_package_that_is_there_is_to_be_imported():
    with pytest.raises(AttributeError, match="comes with another package; try: import mplang_jax"):
        getattr(mp, "jax")  # noqa: B009


@pytest.mark.parametrize("function", ["sum", "sqrt", "cumsum", "concatenate", "where", "grad"])
def test_a_function_of_jax_on_a_value(simulate, function):
    import jax
    import jax.numpy as jnp

    sim = simulate(2)
    call = {
        "concatenate": lambda x: jnp.concatenate([x, x]),
        "where": lambda x: jnp.where(True, x, 0),
        "grad": lambda x: jax.grad(lambda w: w)(x),
    }.get(function, lambda x: getattr(jnp, function)(x))
    with pytest.raises(NoDataError, match=r"test_mistakes\.py:\d+: JAX has no data of") as error:
        mp.evaluate(sim, lambda: call(at_p0()))
    result = mp.evaluate(sim, lambda: remedy_of(error.value, jnp=jnp)(at_p0()))
    assert mp.fetch(sim, result) == 6
    with mp.with_ctx(sim), pytest.raises(NoDataError):
        call(at_p0())


def test_arrays_of_jax_and_values_are_added(simulate):
    import jax.numpy as jnp

    sim = simulate(2)
    for fn in (lambda x: jnp.ones(3, jnp.float32) + x, lambda x: x * jnp.float32(2) - x):
        result = mp.evaluate(sim, lambda fn=fn: fn(at_p0()))
        np.testing.assert_allclose(mp.fetch(sim, result), fn(X))


@pytest.mark.parametrize(
    ("mistake", "remedy"),
    [
        (lambda x: f"{x:.2f}", r"text in the format '\.2f' .*mp\.fetch\(host, result\)"),
        (lambda x: x.item(), r"mp\.fetch\(host, result\)"),
        (lambda x: float(x), r"mp\.fetch\(host, result\)"),
        (lambda x: x.__setitem__(0, 1), r"values do not change: .*x\.at\[index\]\.set\(value\)"),
        (lambda x: 3 in x, r"\(x == item\)\.any\(\)"),
    ],
)
def test_what_needs_the_data(mistake, remedy):
    told = pytest.raises(TraceError, match=r"test_mistakes\.py:\d+: .*" + remedy)
    with mp.with_ctx(mp.TraceContext(mp.ClusterSpec.simple(1))), told:
        mistake(at_p0())


def test_the_remedies_of_elements(simulate):
    sim = simulate(1)
    changed = lambda x: mp.device("P0")(lambda x: x.at[0].set(9))(x)  # noqa: E731
    found = lambda x: mp.device("P0")(lambda x: (x == 3).any())(x)  # noqa: E731
    np.testing.assert_allclose(mp.fetch(sim, mp.evaluate(sim, lambda: changed(at_p0()))), [9, 1, 2])
    assert mp.fetch(sim, mp.evaluate(sim, lambda: found(at_p0())))


def test_a_value_prints():
    with mp.with_ctx(mp.TraceContext(mp.ClusterSpec.simple(1))):
        assert f"{at_p0()}" == str(at_p0()) == "f32[3] at P0"
        assert repr(at_p0()) == "<f32[3] at P0>"


@pytest.mark.once
@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "reason"),
    [
        (
            lambda x, y: x,
            (1,),
            {},
            r"<lambda>\(x, y\) is called .* missing a required argument: 'y'",
        ),
        (lambda x: x, (1, 2), {}, "too many positional arguments"),
        (lambda x: x, (1,), {"y": 2}, "got an unexpected keyword argument 'y'"),
        (lambda *, y: y, (1,), {}, "too many positional arguments"),
    ],
)
def test_wrong_arguments(simulate, fn, args, kwargs, reason):
    sim, line = simulate(1), r"test_mistakes\.py:\d+: "
    for call in (
        lambda: mp.evaluate(sim, fn, *args, **kwargs),
        lambda: mp.compile(fn, *args, cluster_spec=mp.ClusterSpec.simple(1), **kwargs),
        lambda: mp.evaluate(sim, lambda: mp.builtin_function(fn)(*args, **kwargs)),
    ):
        with pytest.raises(TraceError, match=line + ".*" + reason):
            call()


def test_a_value_is_copied_as_itself_and_not_pickled(simulate):
    sim = simulate(1)
    value = mp.evaluate(sim, at_p0)
    for copied in (copy.copy(value), copy.deepcopy({"x": value})["x"]):
        assert copied is value
    with pytest.raises(TraceError, match=r"test_mistakes\.py:\d+: a pickle of .*mp\.store\(x") as e:
        pickle.dumps(value)
    assert e.value.code == "T002"


@pytest.mark.parametrize("function", ["Series", "DataFrame"])
def test_a_value_in_pandas_is_told_at_the_users_line(simulate, function):
    pd = pytest.importorskip("pandas")
    value = mp.evaluate(simulate(1), at_p0)
    with pytest.raises(TraceError, match=r"test_mistakes\.py:\d+: an array of f32\[3\] at P0"):
        getattr(pd, function)({"a": value} if function == "DataFrame" else value)


def test_a_value_in_the_standard_library_is_told_at_the_users_line(simulate):
    value = mp.evaluate(simulate(1), at_p0)
    for mistake in (lambda: statistics.fmean(value), lambda: random.shuffle(value)):
        with pytest.raises(MPLangError, match=r"test_mistakes\.py:\d+: "):
            mistake()


def test_a_program_that_was_called_instead_of_handed_over(simulate):
    sim = simulate(1)
    line = r"test_mistakes\.py:\d+: expected a function, before its arguments, got <f32\[3\] at P0"
    double = lambda x: mp.device("P0")(lambda x: x * 2)(x)  # noqa: E731
    value = mp.evaluate(sim, at_p0)
    with pytest.raises(TraceError, match=line):
        mp.evaluate(sim, double(value))
    with pytest.raises(TraceError, match=line):
        mp.compile(double(value), cluster_spec=sim.cluster_spec)
    with pytest.raises(TraceError, match=r"(?m)before its arguments, got a dict$") as refused:
        mp.evaluate(sim, {"salary": [1234]})
    assert "1234" not in str(refused.value)  # what is there may be data
    np.testing.assert_allclose(mp.fetch(sim, mp.evaluate(sim, double, value)), X * 2)


def test_a_compiled_function_is_called(simulate):
    sim = simulate(1)
    compiled = mp.compile(lambda x: mp.put("P0", x), X, cluster_spec=sim.cluster_spec)
    with pytest.raises(TraceError, match=r"test_mistakes\.py:\d+: .*mp\.evaluate\(host, comp"):
        compiled(X)
    np.testing.assert_allclose(mp.fetch(sim, mp.evaluate(sim, compiled, X)), X)


@pytest.mark.once
def test_a_file_that_a_function_reads_is_read_for_each_program(simulate, tmp_path):
    """Code was compiled once, with what the file had then, and ran for all later programs."""
    file, sim = str(tmp_path / "weights.npy"), simulate(1)

    def weighted(x):
        return mp.device("P0")(lambda x: x * np.load(file))(x)

    for factor in (2.0, 5.0):
        np.save(file, factor)
        found = mp.fetch(sim, mp.evaluate(sim, lambda: weighted(at_p0())))
        np.testing.assert_allclose(found, X * factor)


def test_a_mode_that_there_is_not(simulate):
    with pytest.raises(MPLangError, match=r"test_mistakes\.py:\d+: the mode is one of .*'lanch'"):
        mp.evaluate(simulate(1), at_p0, mode="lanch")


def test_a_method_on_a_device():
    class Model:
        factor = 2

        @mp.device("P0")
        def scaled(self, x):
            return x * self.factor

    with mp.Simulator(mp.ClusterSpec.simple(1)) as sim, mp.with_ctx(sim):
        np.testing.assert_allclose(mp.fetch(sim, Model().scaled(at_p0())), X * 2)
    assert repr(mp.device("P0")) == "<P0; call it with a function>"
    assert repr(Model.scaled) == "<scaled on P0>"


@pytest.mark.parametrize("given", ["abc", ["a", "b"], np.datetime64("2020-01-01")])
def test_strings_are_columns_of_tables(simulate, given):
    sim = simulate(1)
    with pytest.raises(TraceError, match=r"test_mistakes\.py:\d+: .*mp\.put\(\"P0\", pyarrow") as e:
        mp.evaluate(sim, lambda: mp.put("P0", given))
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("mplang_tables")
    remedy = re.search(r"mp\.put\(\"P0\", pyarrow.*\)\)", str(e.value))
    with mp.with_ctx(sim):
        value = eval(remedy[0], {"mp": mp, "pyarrow": pyarrow})
        assert mp.fetch(sim, value).column("name").to_pylist() == ["a", "b"]


@pytest.mark.needs("ibis", "tables")
def test_a_method_of_tables_is_written_at_the_party(simulate):
    import pyarrow as pa

    sim = simulate(1)
    with mp.with_ctx(sim):
        table = mp.put("P0", pa.table({"a": [1, 2]}))
        with pytest.raises(MissingAttributeError, match=r"lambda t: t\.select\('a'\)") as error:
            getattr(table, "a")  # noqa: B009
        assert mp.fetch(sim, remedy_of(error.value)(table)).column("a").to_pylist() == [1, 2]
        with pytest.raises(MissingAttributeError, match=r"lambda t: t\.filter\(\.\.\.\)"):
            table.filter(1)
        with pytest.raises(MissingAttributeError, match=r"\.base_type\.columns"):
            table.columns  # noqa: B018
        with pytest.raises(TraceError, match=r"lambda t: t\.mutate\(name=\.\.\.\)"):
            table["twice"] = 1
        assert dict(table.base_type.columns) == {"a": "int64"}
        with pytest.raises(TraceError, match="the number of rows") as counted:
            len(table)
        assert mp.fetch(sim, remedy_of(counted.value)(table)).num_rows == 1


@pytest.mark.needs("ibis", "tables")
@pytest.mark.parametrize("wrap", [lambda fn: fn, lambda fn: lambda t: fn(t)], ids=["itself", "own"])
def test_a_table_in_a_function_of_jnp(simulate, wrap):
    import jax.numpy as jnp
    import mplang_tables
    import pyarrow as pa

    sim, line = simulate(1), r"test_mistakes\.py:\d+: .*"
    with mp.with_ctx(sim):
        table = mp.put("P0", pa.table({"x": [1.0, 2.0]}))
        with pytest.raises(TraceError, match=line + "takes arrays, and not tables") as error:
            mp.device("P0")(wrap(jnp.mean))(table)
        in_ibis = re.search(r"t\.agg\(.*?\)\)", str(error.value))[0]
        found = mp.device("P0")(eval(f"lambda t: {in_ibis}"))(table)
        assert mp.fetch(sim, found).column("x").to_pylist() == [1.5]
        to_tensor = re.search(r"mp\.device\(\.\.\.\)(\(.*\))$", str(error.value))[1]
        names = {"mplang_tables": mplang_tables, "t": table, "at_p0": mp.device("P0")}
        array = eval("at_p0" + to_tensor.replace("rows=...", "rows=2"), names)
        assert mp.fetch(sim, mp.device("P0")(jnp.mean)(array)) == 1.5


@pytest.mark.parametrize(
    ("mistake", "got"),
    [
        (lambda host, x: mp.fetch(x), "InterpVar, nothing"),
        (lambda host, x: mp.fetch(host), "Simulator, nothing"),
        (lambda host, x: mp.fetch(x, host), "InterpVar, Simulator"),
    ],
)
def test_fetch_without_a_host(simulate, mistake, got):
    sim = simulate(1)
    value = mp.evaluate(sim, at_p0)
    line = r"test_mistakes\.py:\d+: .*"
    with pytest.raises(TraceError, match=f"{line}; got {got}") as error:
        mistake(sim, value)
    remedy = re.search(r"mp\.fetch\(.*?\)", str(error.value))[0]
    np.testing.assert_allclose(eval(remedy, {"mp": mp, "host": sim, "result": value}), X)


@pytest.mark.needs("tables")
def test_a_series_of_strings_is_a_column_of_a_table(simulate):
    import pyarrow

    pd = pytest.importorskip("pandas")
    sim = simulate(1)
    with mp.with_ctx(sim):
        with pytest.raises(TraceError, match=r"test_mistakes\.py:\d+: .*Series is no") as error:
            mp.put("P0", pd.Series(["a", "b"]))
        remedy = re.search(r"mp\.put\(\"P0\", pyarrow.*\)\)", str(error.value))[0]
        value = eval(remedy, {"mp": mp, "pyarrow": pyarrow})
        assert mp.fetch(sim, value).column("name").to_pylist() == ["a", "b"]


@pytest.mark.once  # a function that was traced before leaks nothing
def test_a_leaked_tracer(simulate):
    sim, leaked = simulate(1), []

    def leaks(x):
        leaked.append(x)
        return x

    def returns(x):
        return x

    with mp.with_ctx(sim):
        x = at_p0()
        mp.device("P0")(leaks)(x)
        told = pytest.raises(TraceError, match=r"test_mistakes\.py:\d+: .*return it from that")
        with told:
            mp.device("P0")(lambda y: y + leaked[0])(x)
        with pytest.raises(TraceError, match=r"test_mistakes\.py:\d+: .*return it from that"):
            mp.put("P0", leaked[0])
        given = mp.device("P0")(returns)(x)  # as it says: returned, and passed on
        found = mp.device("P0")(lambda y, given: y + given)(x, given)
        np.testing.assert_allclose(mp.fetch(sim, found), X + X)


@pytest.mark.needs("tables")
@pytest.mark.parametrize("given", [[1.5, None, 3.0], [[1, None], [2, 3]]])
def test_a_list_of_numbers_with_a_gap(simulate, given):
    """It was a nest of numbers, one value each."""
    pyarrow, sim = pytest.importorskip("pyarrow"), simulate(1)
    told = r"test_mistakes\.py:\d+: .*None is a gap of one.*mp\.put\(\"P0\", pyarrow\.table"
    for mistake in (
        lambda: mp.put("P0", given),
        lambda: mp.constant(given),
        lambda: mp.device("P0")(lambda x: x)(given),
    ):
        with pytest.raises(TraceError, match=told):
            mp.evaluate(sim, mistake)
    with mp.with_ctx(sim):
        column = [each for row in given for each in (row if isinstance(row, list) else [row])]
        table = mp.fetch(sim, mp.put("P0", pyarrow.table({"x": column})))
        assert table.column("x").to_pylist() == column
        assert mp.put("P0", [None, None]) == [None, None]


@pytest.mark.parametrize("given", [[2**63, -1], [[2**63], [1]]])
def test_integers_that_no_type_holds(simulate, given):
    sim, line = simulate(1), r"test_mistakes\.py:\d+: .*"
    for mistake in (
        lambda: mp.constant(given),
        lambda: mp.put("P0", given),
        lambda: at_p0() + given,
        lambda: mp.device("P0")(lambda x: x)(given),
    ):
        with pytest.raises(TraceError, match=line + "no type holds all of these") as error:
            mp.evaluate(sim, mistake)
        assert "write floats, or np.uint64([...])" in str(error.value)
    floats = np.float64(given)
    np.testing.assert_equal(mp.fetch(sim, mp.evaluate(sim, lambda: mp.put("P0", floats))), floats)
    unsigned = np.uint64([2**63, 1])
    assert mp.fetch(sim, mp.evaluate(sim, lambda: mp.put("P0", unsigned))).tolist() == [2**63, 1]


def test_peval_of_a_function(simulate):
    sim = simulate(1)
    with pytest.raises(
        TraceError, match=r"test_mistakes\.py:\d+: peval takes .*mp\.invoke\(fn, x\)"
    ):
        mp.evaluate(sim, lambda: mp.peval(lambda x: x, [at_p0()]))


@pytest.mark.needs("spu", "tables")
def test_a_table_on_an_spu(simulate):
    import pyarrow as pa
    from mplang_tables import to_tensor

    sim = simulate(2)
    with mp.with_ctx(sim):
        table = mp.put("P0", pa.table({"a": [1, 2]}))
        with pytest.raises(TraceError, match=r"mp\.device\(\.\.\.\)\(mplang_tables\.to_tensor\)"):
            mp.seal(table)
        sealed = mp.seal(mp.device("P0")(to_tensor)(table, rows=2))
        np.testing.assert_allclose(mp.fetch(sim, mp.reveal(sealed))[0], [[1], [2]])


@pytest.mark.needs("spu")
@pytest.mark.once  # told once per device
def test_four_parties_are_told_while_compiling():
    from mplang_core.errors import InsecureWarning

    def program(x):
        return mp.seal(mp.put("P0", x))

    bare = mp.ClusterSpec.simple(4)
    with pytest.warns(
        InsecureWarning, match=r"SEMI2K trusts its first party.*two.*or three"
    ) as told:
        mp.compile(program, 1.0, cluster_spec=bare)
    assert told[0].filename == __file__
    plain = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(4)}
    for config, members in (({"protocol": "SEMI2K"}, [0, 1, 2, 3]), ({}, [1, 2, 3])):
        spu = {"kind": "SPU", "members": members, "config": config}
        spec = mp.ClusterSpec([{}] * 4, {**plain, "SP0": spu})
        mp.compile(program, 1.0, cluster_spec=spec)
    assert len([each for each in told if each.category is InsecureWarning]) == 1


# -- tracebacks


def fails(x):
    return mp.device("P0")(bad)(mp.put("P0", x))


def bad(x):
    return x @ x[1:]


@pytest.mark.once
def test_a_traceback_has_the_users_lines_alone(simulate, monkeypatch):
    sim = simulate(1)

    def lines():
        with pytest.raises(MPLangError) as error:
            mp.evaluate(sim, fails, X)
        frames = traceback.extract_tb(error.value.__traceback__)
        return [frame.name for frame in frames], "".join(traceback.format_exception(error.value))

    names, text = lines()
    assert names == ["lines", "fails"]
    assert "MPLANG_TRACEBACK=full" in text
    assert "mplang_core/" not in text
    assert len(text.splitlines()) < 30
    monkeypatch.setenv("MPLANG_TRACEBACK", "full")
    names, text = lines()
    assert "trace_into" in names


@pytest.mark.parametrize(
    "slip",
    [
        lambda: mp.connect("simulater", mp.ClusterSpec.simple(1)),
        lambda: mp.connect("simulator", mp.ClusterSpec.simple(1), mdoe="launch"),
        lambda: mp.ClusterSpec([{"nmae": "alice"}]),
        lambda: mp.ClusterSpec.simple(0),
        lambda: mp.ClusterSpec.from_yaml("there-is-none.yaml"),
        lambda: mp.ClusterSpec.from_dict({"nodes": [{}], "devices": {"P0": {"kind": "PUP"}}}),
    ],
)
def test_a_slip_in_the_cluster_has_the_users_line_alone(slip):
    with pytest.raises(MPLangError) as error:
        slip()
    frames = traceback.extract_tb(error.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
    assert "mplang_core/" not in "".join(traceback.format_exception(error.value))


@pytest.mark.once
def test_an_error_of_the_user_keeps_its_line(simulate):
    def own(x):
        raise LookupError("mine")

    sim = simulate(1)
    with pytest.raises(LookupError, match="mine") as error:
        mp.evaluate(sim, own, 1)
    frames = [frame.name for frame in traceback.extract_tb(error.value.__traceback__)]
    assert frames == ["test_an_error_of_the_user_keeps_its_line", "own"]


def test_ctrl_c_shows_the_users_lines_alone(simulate, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    sim = simulate(1)
    monkeypatch.setattr(type(sim), "_collect", interrupted)
    monkeypatch.setitem(interrupted.__globals__, "__name__", "mplang_simulator.host")
    with pytest.raises(KeyboardInterrupt) as error:
        mp.evaluate(sim, lambda: mp.constant(1))
    shown = traceback.format_exception(error.value)
    assert "mplang_core/" not in "".join(shown)
    assert "MPLANG_TRACEBACK=full" in shown[-1]


def test_a_fault_of_ours_keeps_all_lines(simulate, monkeypatch):
    def faulty(*args):
        return {}["a fault of mplang"]

    faulty.__globals__["__name__"]  # of this file; the fault is in a function of the framework
    sim = simulate(1)
    monkeypatch.setattr(type(sim), "options", property(lambda self: self.no_such_thing))
    with pytest.raises(AttributeError) as error:
        mp.evaluate(sim, lambda: mp.constant(1))
    assert len(traceback.extract_tb(error.value.__traceback__)) >= 2
