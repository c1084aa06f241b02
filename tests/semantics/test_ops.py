"""Ops that a program declares: the types they derive, how they are called, and their kernels."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mp
from mplang_core import TensorType
from mplang_core.errors import FeConfigError, TraceError
from mplang_core.feop import unflatten

CLUSTER = mp.ClusterSpec.simple(2)


def trace(program, *args):
    return mp.trace(mp.TraceContext(CLUSTER), program, *args)


def run(sim, program, mode, *args):
    return mp.fetch(sim, mp.evaluate(sim, program, *args, mode=mode))


@mp.simple_op("optest.encrypt")
def encrypt(x: TensorType, key: TensorType, *, key_size: int) -> TensorType:
    """Derives types only."""
    if key.shape:
        raise TypeError("expected a scalar as the key")
    return TensorType("i64", x.shape)


@mp.kernel("optest.encrypt")
def _encrypt(ctx, x, key, *, key_size):
    return np.asarray(x ^ (key % key_size))


def test_an_op_is_used_by_its_name_and_seen_by_its_type():
    def program(plain, key):
        ct = mp.invoke(encrypt, plain, key, key_size=2048)
        assert str(ct.mptype.base) == "i64[3]"
        return ct

    trace(program, np.arange(3), 5)
    assert mp.registry.get("optest.encrypt") is encrypt


def test_an_op_gives_a_function_its_values_and_the_nest_of_its_results(simulate, mode):
    def seal(data, key):
        pfunc, mp_inputs, out_tree = encrypt(data, key, key_size=4096)
        assert isinstance(pfunc, mp.PFunction)
        assert pfunc.fn_type == "optest.encrypt"
        assert [str(kind) for kind in (*pfunc.ins_info, *pfunc.outs_info)] == [
            "i64[3]",
            "i64[]",
            "i64[3]",
        ]
        assert pfunc.attrs == {"key_size": 4096}
        assert [*map(id, mp_inputs)] == [id(data), id(key)]
        return unflatten(out_tree, mp.peval(pfunc, mp_inputs))

    found = run(simulate(2), mp.function(seal), mode, np.arange(3), 5)
    np.testing.assert_array_equal(found, [np.arange(3) ^ 5] * 2)


def test_an_op_takes_values_by_position_and_attributes_by_keyword():
    with pytest.raises(TraceError, match=r"test_ops\.py:\d+: optest.encrypt: it takes multi-p"):
        trace(lambda x: encrypt(x, 5, key_size=1), 1)
    with pytest.raises(TraceError, match=r"test_ops\.py:\d+.*attributes missing: key_size"):
        trace(lambda x: encrypt(x, x), 1)
    with pytest.raises(
        TraceError, match=r"test_ops\.py:\d+.*optest.encrypt: TraceVar is not an attr"
    ):
        trace(lambda x: encrypt(x, x, key_size=x), 1)


def test_what_the_op_says_of_types_is_told_with_the_users_line():
    with pytest.raises(TraceError, match=r"test_ops\.py:\d+.*expected a scalar as the key"):
        trace(lambda x: encrypt(x, x, key_size=1), np.arange(3))


def test_an_op_has_a_signature_that_is_written_out():
    with pytest.raises(FeConfigError, match=r"no \*args or \*\*kwargs"):

        @mp.simple_op("optest.any")
        def any_of(*args: TensorType) -> TensorType:
            """Takes anything."""
            return args[0]


def test_a_kernel_is_found_by_the_ops_name_alone():
    """No op knows a kernel: what runs it is asked of the table of who runs it."""
    from mplang_core.runtime import host_kernels, worker_kernels

    assert worker_kernels.get("optest.encrypt") is _encrypt
    assert host_kernels.get("optest.encrypt") is None
