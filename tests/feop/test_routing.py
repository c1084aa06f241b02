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
        ({"execution_model": "multi_party"}, PAIR, None),
        ({"execution_model": "multi_party"}, ONE, "several parties run it together"),
        ({"execution_model": "in_controller"}, PAIR, None),
        ({"op_kind": "transform"}, PAIR, None),
        ({"targets": ("PLAIN", "TEE")}, ONE, None),
        ({"targets": ("SPU",)}, ONE, "targets are SPU, the device is a PLAIN"),
        (
            {"capabilities": Capabilities(requires_device=DeviceRequirement(kind=("TEE",)))},
            ONE,
            "it requires a TEE",
        ),
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
    found = route(meta(targets=("SPU",), capabilities=Capabilities(requires_world_size=9)), PAIR, 2)
    assert len(found.reasons) == 3


def test_a_kind_brings_its_own_predicate():
    def unsupported_reasons(meta, members):
        return [] if meta.family == "tables" else [f"an enclave runs tables only, not {meta.name}"]

    enclave = Device(
        "T", DeviceKind("TEE", Form.HANDLE, unsupported_reasons=unsupported_reasons), mp.Mask.of(0)
    )
    assert route(FeMeta(name="tables.join"), enclave).fits
    assert route(meta(), enclave).reasons == ("an enclave runs tables only, not outside.op",)


def test_a_kind_compiles_a_dialect():
    lowering = Lowering(("stablehlo",), lambda make, types, config: make(types))
    device = Device("S", DeviceKind("S", Form.SHARE, lowering=lowering), mp.Mask.of([0, 1]))
    assert route(meta(dialects=("stablehlo",)), device).lowering is lowering
    assert not route(meta(dialects=("sql",)), device).fits
    assert not route(meta(dialects=("stablehlo",), targets=("PPU",)), device).fits
    own = route(meta(dialects=("stablehlo",), execution_model="multi_party"), device)
    assert own.fits
    assert own.lowering is None


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
        match=r"test_routing\.py:\d+: SP0 .* cannot run outside\.plain_only: it runs at one party, "
        r"the device has 2\. Devices here that can: P0, P1",
    ):
        mp.evaluate(simulate(2), lambda: mp.device("SP0")(plain_only)(mp.seal(1.0)))


@pytest.mark.needs("jax", "spu")
def test_a_feop_of_another_dialect_than_it_says(simulate):
    with pytest.raises(FeCapabilityError, match=r"an SPU compiles StableHLO.*got toy\.scale"):
        mp.evaluate(simulate(2), lambda: mp.device("SP0")(liar)(mp.seal(np.float32(1))))
