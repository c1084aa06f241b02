"""Contracts of ops and builders: metadata, configuration, determinism, two phases."""

from __future__ import annotations

import itertools

import numpy as np
import pydantic
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import FeConfigError, FeDeterminismError, PluginConflictError
from mplang_core.feop import check_same, flatten

CLUSTER = mp.ClusterSpec.simple(2)


class Setting(pydantic.BaseModel):
    """A configuration of another library's making."""

    by: int = 2


@mp.feop(name="toy.configured", config_schema=Setting)
def configured(x, *, config=Setting()):  # noqa: B008
    """Scales by its configuration."""
    return toy.scale(x, by=config.by)


def trace(program, *args):
    return mp.trace(mp.TraceContext(CLUSTER), program, *args)


def test_a_decorated_callable_says_what_it_is():
    assert toy.add.__feop__ is True
    assert mp.is_feop(toy.add)
    assert not mp.is_feop(len)
    meta = toy.add.__feop_meta__
    assert (meta.name, meta.family, meta.op_kind) == ("toy.add", "toy", "special_op")
    with pytest.raises(pydantic.ValidationError):
        meta.name = "toy.other"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"op_kind": "magic"}, "op_kind"),
        ({"dialects": 3}, "dialects"),
        ({"inputs": ({"kinds": "Tensor"},)}, r"inputs.0.kind"),
        ({"inputs": ({"kind": "Tensor", "visibility": ("SHY",)},)}, r"inputs.0.visibility.0"),
        ({"capabilities": {"requires_device": {"members": "two"}}}, "requires_device.members"),
        ({"capabilities": {"requires_world_size": 0}}, "requires_world_size"),
        ({"capabilities": {"stability": {"level": "shaky"}}}, "stability.level"),
        ({"capabilities": {"caching": {"scope": "disk"}}}, "caching.scope"),
        ({"capabilities": {"colour": "red"}}, "capabilities.colour"),
        ({"state_scope": "galaxy"}, "state_scope"),
        ({"inputs": ({"kind": "Nonsense"},)}, r"inputs.0.kind.*a kind is Any"),
        ({"inputs": ({"kind": "Tensor", "schema": "f32"},)}, r"inputs.0.schema"),
        ({"inputs": ({"kind": "Tensor", "schema": int},)}, r"inputs.0.schema"),
        ({"capabilities": {"caching": {"scope": "process"}}}, "caching.scope is 'process'"),
        (
            {"state_scope": "ctx", "capabilities": {"caching": {"scope": "ctx"}}},
            "key_strategy='custom'",
        ),
        ({"name": "no_family"}, "name"),
    ],
)
def test_wrong_metadata_names_the_field_and_the_feop(fields, message):
    with pytest.raises(FeConfigError, match=message) as error:
        mp.feop(**{"name": "toy.wrong", **fields})
    assert fields.get("name", "toy.wrong") in str(error.value)


def test_the_same_feop_twice_is_one_and_another_is_a_conflict():
    mp.registry.register(toy.add)
    mp.registry.register(toy.add)

    def impostor(x):
        """Claims a name."""

    impostor.__feop__, impostor.__feop_meta__ = True, toy.add.__feop_meta__
    with pytest.raises(PluginConflictError, match="two providers of the feop 'toy.add'"):
        mp.registry.register(impostor)
    with pytest.raises(FeConfigError, match="is not a feop"):
        mp.registry.register(len)


def test_a_configuration_is_checked_before_tracing():
    tracer = mp.TraceContext(CLUSTER)
    x = mp.constant(tracer, 1)
    for config, by in (({"by": 3}, 3), (Setting(by=4), 4), (None, 2)):
        assert mp.fe_materialize(configured, x, config=config).pfunc.attrs["by"] == by
    for wrong in ({"by": "x"}, {"by": [1]}, 7, toy):
        with pytest.raises(FeConfigError, match="toy.configured: its configuration"):
            mp.fe_materialize(configured, x, config=wrong)


def test_a_two_phase_feop_is_built_for_its_arguments(simulate):
    @mp.feop(name="toy.later")
    def later(*args):
        """Waits for the signature."""

        def build(signature):
            (kind,) = signature.operands
            pfunc = mp.PFunction("toy.scale", (kind,), (kind,), {"by": 10})
            return mp.FeProgram(pfunc, flatten(signature.args)[1], flatten(0)[1])

        return mp.FeBuilder(build)

    sim = simulate(2)
    result = mp.evaluate(sim, lambda: mp.invoke(later, mp.constant([1, 2])))
    np.testing.assert_array_equal(mp.fetch(sim, result)[0], [10, 20])


def test_a_feop_that_is_not_deterministic_is_caught(monkeypatch):
    counter = itertools.count(1)

    @mp.feop(name="toy.moody")
    def moody(x):
        """Gives another program each time."""
        return toy.scale(x, by=next(counter))

    monkeypatch.setenv("MPLANG_CHECK_DETERMINISM", "1")
    with pytest.raises(FeDeterminismError, match=r"toy.moody gave two .*\n  -by = 1\n  \+by = 2"):
        trace(lambda: mp.invoke(moody, mp.constant(1)))


@pytest.mark.needs("jax")
def test_a_function_that_draws_numbers_is_told_its_line_and_what_to_do(monkeypatch):
    draws = itertools.count(1.0)

    def program():
        return mp.device("P0")(lambda x: x + next(draws))(mp.put("P0", 1.0))

    monkeypatch.setenv("MPLANG_CHECK_DETERMINISM", "1")
    line = program.__code__.co_firstlineno + 1
    with pytest.raises(
        FeDeterminismError, match=rf"^test_contracts.py:{line}: jax.compile gave"
    ) as e:
        trace(program)
    assert str(e.value).endswith("pass them as arguments")
    assert e.value.code == "F003"


@pytest.mark.needs("jax", "spu")
def test_the_first_difference_of_compiled_code_is_shown():
    from mplang_jax import jax_compile

    kinds = mp.FeSignature((mp.TensorType("f32", (3,)),))
    one, other = jax_compile(lambda x: x + 1, kinds), jax_compile(lambda x: x * 2, kinds)
    check_same("toy", one, one)
    with pytest.raises(FeDeterminismError, match=r"\n  -code = ") as error:
        check_same("toy", one, other)
    assert "stablehlo" in str(error.value)


@pytest.mark.needs("jax", "spu")
def test_our_own_compilers_pass_the_check(monkeypatch, simulate):
    monkeypatch.setenv("MPLANG_CHECK_DETERMINISM", "1")
    sim = simulate(2)

    def program():
        x = mp.device("P0")(lambda v: v * 2)(mp.put("P0", np.float32([1, 2])))
        return mp.reveal(mp.device("SP0")(lambda v: v + 1)(x))

    np.testing.assert_allclose(mp.fetch(sim, mp.evaluate(sim, program))[0], [3, 5], atol=1e-3)


def test_the_name_of_a_feop_is_that_of_its_function():
    @mp.feop(family="toy")
    def named_here(x):
        """Has no name."""
        return toy.scale(x)

    assert named_here.__feop_meta__.name == "toy.named_here"
    assert mp.registry.get("toy.named_here") is named_here


def test_the_process_state_of_a_feop_by_its_name():
    from mplang_core.ext import fe_process_state

    @mp.feop(name="toy.remembers", state_scope="process")
    def remembers(x):
        """Keeps something."""
        return toy.scale(x)

    remembers.__get_state__()["seen"] = 1
    assert fe_process_state("toy.remembers")["seen"] == 1


@pytest.mark.needs("jax")
def test_a_signature_of_shapes():
    import jax
    from mplang_jax import jax_compile

    shape = jax.ShapeDtypeStruct((2, 3), np.float32)
    signature = mp.FeSignature(({"w": shape}, 2.0))
    assert signature.operands == (mp.TensorType("f32", (2, 3)),)
    made = jax_compile(lambda tree, by: tree["w"].sum() * by, signature)
    assert [str(kind) for kind in made.pfunc.outs_info] == ["f32[]"]
