"""``field: auto``: programs of integers that FM64 holds run in it, all others in FM128."""

from __future__ import annotations

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_spu import engine_pool, exact_integers
from mplang_spu.share_type import shares_in
from mplang_testing.waiting import DEADLINE
from spu_links import cluster

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import ConfigError, PartyError, VerifyError

AUTO, WIDE = (cluster(3, protocol="ABY3", field=field) for field in ("auto", "FM128"))
X, Y = np.int32([3, -1, 4, 2**31 - 1]), np.int32([2, 7, 1, -(2**31)])


def of(fn, **how):
    """Return a program that runs a function on sealed arguments."""

    def program(*args):
        return mp.reveal(mp.device("SP0")(fn)(*(mp.seal(x, **how) for x in args)), to="P0")

    return program


def typed(*dtypes, shape=(4,)):
    return [mp.MPType(mp.TensorType(each, shape), mp.Mask.of(0)) for each in dtypes]


def compiled(fn, *dtypes, spec=AUTO, **how):
    return mp.compile(of(fn, **how), *typed(*dtypes), cluster_spec=spec).program


def field_of(program):
    (like,) = shares_in(program.graph)
    return like.field


def why(program):
    return [(row.line, row.why) for row in analysis.analyze("fields", program).rows]


# -- what is chosen


@pytest.mark.parametrize(
    ("fn", "dtypes", "how"),
    [
        (lambda x, y: x > y, ["i32", "i32"], {}),
        (lambda x, y: x * y + 1 > y, ["i32", "i32"], {}),  # wraps around
        (lambda x: x.astype("int64").sum(), ["i32"], {}),
        (lambda x: (jnp.argmax(x), x.max(), jnp.sort(x), jnp.cumsum(x)), ["u16"], {}),
        (lambda x: ~x, ["bool"], {}),
        (lambda x: x.max() - x.min(), ["i64"], {"range": (-(10**9), 10**9)}),
        (lambda x: x * x * x, ["i64"], {"range": (0, 2**40)}),  # wraps around as in NumPy
        (lambda x: x > 3, ["i64"], {"range": (-(2**62), 2**62 - 1)}),
        (lambda x: jnp.argmax(x), ["u64"], {"range": (0, 2**61)}),
        (lambda x: jax.lax.fori_loop(0, 9, lambda i, s: s + x, x), ["i64"], {"range": (0, 2**50)}),
    ],
)
def test_integers_are_of_fm64(fn, dtypes, how):
    program = compiled(fn, *dtypes, **how)
    assert field_of(program) == "FM64"
    assert why(program) == [("", "integers that FM64 is certain to get right")]


@pytest.mark.parametrize(
    ("fn", "dtype", "how", "reason"),
    [
        (lambda x: x > 0, "f32", {}, r"what is shared has fractions, of which FM64 keeps 18 bits"),
        (lambda x: x.mean(), "i32", {}, r"convert has fractions"),
        (lambda x: x * 0.5, "i32", {}, r"convert has fractions"),
        (lambda x: x // 3, "i32", {}, r"divide is not known to be exact in FM64"),
        (lambda x: x > 3, "i64", {}, r"what is shared may be any of 64 bits.*range="),
        (lambda x: x > 3, "i64", {"range": (0, 2**62)}, r"what is shared may be as large as 4.6e"),
        (lambda x: x * x > 3, "i64", {"range": (0, 2**31)}, r"what compare takes may be as large"),
        (
            lambda x: jnp.maximum(x, 2**62),
            "i64",
            {"range": (0, 9)},
            r"what maximum takes may be as large as 4.6e\+18",
        ),
        (lambda x: x.astype("uint64") // 1 > 3, "i64", {"range": (-1, 1)}, r"divide is not known"),
        (lambda x: x.astype("uint64") > 3, "i64", {"range": (-1, 1)}, r"what compare takes may be"),
    ],
)
def test_all_else_is_of_fm128_and_its_line_is_told(fn, dtype, how, reason):
    program = compiled(fn, dtype, **how)
    assert field_of(program) == "FM128"
    ((line, text), *_) = why(program)
    assert line.startswith("test_field_choice.py:")
    assert re.match(reason, text), text
    assert compiled(fn, dtype, spec=WIDE, **how).digest == program.digest


def test_the_line_is_that_of_the_op_in_its_function():
    def f(x):
        y = x + 1
        return y * 0.5  # this one

    ((line, _),) = why(compiled(f, "i32"))
    assert line == f"test_field_choice.py:{f.__code__.co_firstlineno + 2}"


def test_starts_of_maxima_are_no_numbers_of_the_data():
    """XLA begins at -2^63, which the lowering clamps; not where it could be a result."""
    how, least = {"range": (-5, 5)}, np.int64(-(2**63))

    def windows(padding):
        return lambda x: jax.lax.reduce_window(x, least, jax.lax.max, (2,), (1,), padding)

    assert field_of(compiled(windows("SAME"), "i64", **how)) == "FM64"
    assert field_of(compiled(windows([(2, 2)]), "i64", **how)) == "FM128"
    empty = lambda x: jnp.max(x[:0], initial=np.iinfo(np.int64).min)  # noqa: E731
    assert field_of(compiled(empty, "i64", **how)) == "FM128"


def test_a_program_is_the_one_of_a_device_with_that_field():
    narrow = cluster(3, protocol="ABY3", field="FM64")
    fn = lambda x: jnp.sort(x)  # noqa: E731
    assert compiled(fn, "i32").digest == compiled(fn, "i32", spec=narrow).digest
    assert why(compiled(fn, "i32", spec=WIDE)) == [
        ("", "integers that FM64 is certain to get right; field: auto would take it")
    ]
    told = why(compiled(jnp.mean, "i32", spec=narrow))
    assert told[0] == ("", "so the device says")
    assert "fractions" in told[1][1]


def test_public_operands_count():
    def public(kind):
        y = mp.public(np.ones(4, kind))
        fn = lambda x, y: mp.reveal(mp.device("SP0")(lambda x, y: x > y)(mp.seal(x), y), to="P0")  # noqa: E731
        return field_of(mp.compile(fn, *typed("i32"), y, cluster_spec=AUTO).program)

    assert public("int32") == "FM64"
    assert public("int64") == "FM128"


def test_one_op_decides_for_the_whole_program():
    def program(x):
        sealed = mp.seal(x)
        more = mp.device("SP0")(lambda x: x > 3)(sealed)
        half = mp.device("SP0")(lambda x: x * 0.5)(sealed)
        return mp.reveal((more, half), to="P0")

    assert field_of(mp.compile(program, *typed("i32"), cluster_spec=AUTO).program) == "FM128"


# -- parts of programs


def test_loops_branches_and_calls_are_rewritten():
    step = mp.builtin_function(lambda x: mp.device("SP0")(lambda x: x + x)(x))

    def program(x):
        def again(x):
            return mp.reveal(mp.device("SP0")(lambda x: x.max() < 50)(x))

        def clip(x):
            return mp.device("SP0")(lambda x: jnp.minimum(x, 60))(x)

        x = mp.while_loop(again, step, mp.seal(x))
        return mp.reveal(mp.uniform_cond(again(x), lambda x: x, clip, x), to="P0")

    with mp.Simulator(AUTO, timeout=DEADLINE) as sim:
        with mp.with_ctx(sim):
            x = mp.put("P0", np.int32([1, 3, 7]))
        made = mp.compile(program, cluster_spec=AUTO)
        for mode in ("standard", "launch"):
            found = mp.fetch(sim, mp.evaluate(sim, made, x, mode=mode))
            np.testing.assert_array_equal(found, [8, 24, 56])
        assert field_of(made.program) == "FM64"


def test_another_spu_of_the_same_members_keeps_its_field():
    spu = {"kind": "SPU", "members": [0, 1, 2]}
    ppu = {"kind": "PPU", "members": [0]}
    devices = {
        "P0": ppu,
        "SP0": {**spu, "config": {"field": "auto"}},
        "SP1": {**spu, "config": {"field": "FM128"}},
    }
    spec = mp.ClusterSpec([{}] * 3, devices)

    def program(x):
        y = mp.device("SP0")(lambda x: x > 3)(mp.seal(x, to="SP0"))
        z = mp.device("SP1")(lambda x: x > 3)(mp.seal(x, to="SP1"))
        return mp.reveal((y, z), to="P0")

    assert field_of(mp.compile(program, *typed("i32"), cluster_spec=spec).program) == "FM128"


# -- shares of several programs


def test_shares_that_stay_are_of_fm128_and_so_is_who_uses_them():
    with mp.Simulator(AUTO, timeout=DEADLINE) as sim:
        with mp.with_ctx(sim):
            x = mp.put("P0", X)
        keep = mp.compile(lambda x: mp.keep(mp.seal(x)), cluster_spec=AUTO)
        kept = mp.evaluate(sim, keep, x)
        assert field_of(keep.program) == "FM128"
        assert "shares leave the program" in why(keep.program)[0][1]

        def use(kept, x):
            more = mp.device("SP0")(lambda a, b: a >= b)(kept, mp.seal(x))
            return mp.reveal(more, to="P0")

        using = mp.compile(use, cluster_spec=AUTO)
        assert mp.fetch(sim, mp.evaluate(sim, using, kept, x)).all()
        assert field_of(using.program) == "FM128"
        assert "shares come from elsewhere" in why(using.program)[0][1]


def test_eager_calls_are_of_fm128():
    with mp.Simulator(AUTO, timeout=DEADLINE) as sim, mp.with_ctx(sim):
        sealed = mp.seal(mp.put("P0", X))
        assert sealed.base_type.field == "FM128"
        more = mp.reveal(mp.device("SP0")(lambda x: x > 3)(sealed), to="P0")
        np.testing.assert_array_equal(mp.fetch(sim, more), X > 3)


# -- what runs


def both(x, y):
    return x > y, x + y, x.astype("int64") * y, jnp.sort(x), jnp.argmax(x)


@pytest.mark.parametrize("parties", [2, 3])
def test_results_are_the_same_in_the_simulator_and_at_workers(parties):
    with jax.enable_x64(True):
        wanted = [np.asarray(each) for each in jax.jit(both)(X, Y)]

    def check(host):
        with mp.with_ctx(host):
            x, y = mp.put("P0", X), mp.put("P1", Y)
        made = mp.compile(of(both), cluster_spec=host.cluster_spec)
        for mode in ("standard", "launch"):
            found = mp.fetch(host, mp.evaluate(host, made, x, y, mode=mode))
            for mine, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(mine, other)
        return made.program

    spec = cluster(parties, field="auto")
    with mp.Simulator(spec, timeout=DEADLINE) as sim:
        program = check(sim)
    assert field_of(program) == "FM64"
    with (
        LocalCluster(parties) as workers,
        mp.connect("http", mp.ClusterSpec(workers.spec.nodes, spec.devices)) as host,
    ):
        assert check(host).digest == program.digest


def test_numbers_at_the_limits_are_compared_right():
    x, y = np.int64([2**62 - 1, -(2**62), 0, -1]), np.int64([-(2**62), 2**62 - 1, -1, 0])
    fn = lambda x, y: (x > y, x == y, jnp.maximum(x, y), jnp.sort(x), x * y)  # noqa: E731
    with mp.Simulator(AUTO, timeout=DEADLINE) as sim:
        with mp.with_ctx(sim):
            a, b = mp.put("P0", x), mp.put("P1", y)
        made = mp.compile(of(fn, range=(-(2**62), 2**62 - 1)), cluster_spec=AUTO)
        found = mp.fetch(sim, mp.evaluate(sim, made, a, b))
        assert field_of(made.program) == "FM64"
    wanted = x > y, x == y, np.maximum(x, y), np.sort(x), x * y
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_an_artifact_has_the_field_and_its_device_leaves_it_open():
    made = mp.compile(of(lambda x: x > 3), *typed("i32"), cluster_spec=AUTO)
    artifact = mp.artifact.load(mp.artifact.pack(made))
    assert artifact.program.digest == made.program.digest
    assert field_of(artifact.program) == "FM64"
    (spu,) = (each for each in artifact.manifest.cluster.devices if each.kind == "SPU")
    assert '"field": "auto"' in spu.config
    with mp.Simulator(AUTO, timeout=DEADLINE) as sim:
        with mp.with_ctx(sim):
            x = mp.put("P0", X)
        np.testing.assert_array_equal(mp.fetch(sim, artifact.run(sim, x)), X > 3)


def test_members_that_disagree_are_refused(monkeypatch):
    acquire = engine_pool.acquire_engine

    def other(party, job):
        config = {**job.config, "field": "FM128", "fxp_fraction_bits": 40}
        return acquire(party, dataclasses.replace(job, config=config) if party.rank == 1 else job)

    monkeypatch.setattr(engine_pool, "acquire_engine", other)
    with mp.Simulator(AUTO, timeout=DEADLINE) as sim:
        with mp.with_ctx(sim):
            x = mp.put("P0", X)
        with pytest.raises(PartyError, match=r"(?s)do not fit together.*field +FM64 +FM128 +FM64"):
            mp.evaluate(sim, of(lambda x: x > 3), x)


def test_an_op_that_leaves_its_field_open_is_refused():
    program = compiled(lambda x: x > 3, "i32")
    (run,) = (op for op in program.graph.walk() if op.opcode == "spu.run_jax")
    run.attrs = {**run.attrs, "config": {**run.attrs["config"], "field": "auto"}}
    with pytest.raises(VerifyError, match=r"field 'field': an op has the field that was chosen"):
        mp.verify(program)


def test_a_rule_that_fails_proves_nothing(monkeypatch):
    def fails(code, inputs):
        raise ZeroDivisionError("a rule")

    monkeypatch.setattr(exact_integers, "bounds", fails)
    program = compiled(lambda x: x > 3, "i32")
    assert field_of(program) == "FM128"
    assert why(program) == [("", "ranges cannot be followed: ZeroDivisionError: a rule")]


def test_fraction_bits_are_those_of_fm128():
    spec = cluster(3, protocol="ABY3", field="auto", fxp_fraction_bits=50)
    (like,) = shares_in(compiled(lambda x: x * 0.5, "i32", spec=spec).graph)
    assert (like.field, like.fxp) == ("FM128", 50)
    (like,) = shares_in(compiled(lambda x: x > 3, "i32", spec=spec).graph)
    assert (like.field, like.fxp) == ("FM64", 18)
    with pytest.raises(ConfigError, match="fit in FM128"):
        cluster(3, protocol="ABY3", field="auto", fxp_fraction_bits=63).device("SP0")
