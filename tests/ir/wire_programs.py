"""Programs to write and read: one attribute each, or every op of the core."""

from __future__ import annotations

import numpy as np
import toy

import mplang_core as mp
from mplang_core import Mask, MPType, Program, TensorType, parse
from mplang_core.errors import WireError
from mplang_core.ir import Graph, Operation, from_bytes, normalize, print_program, to_bytes


def holding(*values: object, **more: object) -> Program:
    """A program of ops with one attribute ``value`` each, and of one with the rest."""
    ops = [Operation("irtest.any", (), (), {"value": normalize(value)}) for value in values]
    if more:
        ops.append(Operation("irtest.any", (), (), {k: normalize(v) for k, v in more.items()}))
    return Program("p", Mask(0b11), Graph([], ops))


def held(program: Program) -> object:
    return program.graph.ops[0].attrs["value"]


def through_bytes(value: object) -> object:
    return held(from_bytes(to_bytes(holding(value))))


def through_text(value: object) -> object:
    return held(parse(print_program(holding(value))))


def traced() -> Program:
    """A program with every op of the core, constants, and the lines of this file."""

    @mp.builtin_function
    def double(x):
        return mp.invoke(toy.add, x, x)

    def program(x):
        y = mp.invoke(toy.scale, x, by=3, rmask=(0, 1))
        z = mp.pshfl_s(mp.put("P0", y, range=(0, 9)), 2, [0])
        pulled = mp.pshfl(x, mp.invoke(toy.rank, rmask=2))
        big = mp.constant(np.linspace(0, 1, 40))
        w = mp.uniform_cond(mp.constant(True), lambda: x, lambda: double(x))
        v = mp.while_loop(
            lambda s: mp.invoke(toy.less, s, w), lambda s: mp.invoke(toy.add, s, w), x
        )
        return mp.pconv([y, z]), pulled, big, v, mp.simp.pcall_dynamic(toy.scale, mp.keep(v))

    ctx = mp.TraceContext(mp.ClusterSpec.simple(3))
    return mp.trace(ctx, program, MPType(TensorType("i64"), Mask(0b111))).program


def survive(data: bytes) -> None:
    """Bytes are refused by a WireError, or give a program that can be passed on."""
    try:
        program = from_bytes(data)
    except WireError:
        return
    assert from_bytes(to_bytes(program)).digest == program.digest
