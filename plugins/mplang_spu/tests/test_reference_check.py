"""Reference check: a simulator reports wrong numbers of SPU, with their lines."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_spu import engine, lowering
from mplang_spu.reference_check.flat_function import flat_function, source_lines
from mplang_stablehlo.source_lines import lines_of

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError, PrecisionError, PrecisionWarning, TraceError

COARSE = {"protocol": "SEMI2K", "field": "FM64", "fxp_fraction_bits": 18}
FINE = {"protocol": "SEMI2K", "field": "FM128", "fxp_fraction_bits": 40}


@pytest.fixture
def bare(monkeypatch):
    """Run SPU without the passes that correct libspu's results."""
    monkeypatch.setattr(lowering, "PASSES", ())
    engine.compile.cache_clear()
    yield
    engine.compile.cache_clear()


def cluster(parties, config):
    names = [f"n{i}" for i in range(parties)]
    devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(parties)}
    spu = {"kind": "SPU", "members": names, "config": config}
    return mp.ClusterSpec.from_dict(
        {"nodes": [{"name": n} for n in names], "devices": {**devices, "SP0": spu}}
    )


def secure(fn, *args, parties=2, config=COARSE, times=1, notes=False, **options):
    """Run a function on SPU; return the first party's result, and the warnings.

    Warnings about constants while tracing are left out, unless ``notes`` is true.
    """
    with mp.Simulator(cluster(parties, config), timeout=60.0, **options) as sim:

        def program():
            values = [mp.put(f"P{i % parties}", arg) for i, arg in enumerate(args)]
            return mp.reveal(mp.device("SP0")(fn)(*values))

        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            for _ in range(times):
                result = mp.fetch(sim, mp.evaluate(sim, program))[0]
    told = [each for each in shown if each.category is PrecisionWarning]
    return result, [x for x in told if notes or not str(x.message).startswith("the constant")]


def line_after(fn, offset):
    return fn.__code__.co_firstlineno + offset


def f32(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


# -- agreement


@pytest.mark.parametrize("mode", ["standard", "launch"])
@pytest.mark.parametrize(("parties", "protocol"), [(2, "SEMI2K"), (3, "ABY3"), (2, "CHEETAH")])
def test_agreement_gives_no_warning(parties, protocol, mode):
    config = {**COARSE, "protocol": protocol}
    fn = lambda x, y: (x @ y, jnp.sort(y), x > 0.5)  # noqa: E731
    result, shown = secure(
        lambda x, y: fn(x, y)[0], f32(4, 3), f32(3), parties=parties, config=config, mode=mode
    )
    np.testing.assert_allclose(result, f32(4, 3) @ f32(3), atol=1e-3)
    assert not shown


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (lambda x: x - x, (f32(50),)),
        (lambda x: (x - x.mean()).sum(), (f32(50),)),
        (lambda x: jnp.where(x > 0, jnp.log(x), 0), (np.float32([0, 1, 2]),)),
        (lambda x: x * 2 + 1, (np.array([2**40, -3]),)),
        (lambda x: x * 6, (np.array([2**61]),)),  # wraps, as in NumPy
        (lambda x: jnp.median(x), (f32(7),)),
        (lambda x: jnp.var(x), (f32(7),)),
        (lambda x: x.sum(), (np.zeros((0,), np.float32),)),
        (lambda x: x, (np.array([True, False]),)),
    ],
)
def test_right_numbers_are_not_told(fn, args):
    assert not secure(fn, *args)[1]


# -- faults


def root(x):
    """Helper that contains the wrong line."""
    x = jnp.abs(x)
    return jnp.sqrt(x)


FAULTS = {
    "mean": (lambda x: x.mean(), np.full(40_000, 50, np.float32), "divide gives 45.7", "gives 50"),
    "sqrt": (lambda x: root(x) + 1, np.float32(300_000), "sqrt gives 0", "gives 547.7226"),
    "tiny": (lambda x: x * 1e-7, np.float32(1), "multiply gives 0", "gives 1e-07"),
    "tiny in an array": (lambda x: x * 1e-7, f32(9), "constant gives 0", "gives 1e-07"),
    "max": (lambda x: x.max(), np.array([310, 925, 870]), "max gives -9223372", "gives 925"),
    "argmax": (lambda x: x.argmax(), np.array([310, 925, 870]), "gives 0", "gives 1 "),
    "log of 0": (lambda x: jnp.log(x), np.float32([1, 0]), "log gives", "-inf at [1] of f32[2]"),
    "NaN": (
        lambda x: jnp.where(x > 2, x, jnp.nan),
        np.float32([3, 1]),
        "constant gives 0",
        "gives nan",
    ),
    "whole": (lambda x: x // 7, np.float32([13, 924]), "remainder", "float64 gives 0 at [1]"),
    "loop": (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s * 1e-3, x),
        np.float32([1]),
        "loop gives 0",
        "gives 1e-09",
    ),
    "int32": (lambda x: x * x > 5, np.int32([2**20]), "compare gives 1", "gives 0"),
}


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("name", FAULTS)
def test_each_kind_of_fault_is_told(name):
    fn, x, found, exact = FAULTS[name]
    (told,) = secure(fn, x)[1]
    text = str(told.message)
    assert found in text
    assert exact in text
    assert "SEMI2K, FM64, 18 fraction bits" in text
    assert told.filename == __file__
    place = root.__code__.co_firstlineno + 3 if name == "sqrt" else fn.__code__.co_firstlineno
    assert place <= told.lineno <= place + 1


@pytest.mark.usefixtures("bare")
def test_the_line_is_that_of_the_helper_also_where_jax_kept_its_trace():
    def first(x):
        return jnp.std(x) * 1

    def second(x):
        y = x + 0
        return jnp.std(y)

    x = np.float32([310, 925, 870, 924, 12])
    (told,) = secure(first, x)[1]
    assert told.lineno == line_after(first, 1)
    (told,) = secure(second, x)[1]
    assert told.lineno == line_after(second, 2)
    assert "sqrt gives 0 where float64 gives 377.62" in str(told.message)


@pytest.mark.usefixtures("bare")
def test_the_same_code_of_two_lines_names_both():
    with mp.Simulator(cluster(2, COARSE)) as sim:

        def program():
            x = mp.put("P0", np.float32([300_000]))
            y = mp.device("SP0")(lambda x: jnp.sqrt(x))(x)
            z = mp.device("SP0")(lambda x: jnp.sqrt(x))(x)
            return mp.reveal(y), mp.reveal(z)

        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            mp.evaluate(sim, program)
    assert [each.lineno for each in shown] == [line_after(program, 2), line_after(program, 3)]


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (lambda x: x * 1e-7, "the constant 1e-07 reaches multiply: the smallest step"),
        (lambda x: jnp.maximum(x, 1e-9), "the constant 1e-09 reaches maximum"),
        (lambda x: jnp.where(x > 2, x, jnp.nan), "the constant NaN reaches the result"),
        (lambda x: jnp.where(x > 2, x, jnp.inf) * 2, "the constant infinity reaches multiply"),
        (lambda x: jnp.where(x > 2, x, 1e15), "the constant 1e\\+15 reaches the result"),
    ],
)
def test_a_constant_that_cannot_be_held_is_told_at_its_line(fn, text):
    with mp.Simulator(cluster(2, COARSE), check_numbers=False) as sim:
        program = lambda: mp.device("SP0")(fn)(mp.put("P0", np.float32([3, 1])))  # noqa: E731
        with pytest.warns(PrecisionWarning, match=text) as shown:
            mp.evaluate(sim, program)
    assert [(each.filename, each.lineno) for each in shown] == [(__file__, line_after(fn, 0))]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x * 1e15,
        lambda x: x + 1e14,
        lambda x: jnp.where(x > 2, x.astype(int), -(2**63)).max(),
    ],
)
def test_a_constant_that_cannot_be_right_is_refused_at_its_line(fn):
    with mp.Simulator(cluster(2, COARSE)) as sim:
        program = lambda: mp.device("SP0")(fn)(mp.put("P0", np.float64([3, 1])))  # noqa: E731
        with pytest.raises(
            TraceError, match=rf"test_reference_check.py:{line_after(fn, 0)}: the constant"
        ):
            mp.evaluate(sim, program)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.max() + x.min(),
        lambda x: jnp.median(x) + jnp.var(x) + jnp.std(x, ddof=1) + jnp.quantile(x, 0.3),
        lambda x: jax.nn.softmax(jnp.where(x > 2, x, -jnp.inf)) + jax.nn.logsumexp(x),
        lambda x: jnp.nan_to_num(x) + jnp.nanmean(x) + jnp.nansum(x),
        lambda x: jnp.nanvar(x),
        lambda x: jnp.exp(-jnp.arange(60.0))[:, None] * x,
        lambda x: jnp.clip(x, -jnp.inf, 2.5) + jnp.where(jnp.isinf(x), 0, x),
        lambda x: jnp.minimum(jnp.where(x > 2, x, 1e20), 7) / 1e-5,
    ],
)
def test_constants_that_reach_no_result_are_not_told(fn):
    assert not secure(fn, np.float32([3, 1, 2, 5]), config=FINE, notes=True)[1]


def test_more_bits_mend_it():
    result, shown = secure(lambda x: x.mean(), np.full(40_000, 50, np.float32), config=FINE)
    assert float(result) == pytest.approx(50, rel=1e-4)
    assert not shown


def test_data_that_vanish_are_told():
    (told,) = secure(lambda x: x + 1, np.float32([1e-7, 0]))[1]
    assert "stand for 0: its largest number, 1e-07, is below" in str(told.message)
    assert not secure(lambda x: x + 1, np.float32([1e-7, 1]))[1]


FULL = {"field": "FM128"}


@pytest.mark.parametrize(
    ("fn", "x", "total"),
    [
        (jnp.sum, np.full(50_000, 109_875, np.int32), 5_493_750_000),
        (jnp.cumsum, np.array([70, 59, 90, 12, 57], np.uint8), 288),
        (lambda x: x.sum(axis=0), np.full((3, 2), -(2**30), np.int32), -3 * 2**30),
    ],
)
def test_a_sum_that_its_type_does_not_hold_is_told_at_its_line(fn, x, total):
    (told,) = secure(fn, x, config=FULL)[1]
    assert str(told.message).startswith(f"sum is {total}, which ")
    assert "astype('int64')" in str(told.message)


def test_a_wrap_that_numpy_has_too_is_not_told():
    x = np.uint8([250, 3])
    result, shown = secure(lambda x: jnp.stack([x + x, -x]), x, config=FULL)
    assert not shown
    np.testing.assert_array_equal(result, [x + x, -x])


def test_complex_numbers_are_refused_at_the_line_of_the_user():
    reason = r"test_reference_check.py:\d+.*SPU computes on .* got c128"
    with pytest.raises(TraceError, match=reason):
        secure(lambda x: x, np.array([1 + 2j]))


CANCELLING = {
    "floats": (lambda x: (x * x).mean() - x.mean() ** 2, 1e6 + np.arange(3.0)),
    "integers": (lambda x: (x * x).mean() - x.mean() ** 2, 1_000_000 + np.arange(-300, 300, 7)),
}


@pytest.mark.parametrize("name", CANCELLING)
def test_digits_that_only_float64_keeps_are_told(name):
    fn, x = CANCELLING[name]
    (told,) = secure(fn, x, config=FULL)[1]
    assert "subtract gives" in str(told.message)
    assert "center before you square" in str(told.message)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_sums_of_what_was_centred_are_not_told(size):
    x = np.random.default_rng(0).normal(size=100) * size + size
    for data in (x, x.astype(np.float32), (10 * x).astype(np.int64)):
        assert not secure(
            lambda x: ((x - x.mean()).sum(), (x - x.mean()).mean()), data, config=FULL
        )[1]


@pytest.mark.usefixtures("bare")
def test_a_fault_that_no_second_run_shows_is_told_beside_a_tie():
    """Products of this size are truncated wrongly at random."""

    def fn(x, y):
        bonus = jnp.where(x[0] >= 3, 1.0, 2.0)
        return bonus + x.mean() * y.mean()

    x, y = np.full(4096, 3, np.float32), np.full(4096, 2, np.float32)
    for _ in range(20):
        result, shown = secure(fn, x, y)
        assert bool(shown) == (abs(result - 7) > 0.1)


def test_a_fault_of_chance_is_told_whatever_constants_decide():
    """Squares of this size overflow in a mean at random; the median's index is a constant."""
    x = np.random.default_rng(5).integers(10**7, 2 * 10**7, 13) * 2
    fn = lambda x: jnp.median(x * x - (x * x).mean())  # noqa: E731
    exact = np.median(x * x - (x * x).mean())
    for _ in range(40):
        result, shown = secure(fn, x, config=FINE)
        assert shown or abs(result - exact) < 1e-3 * abs(exact)


# -- decisions


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (lambda x: jnp.argmax(x), np.float32([1, 3, 3])),
        (lambda x: jnp.argmax(x / 3 * 3), np.float32([1, 3, 3])),
        (lambda x: jnp.where(x * 0.1 * 10 > x, 100.0, -100.0), np.float32([1, 2, 3, 5, 7])),
        (lambda x: jnp.argsort(x * 0.1), np.float32([2, 1, 1, 3, 1])),
        (lambda x: jnp.round(x / 3 * 3), np.float32([0.5, 1.5, 2.5])),
        (lambda x: jnp.sign(x / 3 * 3 - x), np.float32([0.5, 1.5, 2.5])),
    ],
)
def test_a_tie_may_go_either_way(fn, x):
    assert not secure(fn, x)[1]


def test_a_tie_that_is_missed_is_told():
    (told,) = secure(lambda x: x / 3 * 3 >= x, np.float32([1, 2, 3, 500, 700]))[1]
    assert "compare gives 0 where float64 gives 1" in str(told.message)


@pytest.mark.usefixtures("bare")
def test_what_follows_a_tie_is_judged_by_the_decision():
    """A fault after a tie is still reported, at its own line."""

    def fn(x):
        high = jnp.where(x * 0.1 * 10 >= x, 400_000.0, 300_000.0)
        return jnp.sqrt(high * x)

    (told,) = secure(fn, np.float32([1, 2, 3, 5, 7]))[1]
    assert told.lineno == line_after(fn, 2)
    assert "sqrt" in str(told.message)


# -- planted faults


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (lambda x: x + 1.0, f32(5)),
        (lambda x: x + 1, np.arange(5)),
        (lambda x: x > 0.1, f32(5)),
        (lambda x: jnp.argmax(x), f32(5)),
        (lambda x: jnp.sort(x), f32(5)),
        (lambda x: jnp.floor(x * 3 + 0.1), f32(5)),
    ],
)
def test_a_planted_fault_is_told(monkeypatch, fn, x):
    """The engine returns another number than it computed, only once, so no rerun shows it."""
    original = engine.Engine.run

    def wrong(self, code, inputs, outputs):
        made = original(self, code, inputs, outputs)
        if threading.current_thread().name == "mplang-P0":
            for share in made:
                (chunk,) = share.share_chunks
                share.share_chunks = [chunk[:-8] + bytes(b ^ 0x15 for b in chunk[-8:])]
        return made

    assert not secure(fn, x)[1]
    monkeypatch.setattr(engine.Engine, "run", wrong)
    assert len(secure(fn, x)[1]) == 1


def test_what_cannot_be_checked_is_told(monkeypatch):
    def broken(*args):
        raise KeyError("planted")

    monkeypatch.setattr("mplang_spu.reference_check.check.reference.outputs_of", broken)
    (told,) = secure(lambda x: x + 1, f32(3))[1]
    assert "could not be checked: KeyError" in str(told.message)


# -- modes


@pytest.mark.usefixtures("bare")
def test_raise_ends_the_run_at_all_parties():
    with pytest.raises(PartyError, match="sqrt gives 0 where float64 gives 547.7") as caught:
        secure(lambda x: root(x), np.float32(300_000), check_numbers="raise")
    assert "test_reference_check.py" in str(caught.value)
    assert isinstance(caught.value.__cause__, PrecisionError)


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_simulator_goes_on_after_it_raised(mode):
    with mp.Simulator(cluster(3, {}), check_numbers="raise", mode=mode) as sim:

        def program(x):
            y = mp.device("SP0")(lambda x: jnp.log(x))(mp.put("P0", x))
            return mp.reveal(y, to="P1")

        for _ in range(2):
            with pytest.raises(PartyError, match="log gives"):
                mp.evaluate(sim, program, np.float32(0))
        found = mp.fetch(sim, mp.evaluate(sim, program, np.float32(1)))
        assert float(found) == pytest.approx(0, abs=1e-3)


@pytest.mark.usefixtures("bare")
def test_false_checks_nothing(monkeypatch):
    monkeypatch.setattr("mplang_spu.reference_check.check.check", None)
    result, shown = secure(lambda x: root(x), np.float32(300_000), check_numbers=False)
    assert result == 0
    assert not shown


def test_another_mode_is_refused():
    with pytest.raises(ConfigError, match="check_numbers is 'warn', 'raise', True or False"):
        mp.Simulator(cluster(2, COARSE), check_numbers="loud")


@pytest.mark.usefixtures("bare")
def test_a_line_is_told_in_each_run():
    assert len(secure(lambda x: root(x), np.float32(300_000), times=3)[1]) == 3


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_the_turns_of_a_loop_are_checked(mode):
    """The third iteration is the first wrong one."""

    def turn(x):
        more = 1000 * jnp.sqrt(x)
        return x + more + 50_000

    def program():
        below = lambda x: mp.reveal(mp.device("SP0")(lambda x: x < 6e5)(x))  # noqa: E731
        return mp.reveal(mp.while_loop(below, mp.device("SP0")(turn), mp.seal(np.float32(100))))

    simulator = mp.Simulator(cluster(2, COARSE), mode=mode)
    with simulator as sim, pytest.warns(PrecisionWarning, match="SPU's sqrt gives 0") as shown:
        mp.evaluate(sim, program)
    assert [each.lineno for each in shown] == [line_after(turn, 1)]


def test_threads_may_run_checks_at_the_same_time():
    def one(i):
        return secure(lambda x: x.sum() + i, f32(9))[0]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one, range(4)))
    np.testing.assert_allclose(found, f32(9).sum() + np.arange(4), atol=1e-3)


def test_the_check_is_no_traffic():
    def sent(check):
        with mp.Simulator(cluster(2, COARSE), check_numbers=check) as sim:

            def program():
                return mp.reveal(mp.device("SP0")(lambda x: x + 1)(mp.put("P0", f32(3))))

            mp.evaluate(sim, program)
            return [link.sent_messages for state in sim.progress() for link in state.links.values()]

    assert sent("warn") == sent(False)


# -- lines


def test_lines_are_beside_the_code_and_not_in_it():
    from mplang_jax.frontend import jax_compile

    from mplang_core import FeSignature, TensorType
    from mplang_core.ir.compressed_text import unpack

    def fn(x):
        y = x + 2
        return root(y)

    code = jax_compile(fn, FeSignature((TensorType("f32", (3,)),))).pfunc.attrs["code"]
    assert "test_reference_check" not in unpack(code)
    names = {op.name: i for i, op in enumerate(flat_function(code).ops)}
    found = source_lines(code, None)
    assert found[names["add"]].line == line_after(fn, 1)
    assert found[names["sqrt"]].line == line_after(root, 3)
    assert lines_of(code + b" ") is None
