"""Reference check: right numbers are not told; what it does in each mode and run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest
from reference_runs import COARSE, cluster, f32, line_after, root, secure

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError, PrecisionError, PrecisionWarning

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


# -- modes


@pytest.mark.once
@pytest.mark.usefixtures("bare")
def test_raise_ends_the_run_at_all_parties():
    with pytest.raises(PartyError, match="sqrt gives 0 where float64 gives 547.7") as caught:
        secure(lambda x: root(x), np.float32(300_000), check_numbers="raise")
    assert "reference_runs.py" in str(caught.value)
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


@pytest.mark.once
@pytest.mark.usefixtures("bare")
def test_false_checks_nothing(monkeypatch):
    monkeypatch.setattr("mplang_spu.reference_check.check.check", None)
    result, shown = secure(lambda x: root(x), np.float32(300_000), check_numbers=False)
    assert result == 0
    assert not shown


def test_another_mode_is_refused():
    with pytest.raises(ConfigError, match="check_numbers is 'warn', 'raise', True or False"):
        mp.Simulator(cluster(2, COARSE), check_numbers="loud")


@pytest.mark.once
@pytest.mark.usefixtures("bare")
def test_a_line_is_told_in_each_run():
    assert len(secure(lambda x: root(x), np.float32(300_000), times=3)[1]) == 3


@pytest.mark.once
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
