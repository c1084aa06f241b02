"""What a feop declares of its operands and results holds where it is called."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import FeCapabilityError, StabilityWarning, TraceError
from mplang_core.ext import Operand

TABLE = mp.TableType((("a", "int64"),))
CLUSTER = mp.ClusterSpec.simple(2)
COUNT = itertools.count()


def declared(name, **fields):
    @mp.simple_op(f"contracts.{name}{next(COUNT)}", reads=(), total=True, **fields)
    def op(x: mp.BaseType) -> mp.BaseType:
        return x

    return op


@pytest.mark.parametrize(
    ("spec", "fits", "refused"),
    [
        ({"kind": "Tensor"}, mp.TensorType("f32", (3,)), TABLE),
        ({"kind": "tensor"}, mp.TensorType("f32", (3,)), TABLE),
        ({"kind": "Table"}, TABLE, mp.TensorType("f32", (3,))),
        ({"kind": "Scalar"}, mp.TensorType("f32"), mp.TensorType("f32", (1,))),
        ({"kind": "Bytes"}, mp.TensorType("u8", (5,)), mp.TensorType("i8", (5,))),
        ({"kind": "Any"}, TABLE, None),
        ({"kind": "other.type"}, None, TABLE),
        (
            {"kind": "Tensor", "schema": mp.TensorType("f32", (3,))},
            mp.TensorType("f32", (3,)),
            mp.TensorType("f64", (3,)),
        ),
        ({"kind": "Any", "schema": mp.TableType}, TABLE, mp.TensorType("f32")),
    ],
    ids=str,
)
def test_kinds_and_schemas(spec, fits, refused):
    op = declared("kinds", inputs=(spec,), outputs=({"kind": "Any"},))
    if fits is not None:
        assert mp.fe_materialize(op, Operand(fits)).pfunc.ins_info == (fits,)
    if refused is not None:
        with pytest.raises(
            FeCapabilityError, match=r"contracts\.kinds\d+: operand 0 is .*; it takes"
        ):
            mp.fe_materialize(op, Operand(refused))


def test_a_public_operand_is_public():
    only_public = declared("public", inputs=({"kind": "Tensor", "visibility": ("PUBLIC",)},))
    with mp.with_ctx(mp.TraceContext(CLUSTER)):
        mp.invoke(only_public, mp.constant(1))
        for private in (mp.put("P0", 1), mp.constant(1, parties=0), mp.invoke(toy.rank)):
            with pytest.raises(FeCapabilityError, match=r"operand 0 is PRIVATE i64\[\]; it takes"):
                mp.fe_materialize(only_public, private)


def test_what_is_public_may_be_used_as_if_it_were_private():
    only_private = declared("private", inputs=({"kind": "Tensor", "visibility": ("PRIVATE",)},))
    with mp.with_ctx(mp.TraceContext(CLUSTER)):
        mp.invoke(only_private, mp.constant(1))
        mp.invoke(only_private, mp.put("P0", 1))


def test_visibilities_are_those_of_values_too():
    public = declared("seen", capabilities={"supports_visibility": ("PUBLIC",)})
    with mp.with_ctx(mp.TraceContext(CLUSTER)):
        mp.fe_materialize(public, mp.constant(1))
        with pytest.raises(FeCapabilityError, match="operand 0 is PRIVATE"):
            mp.fe_materialize(public, mp.constant(1, parties=0))


def test_types_of_inputs_and_outputs_by_name():
    floats = declared("floats", capabilities={"input_types": ("f32", "f64")})
    tables = declared("tables", capabilities={"output_types": ("table",)})
    mp.fe_materialize(floats, Operand(mp.TensorType("f64", (2,))))
    with pytest.raises(FeCapabilityError, match=r"operand 0 is a i64\[\]; it takes f32 or f64"):
        mp.fe_materialize(floats, Operand(mp.TensorType("i64")))
    with pytest.raises(FeCapabilityError, match=r"result 0 is f32\[\], .* declared as table"):
        mp.fe_materialize(tables, Operand(mp.TensorType("f32")))


def test_a_result_that_breaks_the_declaration_is_refused():
    for outputs in (({"kind": "Table"},), ({"kind": "Tensor", "visibility": ("SECRET",)},)):
        liar = declared("liar", outputs=outputs)
        with pytest.raises(FeCapabilityError, match=r"contracts\.liar\d+: result 0 is f32"):
            mp.fe_materialize(liar, Operand(mp.TensorType("f32")))


def test_operands_are_held_one_by_one_or_each_against_all():
    @mp.simple_op("contracts.two", inputs=({"kind": "Table"}, {"kind": "Tensor"}))
    def two(t: mp.BaseType, x: mp.BaseType) -> mp.BaseType:
        return x

    table, tensor = Operand(TABLE), Operand(mp.TensorType("f32"))
    mp.fe_materialize(two, table, tensor)
    with pytest.raises(FeCapabilityError, match=r"operand 0 is a f32\[\]; it takes Table"):
        mp.fe_materialize(two, tensor, table)


def test_an_experimental_feop_warns_once_at_the_users_line():
    notes = {"level": "experimental", "notes": "its results will change"}
    young = declared("young", capabilities={"stability": notes})
    with mp.with_ctx(mp.TraceContext(CLUSTER)), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            mp.invoke(young, mp.constant(1))
    (warning,) = [each for each in told if each.category is StabilityWarning]
    assert "is experimental" in str(warning.message)
    assert "its results will change" in str(warning.message)
    assert warning.filename == __file__


# -- the controller


@mp.simple_op("contracts.scaled_here", execution_model="in_controller", reads=(), total=True)
def scaled_here(x: mp.TensorType, *, by: int = 2) -> mp.TensorType:
    """Scale at the controller."""
    return x


RAN = []


@mp.kernel("contracts.scaled_here", role="host")
def _scale(ctx, x, *, by):
    RAN.append("here")
    return x * by


def test_an_op_of_the_controller_runs_there_and_its_result_is_a_literal(simulate, mode):
    def program():
        local = mp.invoke(scaled_here, [1, 2], by=3)
        assert isinstance(local, np.ndarray)  # known while it is traced
        twice = mp.invoke(scaled_here, local)
        at_p1 = mp.device("P1")(scaled_here)(twice, by=1)
        return mp.invoke(toy.add, mp.constant(local), mp.constant(twice)), at_p1

    RAN.clear()
    sim = simulate(2)
    total, at_p1 = mp.evaluate(sim, program, mode=mode)
    assert RAN == ["here"] * 3
    np.testing.assert_array_equal(mp.fetch(sim, total)[0], [9, 18])
    np.testing.assert_array_equal(mp.fetch(sim, at_p1), [6, 12])
    assert str(at_p1.type) == "i64[2]@{1}"


def test_the_controller_does_not_have_what_is_at_the_parties(simulate):
    sim = simulate(2)
    with pytest.raises(
        TraceError,
        match=r"test_io_contracts\.py:\d+: contracts\.scaled_here runs at the controller",
    ):
        mp.evaluate(sim, lambda: mp.invoke(scaled_here, mp.put("P0", 1)))


def test_an_op_of_the_controller_needs_a_kernel_there(simulate):
    @mp.simple_op("contracts.nowhere", execution_model="in_controller")
    def nowhere(x: mp.TensorType) -> mp.TensorType:
        return x

    with pytest.raises(mp.errors.KernelError, match=r"contracts\.nowhere"):
        mp.evaluate(simulate(2), lambda: mp.invoke(nowhere, 1))
