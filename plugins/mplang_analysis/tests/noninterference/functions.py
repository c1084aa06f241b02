"""Fixed pool of functions of generated programs, so that compilers reuse their results."""

from __future__ import annotations

import jax
from mplang_spu import SpuConfig
from mplang_spu.config import resolve_config
from mplang_spu.ops import run_jax

import mplang_core as mp

from .own_data import load as load, read as read


@jax.jit
def add(x, y):
    return x + y


@jax.jit
def subtract(x, y):
    return x - y


@jax.jit
def multiply(x, y):
    return x * y


@jax.jit
def replace(x, y):
    return 0 * x + y


@jax.jit
def affine(x):
    return x + x + 3


@jax.jit
def same(x):
    return x


@jax.jit
def increment(x):
    return x + 1


@jax.jit
def less(x, y):
    return x < y


@jax.jit
def even(x):
    return x % 2 == 0


@jax.jit
def modulo_three(x):
    return x % 3


@jax.jit
def first(x):
    return x[0, 0]


def positive(table):
    return table.filter(table.a > 0)


def total(table):
    return table.aggregate(n=table.a.sum().fill_null(0).cast("int64"))


def on_spu(fn, share, public, members):
    """Return a function for an SPU that takes an operand of which each member has its own copy.

    Devices make none.
    """
    kind = share.base_type
    config = SpuConfig(protocol=kind.protocol, field=kind.field)
    config = resolve_config(config, mp.Mask.from_ranks(members))
    return run_jax(fn, mp.FeSignature((kind, public.base_type)), config=config).pfunc
