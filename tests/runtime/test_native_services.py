"""Native services that kernels declare, and what a kernel gets of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import AdmissionError, KernelError
from mplang_core.ext import NativeSpec, native_calls, native_of, native_ops, worker_kernels

OP = "native_test.op"


@pytest.fixture(autouse=True)
def no_kernel():
    yield
    worker_kernels.remove(OP)
    native_ops.remove(OP)


def kernel(ctx, x):
    return x


def context(natives):
    return SimpleNamespace(
        interpreter=SimpleNamespace(natives=natives), op=SimpleNamespace(opcode=OP)
    )


def test_a_kernel_gets_the_service_that_it_declares():
    mp.kernel(OP, native="abacus")(kernel)
    assert native_of(OP) == "abacus"
    assert native_calls(context({"abacus": "the calls", "spu": "others"})) == "the calls"
    assert native_calls(context(None)) is None  # as in a simulator
    assert native_calls(SimpleNamespace(interpreter=np)) is None  # a backend without observation


def test_a_session_without_it_is_told_how_to_get_it():
    mp.kernel(OP, native="abacus")(kernel)
    with pytest.raises(AdmissionError) as caught:
        native_calls(context({}))
    assert OP in str(caught.value)
    assert 'without native: ["abacus"]' in str(caught.value)
    assert "where the package with the kernel is installed" in str(caught.value)


def test_a_kernel_that_declares_none_gets_none():
    mp.kernel(OP)(kernel)
    with pytest.raises(KernelError, match="its kernel declares no native="):
        native_calls(context({"abacus": "the calls"}))


def test_another_kernel_takes_its_declaration_along():
    mp.kernel(OP, native="abacus")(kernel)
    mp.kernel(OP)(kernel)
    assert native_of(OP) is None


def test_a_kernel_of_hosts_declares_none():
    with pytest.raises(ValueError, match="whose kernels have the role 'worker'"):
        mp.kernel(OP, role="host", native="abacus")(kernel)


def test_what_is_no_service_is_refused():
    with pytest.raises(TypeError, match="a function or a NativeSpec, got 5"):
        NativeSpec.of(5)
