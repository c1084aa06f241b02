"""Routing by capability: metadata and a device give a route, or the reasons against it."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.device import Device, DeviceKind, Lowering, route
from mplang_core.errors import FeCapabilityError, FeConfigError
from mplang_core.feop.meta import Capabilities, DeviceRequirement, FeMeta
from mplang_core.types import Form

SHARED = DeviceKind("SHARED", Form.SHARE, members=(2, None))
PLAIN = DeviceKind("PLAIN", Form.PLAIN)
PAIR = Device("S", SHARED, mp.Mask.of([0, 1]))
ONE = Device("P", PLAIN, mp.Mask.of(0))


def meta(**fields):
    return FeMeta(name="outside.op", **fields)


@pytest.mark.parametrize(
    ("fields", "device", "reason"),
    [
        ({}, ONE, None),
        ({}, PAIR, "it runs at one party, the device has 2"),
        ({"execution_model": "multi_party", "targets": ("share",)}, PAIR, None),
        ({"execution_model": "multi_party", "targets": ("share", "plain")}, PAIR, None),
        ({"execution_model": "multi_party"}, PAIR, "it works on values of form plain"),
        ({"execution_model": "multi_party"}, ONE, "several parties run it together"),
        ({"execution_model": "in_controller"}, PAIR, None),
        ({"op_kind": "transform"}, PAIR, None),
        ({"targets": ("plain", "handle")}, ONE, None),
        (
            {"targets": (Form.SHARE, Form.CIPHERTEXT)},
            ONE,
            "it works on values of form share or ciphertext, those of the device are of form plain",
        ),
        ({"op_kind": "transform", "dialects": ("other",)}, PAIR, None),
        (
            {
                "execution_model": "multi_party",
                "capabilities": Capabilities(requires_device=DeviceRequirement(members=">=3")),
            },
            PAIR,
            "it requires >=3 members, the device has 2",
        ),
        (
            {"capabilities": Capabilities(requires_world_size=3)},
            ONE,
            "it requires a cluster of =3 parties, this one has 4",
        ),
        ({"capabilities": Capabilities(requires_world_size=">=3")}, ONE, None),
        ({"capabilities": Capabilities(requires_world_size="<=4")}, ONE, None),
        ({"capabilities": Capabilities(supports_visibility=("SECRET",))}, ONE, "PRIVATE"),
        ({"capabilities": Capabilities(supports_visibility=("PRIVATE",))}, ONE, None),
        (
            {
                "execution_model": "multi_party",
                "capabilities": Capabilities(supports_visibility=("PUBLIC",)),
            },
            PAIR,
            "it works on PUBLIC values, those of a SHARED are SECRET",
        ),
    ],
)
def test_each_requirement(fields, device, reason):
    found = route(meta(**fields), device, world_size=4)
    assert found.fits == (reason is None)
    assert reason is None or reason in "; ".join(found.reasons)


def test_all_failed_requirements_are_told():
    sealed = meta(targets=("handle",), capabilities=Capabilities(requires_world_size=9))
    assert len(route(sealed, PAIR, 2).reasons) == 3


def test_a_target_is_a_form_and_no_name_of_a_kind():
    with pytest.raises(FeConfigError, match=r"targets.*what a device has to be.*got 'PPU'"):
        meta(targets=("PPU",))
    with pytest.raises(FeConfigError, match="kind"):
        DeviceRequirement(kind=("SPU",))


def test_a_kind_runs_ops_of_its_dialects_alone():
    kind = DeviceKind("S", Form.SHARE, members=(2, None), dialects=("halves", "pphlo"))
    device = Device("S", kind, mp.Mask.of([0, 1]))
    shared = {"targets": ("share",), "execution_model": "multi_party"}
    assert route(meta(dialects=("pphlo", "stablehlo"), **shared), device).fits
    assert route(meta(dialects=("shares",), **shared), device).reasons == (
        "its dialect is shares, the device runs halves, pphlo",
    )
    assert route(meta(op_kind="transform", dialects=("shares",)), device).fits


def test_a_kind_brings_its_own_predicate():
    def unsupported_reasons(meta, members):
        return [] if meta.family == "tables" else [f"it runs tables only, not {meta.name}"]

    kind = DeviceKind("OLD", Form.PLAIN, unsupported_reasons=unsupported_reasons)
    device = Device("T", kind, mp.Mask.of(0))
    assert route(FeMeta(name="tables.join"), device).fits
    assert route(meta(), device).reasons == ("it runs tables only, not outside.op",)


def test_a_kind_compiles_a_dialect():
    lowering = Lowering(("stablehlo",), lambda make, types, config: make(types))
    device = Device("S", DeviceKind("S", Form.SHARE, lowering=lowering), mp.Mask.of([0, 1]))
    assert route(meta(dialects=("stablehlo",)), device).lowering is lowering
    assert not route(meta(dialects=("sql",)), device).fits
    assert not route(meta(dialects=("stablehlo",), targets=("ciphertext",)), device).fits
    of_shares = {"targets": ("share",), "execution_model": "multi_party"}
    own = route(meta(dialects=("stablehlo",), **of_shares), device)
    assert own.fits
    assert own.lowering is None


def test_a_kind_compiles_every_dialect():
    """An enclave takes what a party runs in plain, whatever it is written in."""
    lowering = Lowering((), lambda make, types, config: make(types))
    enclave = Device("E", DeviceKind("ENCLAVE", Form.HANDLE, lowering=lowering), mp.Mask.of(0))
    assert route(meta(dialects=("sql",)), enclave).lowering is lowering
    assert route(meta(dialects=("he",), targets=("handle",)), enclave).lowering is None
    assert not route(meta(dialects=("he",), targets=("ciphertext",)), enclave).fits


def test_a_count_is_a_number_with_a_sign():
    for wrong in (0, -1, "3", "~3", ">=0", 1.5):
        with pytest.raises(FeConfigError, match="requires_world_size"):
            meta(capabilities={"requires_world_size": wrong})


# -- through a device


@mp.feop(name="outside.half", dialects=("stablehlo",))
def half(x):
    """A feop of a JAX function: it runs wherever StableHLO does."""
    from mplang_jax import jax_compile_from_data

    return jax_compile_from_data(lambda x: x / 2, x)


@mp.feop(name="outside.liar", dialects=("stablehlo",))
def liar(x):
    """Says StableHLO, and gives something else."""
    import toy

    return toy.scale(x, by=2)


@pytest.mark.needs("jax", "spu")
@pytest.mark.parametrize("where", ["P0", "SP0"])
def test_one_feop_runs_in_plain_and_on_shares(simulate, mode, where):
    def program():
        x = mp.put(where, np.float32([1, 3]))
        return mp.reveal(mp.device(where)(half)(x))

    sim = simulate(2)
    for found in mp.fetch(sim, mp.evaluate(sim, program, mode=mode)):
        np.testing.assert_allclose(found, [0.5, 1.5], atol=1e-4)


@pytest.mark.needs("jax", "spu")
def test_a_refusal_names_the_requirement_and_the_devices_that_would_take_it(simulate):
    @mp.simple_op("outside.plain_only")
    def plain_only(x: mp.TensorType) -> mp.TensorType:
        return x

    with pytest.raises(
        FeCapabilityError,
        match=r"test_routing\.py:\d+: SP0 .* cannot run outside\.plain_only: it works on values of "
        r"form plain.*it runs at one party, the device has 2\. Devices here that can: P0, P1",
    ):
        mp.evaluate(simulate(2), lambda: mp.device("SP0")(plain_only)(mp.seal(1.0)))


@pytest.mark.needs("jax", "spu")
def test_a_feop_of_another_dialect_than_it_says(simulate):
    with pytest.raises(FeCapabilityError, match=r"an SPU compiles StableHLO.*got toy\.scale"):
        mp.evaluate(simulate(2), lambda: mp.device("SP0")(liar)(mp.seal(np.float32(1))))
