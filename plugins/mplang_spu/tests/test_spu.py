"""SPU: results on shares equal NumPy's, and nothing is disclosed by accident."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_spu import ShareType, SpuConfig, make_shares, run_jax
from mplang_testing.waiting import DEADLINE, in_time

import mplang_core as mp
from mplang_core.errors import (
    AdmissionError,
    ConfigError,
    DisclosureError,
    FeCapabilityError,
    FeConfigError,
    ParseError,
    PartyError,
    TraceError,
)

FAST = {"protocol": "SEMI2K"}


def cluster(parties=2, members=None, **config):
    names = [f"n{i}" for i in range(parties)]
    devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(parties)}
    spu = {"kind": "SPU", "members": members or names, "config": config}
    return mp.ClusterSpec.from_dict(
        {"nodes": [{"name": n} for n in names], "devices": {**devices, "SP0": spu}}
    )


@pytest.fixture
def simulate():
    made = []

    def make(*args, timeout=DEADLINE, **config):
        made.append(mp.Simulator(cluster(*args, **config), timeout=timeout))
        return made[-1]

    yield make
    for sim in made:
        sim.close()


def secure(sim, fn, *args, mode="standard"):
    """Run a function on SPU, its arguments from the parties in turn; reveal the result to all."""
    n = sim.world_size

    def program():
        values = [mp.put(f"P{i % n}", arg) for i, arg in enumerate(args)]
        return mp.reveal(mp.device("SP0")(fn)(*values))

    results = mp.fetch(sim, mp.evaluate(sim, program, mode=mode))
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    return results[0]


def f32(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


# -- results, on each protocol

MODES = ("standard", "launch")


@pytest.mark.parametrize(
    ("parties", "protocol", "mode"),
    [
        *itertools.product((2, 3), ["SEMI2K"], MODES),
        *itertools.product([3], ["ABY3"], MODES),
        pytest.param(
            2,
            "CHEETAH",
            "standard",
            marks=pytest.mark.slow("CHEETAH sets up oblivious transfers: 9 s"),
        ),
        (2, "CHEETAH", "launch"),
    ],
)
def test_each_protocol_computes(simulate, parties, protocol, mode):
    sim = simulate(parties, protocol=protocol)
    x, y = f32(4, 3), f32(3)
    found = secure(sim, lambda x, y: jax.nn.sigmoid(x @ y) > 0.5, x, y, mode=mode)
    np.testing.assert_array_equal(found, x @ y > 0)
    found = secure(sim, lambda x, y: x @ y, x, y, mode=mode)
    np.testing.assert_allclose(found, x @ y, atol=1e-3)


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (lambda x, y: x + y, (np.array([1, -2, 3]), np.array([4, 5, -6]))),
        (lambda x, y: x * y - x, (np.int32([1, 2]), np.int32([3, 4]))),
        (lambda x, y: jnp.where(x > y, x, y), (f32(5), f32(5))),
        (lambda x: jnp.sort(x), (f32(7),)),
        (lambda x: jnp.argmax(x), (f32(7),)),
        (lambda x: x.mean(axis=0), (f32(3, 2),)),
        (lambda x: jnp.exp(x), (f32(3),)),
        (lambda x: jnp.sqrt(jnp.abs(x) + 1), (f32(3),)),
        (lambda x: ~x, (np.array([True, False]),)),
        (lambda x: x, (np.float32(2.5),)),
        (lambda x: x / 3, (np.array([1.5]),)),
        (lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * 2, x), (f32(2),)),
        (lambda x: {"a": x + 1, "b": (x, x * 2)}["b"][1], (f32(2),)),
    ],
)
def test_results_are_those_of_numpy(simulate, fn, args):
    with jax.enable_x64(any(a.dtype.itemsize == 8 for a in args)):
        expected = np.asarray(fn(*map(jnp.asarray, args)))
    found = secure(simulate(2, **FAST), fn, *args)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=2e-3, rtol=2e-3)


def test_public_values_numbers_and_closed_over_arrays_take_part(simulate):
    sim = simulate(2, **FAST)
    weights = f32(3)

    def program(public):
        x = mp.put("P0", f32(3) + 1)
        y = mp.device("SP0")(lambda x, p, by: (x + p) * by + weights)(x, public, 2.0)
        return mp.reveal(y, to="P1")

    found = mp.fetch(sim, mp.evaluate(sim, program, f32(3)))
    np.testing.assert_allclose(found, (2 * f32(3) + 1) * 2 + weights, atol=1e-3)


def test_operators_on_sealed_values(simulate):
    sim = simulate(2, **FAST)

    def program():
        x, y = mp.seal(np.float32([3, 4])), mp.put("P1", np.float32([1, 2]))
        return mp.reveal(-(x - y) * 2 + 1), mp.reveal(x[1] > y[0]), mp.reveal(x @ y)

    (a, b, c) = mp.fetch(sim, mp.evaluate(sim, program))
    np.testing.assert_allclose(a[0], [-3, -3], atol=1e-3)
    assert b[0]
    assert b[0].dtype == np.bool_
    np.testing.assert_allclose(c[0], 11, atol=1e-3)


def test_a_device_of_some_of_the_parties(simulate):
    sim = simulate(3, [2, 0], **FAST)

    def program():
        x = mp.put("P1", np.float32([1, 2]))  # a party that is not a member brings data …
        y = mp.device("SP0")(lambda x: x * 2)(x)
        return mp.reveal(y, to="P1")  # … and gets the result

    result = mp.evaluate(sim, program)
    np.testing.assert_allclose(mp.fetch(sim, result), [2, 4], atol=1e-3)


def test_two_devices_that_share_members(simulate):
    devices = {
        "A": {"kind": "SPU", "members": [0, 1], "config": FAST},
        "B": {"kind": "SPU", "members": [1, 2], "config": FAST},
    }
    with mp.Simulator(mp.ClusterSpec.from_dict({"nodes": [{}, {}, {}], "devices": devices})) as sim:

        def program():
            x, y = mp.seal(np.float32(3), "A"), mp.seal(np.float32(4), "B")
            for _ in range(3):
                x, y = mp.device("A")(lambda v: v + 1)(x), mp.device("B")(lambda v: v * 2)(y)
            return mp.reveal(x), mp.reveal(y)

        x, y = mp.fetch(sim, mp.evaluate(sim, program))
        np.testing.assert_allclose([x[0], y[0]], [6, 32], atol=1e-3)

        with pytest.raises(TraceError, match="there is no way from A .* to B"):
            mp.evaluate(sim, lambda: mp.device("B")(lambda v: v)(mp.seal(1.0, "A")))


def test_control_flow_on_a_revealed_comparison(simulate):
    sim = simulate(2, **FAST)

    def program():
        x = mp.seal(np.float32(1))
        above = lambda x: mp.reveal(mp.device("SP0")(lambda x: x < 100)(x))  # noqa: E731
        return mp.reveal(mp.while_loop(above, lambda x: x * 3, x))

    assert mp.fetch(sim, mp.evaluate(sim, program))[0] == pytest.approx(243, abs=0.1)


def test_field_and_precision_are_used(simulate):
    coarse = secure(simulate(2, fxp_fraction_bits=4, **FAST), lambda x: x * 1, np.float32([0.99]))
    fine = secure(
        simulate(2, field="FM128", fxp_fraction_bits=40, **FAST),
        lambda x: x * 1,
        np.float32([0.99]),
    )
    assert abs(coarse[0] - 0.99) > 1e-3
    assert abs(fine[0] - 0.99) < 1e-6


# -- nothing leaves by accident


def test_a_share_is_not_the_data():
    """Each party's share looks random, and differs from run to run."""
    with mp.Simulator(cluster(2, **FAST)) as sim:
        with mp.with_ctx(sim):
            x = mp.put("P0", np.zeros(1000, np.int64))
        chunks = set()
        for _ in range(2):
            sealed = mp.evaluate(sim, mp.seal, x)
            for share in sealed.value.values:
                (chunk,) = share.chunks
                chunks.add(bytes(chunk))
                words = np.frombuffer(chunk[-8000:], np.uint64)  # behind libspu's header
                assert len(set(words)) > 900
                assert "chunks" not in repr(share)
        assert len(chunks) == 4


def test_a_secret_is_not_fetched_without_reveal(simulate):
    sim = simulate(2, **FAST)
    sealed = mp.evaluate(sim, lambda: mp.seal(1))
    with pytest.raises(DisclosureError, match=r"is a share.*mp.reveal it"):
        mp.fetch(sim, sealed)


def test_a_secret_is_not_put_in_plain(simulate):
    with pytest.raises(DisclosureError, match=r"write mp.reveal\(x, to='P0'\)"):
        mp.evaluate(simulate(2, **FAST), lambda: mp.put("P0", mp.seal(1)))
    with pytest.raises(DisclosureError, match="mp.reveal"):
        mp.evaluate(simulate(2, **FAST), lambda: mp.device("P0")(lambda x: x)(mp.seal(1)))


def test_reveal_tells_only_those_who_are_named(simulate):
    sim = simulate(2, **FAST)
    result = mp.evaluate(sim, lambda: mp.reveal(mp.seal(np.float32(2)), to="P1"))
    assert result.pmask == mp.Mask(0b10)
    assert result.value.values[0] is None


# -- refusals


def doubled_below_100(x):
    return jax.lax.while_loop(lambda x: x < 100, lambda x: x * 2, x)


@pytest.mark.parametrize(
    ("fn", "args", "message"),
    [
        (lambda x, y: x @ y, (f32(2, 3), f32(2, 3)), r"JAX cannot trace.*f32\[2, 3\]"),
        (lambda x: x if x > 0 else -x, (np.float32(1),), "JAX cannot trace"),
        (lambda x: jnp.fft.fft(x).real, (f32(4),), "SPU cannot .*fft"),
        (
            lambda key: jax.random.normal(key, (4,)),
            (np.uint32([0, 5]),),
            "SPU cannot .*bitcast_convert of floats.*jax.random",
        ),
        (lambda x: jnp.linalg.eigvals(x).real, (np.eye(2, dtype=np.float32),), "SPU cannot"),
        (
            lambda x: jax.random.uniform(jax.random.wrap_key_data(x, impl="rbg")),
            (np.uint32([1, 2, 3, 4]),),
            "random bits",
        ),
        (
            doubled_below_100,
            (np.float32(1),),
            r"condition of a loop depends on secrets.*mp\.while_loop.*spu\.experimental\.reveal",
        ),
        (lambda x: jax.vmap(doubled_below_100)(x), (f32(2),), "condition of a loop"),
        (lambda n: jax.lax.fori_loop(0, n, lambda i, x: x + i, n), (3,), "condition of a loop"),
        (lambda n: jax.lax.map(lambda n: jax.lax.fori_loop(0, n, jnp.add, n), n), ([1],), "loop"),
    ],
)
def test_what_spu_cannot_do_is_refused_while_tracing(simulate, fn, args, message):
    with pytest.raises(TraceError, match=message) as error:
        secure(simulate(2, **FAST), fn, *args)
    assert "test_spu.py:" in str(error.value)


def test_a_loop_of_public_turns_takes_secrets(simulate):
    def doubled(x, turns):
        return jax.lax.while_loop(
            lambda both: both[0] < turns, lambda both: (both[0] + 1, both[1] * 2), (0, x)
        )[1]

    sim = simulate(2, **FAST)
    program = lambda x: mp.reveal(mp.device("SP0")(doubled)(mp.seal(x), mp.constant(3)))  # noqa: E731
    assert mp.fetch(sim, mp.evaluate(sim, program, np.float32(1)))[0] == pytest.approx(8, abs=0.01)


@pytest.mark.parametrize(
    ("parties", "config", "message"),
    [
        (3, {"protocol": "CHEETAH"}, "CHEETAH takes 2 members, got 3"),
        (2, {"protocol": "ABY3"}, "ABY3 takes 3 members, got 2"),
        (2, {"protocol": "XYZ"}, "'protocol'.*'XYZ'"),
        (2, {"field": "FM65"}, "'field'"),
        (2, {"fxp_fraction_bits": 63}, "'fxp_fraction_bits'"),
        (2, {"fxp_fraction_bits": 0}, "'fxp_fraction_bits'"),
        (2, {"feild": "FM64"}, "'feild'"),
        (1, {}, "a SPU has 2 to any number of members, got 1"),
    ],
)
def test_a_wrong_configuration_names_the_field(parties, config, message):
    with pytest.raises(ConfigError, match=message):
        cluster(parties, **config)


def test_the_default_protocol_is_a_secure_one():
    names = {n: mp.ClusterSpec.simple(n).device("SP0").config.protocol for n in (2, 3, 4)}
    assert names == {2: "CHEETAH", 3: "ABY3", 4: "SEMI2K"}


def test_a_worker_refuses_the_protocol_for_debugging(simulate):
    sim = simulate(2, **FAST)
    for worker in sim._parties.workers:
        worker.insecure = False
    with pytest.raises(PartyError, match="SEMI2K trusts its first party") as error:
        secure(sim, lambda x: x, np.float32(1))
    assert isinstance(error.value.__cause__, AdmissionError)
    assert error.value.code == "A007"


def test_shares_of_one_device_are_none_of_another():
    plain = mp.TensorType("f32", (2,))
    mine = SpuConfig(protocol="SEMI2K", parties=(0, 1))
    other = mine.model_copy(update={"fxp_fraction_bits": 10})
    program = run_jax(lambda x: x, mp.FeSignature((ShareType.of(plain, mine),)), config=other)
    context = mp.TraceContext(mp.ClusterSpec.simple(2))
    shared = mp.MPType(ShareType.of(plain, mine), mp.Mask(0b11))
    with pytest.raises(TraceError, match="shared in another way"):
        mp.trace(context, lambda x: mp.peval(program.pfunc, [x])[0], shared)


def test_shares_run_only_where_they_are_meant_to(simulate):
    config = SpuConfig(protocol="SEMI2K", parties=(0, 1))
    program = run_jax(lambda x: x, mp.FeSignature((mp.TensorType("f32"),)), config=config)

    def other_parties():
        return mp.peval(program.pfunc, [mp.constant(np.float32(1))], (1, 2))[0]

    with pytest.raises(PartyError, match=r"for the parties \{0, 1\}, but \{1, 2\} run it"):
        mp.evaluate(simulate(3, **FAST), other_parties)

    def anyone():
        return mp.simp.pcall_dynamic(run_jax_op)

    @mp.function
    def run_jax_op():
        return mp.peval(program.pfunc, [mp.constant(np.float32(1))])[0]

    with pytest.raises(PartyError, match="pcall_static"):
        mp.evaluate(simulate(2, **FAST), anyone)


def test_the_exponential_function_is_exact(simulate):
    x = np.float32([-12, -4, -0.5, 0, 0.5, 1, 2, 4, 8, 12])
    sim = simulate(2, **FAST)
    found = mp.fetch(
        sim, mp.evaluate(sim, lambda: mp.reveal(mp.device("SP0")(jnp.exp)(mp.seal(x))))
    )
    np.testing.assert_allclose(found[0], np.exp(x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("x", [2**62, -(2**62) - 1, np.uint64(2**64 - 1)])
def test_an_integer_that_does_not_fit_is_refused(simulate, x):
    sim = simulate(2, field="FM64", **FAST)
    with pytest.raises(PartyError, match=r"an integer is not below 2\^62"):
        mp.evaluate(sim, lambda: mp.seal(mp.put("P0", x)))


def test_an_op_for_one_party_is_refused_on_spu():
    def program():
        kind = ShareType.of(mp.TensorType("i64"), SpuConfig(parties=(0, 1), protocol="SEMI2K"))
        return mp.device("SP0")(make_shares)(mp.constant(1), share=kind)

    with pytest.raises(FeCapabilityError, match="runs at one party.*P0, P1"):
        mp.trace(mp.TraceContext(cluster(2, **FAST)), program)


def test_a_configuration_without_parties_is_refused():
    signature = mp.FeSignature((mp.TensorType("f32"),))
    with pytest.raises(FeConfigError, match="parties"):
        run_jax(lambda x: x, signature, config=SpuConfig())


def test_an_mp_function_is_no_plain_function():
    with pytest.raises(FeCapabilityError, match="@mp.function"):
        mp.trace(
            mp.TraceContext(cluster(2, **FAST)),
            lambda: mp.device("SP0")(mp.function(lambda x: x))(mp.seal(1)),
        )


def test_after_a_failure_spu_works_again(simulate):
    sim = simulate(2, **FAST)

    def bad():
        x = mp.device("SP0")(lambda x: x + 1)(mp.seal(np.float32(1)))
        y = mp.device("SP0")(lambda x: x * 2)(x)
        return mp.put("P1", mp.device("P0")(lambda z: 1 / z)(mp.reveal(y, to="P0"))), mp.pshfl(
            mp.constant(1), mp.constant(9)
        )

    for _ in range(2):
        with pytest.raises(PartyError):
            mp.evaluate(sim, bad, mode="launch")
        assert secure(sim, lambda x: x + 1, np.float32(1)) == pytest.approx(2, abs=1e-3)


@mp.simple_op(
    "outside.fails_at", execution_model="multi_party", targets=("share",), dialects=("spu",)
)
def fails_at(share: mp.BaseType, *, party: int) -> mp.BaseType:
    """Raise at one party."""
    return share


@mp.kernel("outside.fails_at")
def fails_at_kernel(ctx, share, *, party):
    if ctx.interpreter.rank == party:
        raise ValueError("no")
    return share


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_party_that_fails_leaves_nobody_waiting_for_its_shares(simulate, mode):
    """The others wait in a native call of SPU, which cannot be interrupted."""
    sim = simulate(3, timeout=2 * DEADLINE, protocol="ABY3")

    def program():
        x = mp.device("SP0")(fails_at)(mp.seal(np.float32([1, 2])), party=1)
        return mp.reveal(mp.device("SP0")(lambda a: a * a)(x))

    failed = pytest.raises(PartyError, match=r"party n1 failed in outside\.fails_at at test_spu")
    with in_time(), failed:
        mp.evaluate(sim, program, mode=mode)
    assert secure(sim, jnp.add, np.float32(1), np.float32(2), mode=mode) == pytest.approx(3, 0.01)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ('"REF2K", "FM64", 18', "protocol"),
        ('"SEMI2K", "FM8", 18', "field"),
        ('"SEMI2K", "FM64", 60', "fxp_fraction_bits"),
        ('"ABY3", "FM64", 18', "ABY3 takes 3 members"),
        ('"SEMI2K", "FM32", 8', "does not fit in FM32"),
    ],
)
def test_shares_that_protect_nothing_are_no_type(params, message):
    """REF2K's shares are the data itself: the type must not even be read."""
    text = f'program "p" on {{0, 1}} (%0: spu.share<i64[2], {{0, 1}}, {params}>@{{0}}) {{ return }}'
    with pytest.raises(ParseError, match=message):
        mp.parse(text)


def test_plain_jax_is_compiled_as_ever_while_spu_compiles():
    """SPU's lowering of sorts applies in its own thread only."""
    from mplang_jax import jax_compile
    from mplang_spu import engine

    signature = mp.FeSignature((mp.TensorType("f32", (5,)),))
    plain = jax_compile(jnp.sort, signature).pfunc.attrs["code"]
    with engine.spu_tracing():
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(jax_compile, jnp.sort, signature).result()
        mine = jax_compile(jnp.sort, signature).pfunc.attrs["code"]
    assert other.pfunc.attrs["code"] == plain
    assert mine != plain
    assert jax_compile(jnp.sort, signature).pfunc.attrs["code"] == plain
