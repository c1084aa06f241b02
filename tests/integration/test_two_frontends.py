"""Two frontends for arrays in one installation: JAX, and one of the array API standard."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import FeCapabilityError, FeConfigError, TraceError

pytestmark = pytest.mark.needs("jax", "xp")

X = np.float32([3, 4])


def cluster(frontends=(), of_device=()):
    devices = {
        "P0": {"kind": "PPU", "members": [0], "frontends": of_device},
        "P1": {"kind": "PPU", "members": [1]},
        "SP0": {"kind": "SPU", "members": [0, 1]},
    }
    return mp.ClusterSpec([{}, {}], devices, frontends=frontends)


def used(program, spec=None):
    compiled = mp.compile(program, X, cluster_spec=spec or cluster())
    ops = [op.opcode for op in compiled.program.graph.walk()]
    return [name for name in ops if name in ("jax.run", "xp.run", "spu.run_jax")]


def neutral(x):
    return x * 2 + 1


def at_p0(fn):
    return lambda x: mp.device("P0")(fn)(mp.put("P0", x))


def test_a_function_goes_to_the_frontend_that_it_names():
    import jax
    import jax.numpy as jnp
    from mplang_xp import xp

    assert used(at_p0(lambda x: jnp.sum(x))) == ["jax.run"]
    assert used(at_p0(lambda x: xp.sum(x))) == ["xp.run"]
    assert used(at_p0(jax.jit(neutral))) == ["jax.run"]


def test_what_ran_before_the_second_frontend_was_installed_runs_as_it_did():
    assert used(at_p0(neutral)) == ["jax.run"]
    assert used(lambda x: mp.put("P0", x) + 1) == ["jax.run"]
    assert used(lambda x: mp.put("P0", x)[0]) == ["jax.run"]


def test_a_call_of_a_compiler_says_which():
    from mplang_jax import jax_compile
    from mplang_xp import xp_compile

    for compiler, op in ((jax_compile, "jax.run"), (xp_compile, "xp.run")):
        call = lambda x, compiler=compiler: mp.device("P0")(compiler)(neutral, mp.put("P0", x))  # noqa: E731
        for frontends in ((), ("xp",), ("jax",)):
            assert used(call, cluster(frontends)) == [op]
        assert used(lambda x, c=compiler: mp.invoke(c, neutral, mp.put("P0", x))) == [op]
        assert used(lambda x, c=compiler: mp.invoke(c, neutral, mp.constant(x))) == [op]


def test_a_program_that_was_compiled_is_called_on_a_device():
    from mplang_xp import xp_compile

    made = xp_compile(neutral, mp.FeSignature((mp.TensorType("f32", (2,)),)))
    assert used(lambda x: mp.device("P0")(made)(mp.put("P0", x))) == ["xp.run"]
    assert used(lambda x: mp.invoke(made, mp.put("P0", x))) == ["xp.run"]
    again = mp.fe_materialize(xp_compile, neutral, mp.FeSignature((mp.TensorType("f32", (2,)),)))
    assert again.pfunc == made.pfunc
    with pytest.raises(TraceError, match=r"test_two_frontends\.py:\d+: a program of xp.run takes"):
        used(lambda x: mp.device("P0")(made)(mp.put("P0", x), 1.0))
    with pytest.raises(TraceError, match="takes values of"):
        used(lambda x: mp.device("P0")(made)(mp.put("P0", np.float64([3, 4]))))


@pytest.mark.parametrize(
    ("frontends", "of_device", "block", "expected"),
    [
        ([], [], None, "jax.run"),
        ([], [], "xp", "xp.run"),
        (["xp"], [], None, "xp.run"),
        (["jax"], [], "xp", "jax.run"),
        (["xp"], [], "jax", "xp.run"),
        (["xp"], ["jax"], None, "jax.run"),
        (["jax"], ["xp"], "jax", "xp.run"),
    ],
)
def test_device_then_cluster_then_block(frontends, of_device, block, expected):
    def program(x):
        if block is None:
            return at_p0(neutral)(x)
        with mp.frontend(block):
            return at_p0(neutral)(x)

    assert used(program, cluster(frontends, of_device)) == [expected]


@pytest.mark.needs("spu")
def test_a_protected_device_takes_the_function_and_not_a_program_for_a_party():
    from mplang_jax import jax_compile

    made = jax_compile(neutral, mp.FeSignature((mp.TensorType("f32", (2,)),)))
    with pytest.raises(FeCapabilityError, match=r"this is a program of jax\.compile for a party"):
        used(lambda x: mp.device("SP0")(made)(mp.seal(x)))
    assert used(lambda x: mp.device("SP0")(jax_compile)(neutral, mp.seal(x))) == ["spu.run_jax"]


def test_a_preference_that_cannot_take_it_is_passed_over():
    assert used(lambda x: mp.device("SP0")(neutral)(mp.seal(x)), cluster(["xp"])) == ["spu.run_jax"]


def test_a_cached_function_is_traced_again_for_another_preference():
    @mp.builtin_function
    def called(x):
        return mp.device("P0")(neutral)(x)

    def program(x):
        x = mp.put("P0", x)
        with mp.frontend("xp"):
            y = called(x)
        return called(x), y

    assert sorted(used(program)) == ["jax.run", "xp.run"]


def test_a_frontend_that_is_not_there_is_told():
    with pytest.raises(FeConfigError, match=r"test_two_frontends\.py:\d+: frontends: no compiler"):
        used(lambda x: at_p0(neutral)(x), cluster(["torch"]))
    unknown = pytest.raises(FeConfigError, match="the family 'jx'.*did you mean 'jax'")
    with unknown, mp.frontend("jx"):
        pass
    from mplang_jax import jax_compile

    with pytest.raises(TraceError, match="compiles functions: it takes one as its first argument"):
        used(lambda x: mp.device("P0")(jax_compile)(mp.put("P0", x)))


def test_two_that_both_say_mine_are_named_with_a_way_that_works():
    import jax.numpy as jnp
    from mplang_xp import xp

    def both(x):
        return xp.sum(x) if hasattr(x, "sample") else jnp.sum(x)

    with pytest.raises(FeCapabilityError, match=r"jax\.compile, xp\.compile; say which") as error:
        used(at_p0(both))
    assert "with mp.frontend('jax'):" in str(error.value)

    def as_told(x):
        with mp.frontend("jax"):
            return at_p0(both)(x)

    assert used(as_told) == ["jax.run"]
    registry = lambda x: mp.device("P0")(mp.registry.get("xp.compile"))(both, mp.put("P0", x))  # noqa: E731
    assert used(registry) == ["xp.run"]


def both_ways(x):
    """The first half by one frontend, the second by the other; and the other way round."""
    import jax.numpy as jnp
    from mplang_xp import xp

    x = mp.put("P0", x)
    one = mp.device("P0")(lambda x: xp.cumulative_sum(x))(x)
    one = mp.device("P0")(lambda x: jnp.sqrt(x))(one)
    other = mp.device("P0")(lambda x: jnp.sqrt(x))(x)
    other = mp.device("P0")(lambda x: xp.cumulative_sum(x))(other)
    return one, other, mp.device("P0")(neutral)(x)


EXPECTED = (np.sqrt(np.cumsum(X)), np.cumsum(np.sqrt(X)), X * 2 + 1)


@pytest.mark.parametrize("frontends", [(), ("jax",), ("xp",)])
def test_both_directions_on_the_simulator(simulate, mode, frontends):
    with mp.Simulator(cluster(frontends), mode=mode) as sim:
        for found, expected in zip(
            mp.fetch(sim, mp.evaluate(sim, both_ways, X)), EXPECTED, strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.needs("http")
@pytest.mark.parametrize(
    ("mode", "frontends"),
    [
        ("standard", ["jax"]),
        ("launch", ["xp"]),
        pytest.param("launch", ["jax"], marks=pytest.mark.long("workers for the other mode")),
        pytest.param("standard", ["xp"], marks=pytest.mark.long("workers for the other mode")),
    ],
)
def test_both_directions_on_workers(mode, frontends):
    from mplang_http import LocalCluster

    with LocalCluster(2, tls=True) as local:
        spec = local.spec.model_copy(update={"frontends": tuple(frontends)})
        with mp.connect("http", spec, mode=mode, tls=local.tls) as host:
            for found, expected in zip(
                mp.fetch(host, mp.evaluate(host, both_ways, X)), EXPECTED, strict=True
            ):
                np.testing.assert_allclose(found, expected, rtol=1e-6)
