"""What values tell of their types, traced ones and those that a host holds."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mp
from mplang_core import MPType, TensorType
from mplang_core.errors import TraceError

CLUSTER = mp.ClusterSpec.simple(2)


def trace(program, *args):
    return mp.trace(mp.TraceContext(CLUSTER), program, *args)


HERE = r"test_types_of_values\.py:\d+"


def test_a_type_is_a_base_type_and_a_mask():
    kind = MPType(TensorType("f32", (3,)), mp.Mask(0b01))
    assert (kind.base, kind.pmask, str(kind)) == (
        TensorType(np.float32, [3]),
        mp.Mask(1),
        "f32[3]@{0}",
    )
    assert str(MPType(TensorType("i64"), None)) == "i64[]@?"


def test_traced_and_held_values_tell_the_same(simulate):
    kinds = []

    def look(x):
        kinds.append((x._type, x.mptype, x.type, x.pmask, x.shape, x.dtype, x.ndim))
        return x

    sim = simulate(2)
    look(mp.evaluate(sim, look, np.zeros((2, 3), np.float32)))
    assert kinds[0] == kinds[1]
    kind = MPType(TensorType("f32", (2, 3)), mp.Mask(0b11))
    assert kinds[0] == (kind, kind, kind, kind.pmask, (2, 3), np.float32, 2)


def test_inside_of_a_pcall_there_is_no_mask():
    @mp.function
    def at_a_party(x):
        assert x.type == TensorType("i64")
        with pytest.raises(TraceError, match="inside of a pcall and has no mask"):
            _ = x.pmask
        return x

    trace(lambda: mp.simp.pcall_static(0, at_a_party, mp.constant(1)))


def test_what_is_no_tensor_has_no_shape():
    table = MPType(mp.TableType((("id", "int64"),)), mp.Mask(1))
    with pytest.raises(AttributeError, match=HERE + r": table<\[\"id\", \"int64\"\]> has no shape"):
        trace(lambda t: t.shape, table)
    assert trace(lambda t: t if not hasattr(t, "shape") else None, table).out_vars
