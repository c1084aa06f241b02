"""Python functions on a device whose kind no frontend names: its lowering gets them in plain."""

from __future__ import annotations

import dataclasses

import pytest

import mplang_core as mp
from mplang_core.device import Device, DeviceKind, Lowering, Transfer, device_kinds
from mplang_core.device.kinds import add_kind, transfers
from mplang_core.errors import FeCapabilityError
from mplang_core.ext import run_program, the_holder
from mplang_core.types import BaseType, Form

pytestmark = pytest.mark.needs("jax", "ibis", "simulator")


@dataclasses.dataclass(frozen=True)
class Sealed(BaseType):
    """Type of a value that is sealed for an enclave at its party."""

    plain: BaseType

    name = "sealed.value"
    form = Form.HANDLE

    def params(self):
        return (self.plain,)

    @classmethod
    def from_params(cls, params):
        return cls(*params)


@mp.simple_op("sealed.seal", total=True)
def seal(x: BaseType) -> BaseType:
    """Seal a value for an enclave."""
    return Sealed(x)


@mp.simple_op("sealed.open", targets=("handle",), total=True)
def unseal(x: BaseType) -> BaseType:
    """Open a value in an enclave."""
    return x.plain


def lower(make, types, config):
    """Compile for an enclave: the op is named, and its operands and results are sealed."""
    program = make([kind.plain for kind in types])
    inside = program.pfunc
    outs = tuple(map(Sealed, inside.outs_info))
    attrs = {"op": inside.fn_type, "takes": tuple(types), "gives": outs}
    sealed = mp.PFunction("sealed.run", tuple(types), outs, attrs)
    return dataclasses.replace(program, pfunc=sealed)


def move_in(value: mp.MPObject, src: Device | None, dst: Device) -> mp.MPObject:
    sealed = run_program(seal(value), mp.Mask.of(the_holder(value)))
    return (
        sealed if sealed.pmask == dst.mask else mp.pshfl_s(sealed, dst.mask, [sealed.pmask.first])
    )


@mp.simple_op("sealed.run", targets=("handle",))
def run(x: BaseType, *, op: str, takes: tuple, gives: tuple) -> BaseType:
    """Run an op of plain values in an enclave."""
    return gives[0]


@pytest.fixture
def enclave():
    """Return the program of a function on an enclave, of an operand of a type."""
    ways = [Transfer(Form.PLAIN, "OUTSIDE", move_in, "auto")]
    kind = DeviceKind("OUTSIDE", Form.HANDLE, lowering=Lowering((), lower), transfers=ways)
    add_kind(kind, "mplang-core")
    devices = {"P": {"kind": "PPU", "members": [0]}, "E": {"kind": "OUTSIDE", "members": [1]}}
    cluster = mp.ClusterSpec([{}, {}], devices)

    def trace(fn, plain, **attrs):
        where = mp.MPType(plain, mp.Mask.of(0))
        ctx = mp.TraceContext(cluster)
        return mp.trace(ctx, lambda x: mp.device("E")(fn)(mp.put("P", x), **attrs), where).program

    yield trace
    device_kinds.remove("OUTSIDE")
    transfers.remove("any plain->OUTSIDE")


def runs(program):
    return [op.attrs["op"] for op in program.graph.walk() if op.opcode == "sealed.run"]


NUMBERS = mp.TensorType("f32", (2,))
PEOPLE = mp.TableType((("age", "int64"),))


def test_functions_of_all_frontends_go_to_it(enclave):
    program = enclave(lambda x: x * 2, NUMBERS)
    assert runs(program) == ["jax.run"]
    assert program.graph.outputs[0].type == mp.MPType(Sealed(NUMBERS), mp.Mask.of(1))
    assert runs(enclave(lambda t: t.filter(t.age > 17), PEOPLE)) == ["ibis.run"]


def test_feops_of_plain_values_go_to_it(enclave):
    from mplang_tables import to_tensor

    assert runs(enclave(to_tensor, PEOPLE, rows=2)) == ["table.to_tensor"]


def test_what_nobody_compiles_says_why(enclave):
    reason = r"no frontend compiles .*\(sealed\.value.*jax\.compile.*: it takes no such operands"
    with pytest.raises(FeCapabilityError, match=reason):
        enclave(lambda x: x, Sealed(NUMBERS))
