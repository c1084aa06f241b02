"""SPU runner for tests and benchmarks: functions on shares, without mplang programs."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
from mplang_spu import engine
from mplang_spu.config import FRACTION_BITS
from mplang_spu.link import LinkCommunicator
from mplang_spu.lowering import PASSES, Target, lower
from mplang_stablehlo.ext import canonical

MEMBERS = {"ABY3": 3, "CHEETAH": 2, "SEMI2K": 2}


def stablehlo(fn, *args, target=None) -> str:
    """Return the StableHLO of a function, as JAX lowers it for SPU."""
    target = target or Target("ABY3", "FM128", FRACTION_BITS["FM128"])
    with jax.enable_x64(_is_wide(args)), engine.spu_tracing(target):
        return canonical(jax.jit(fn, keep_unused=True).lower(*args).as_text())


def numpy_of(fn, *args):
    """Return XLA's results, in the types of the arguments."""
    with jax.enable_x64(_is_wide(args)):
        return jax.tree.map(np.asarray, jax.jit(fn)(*args))


def float64_of(fn, *args):
    """Return XLA's results with all floats of 64 bits."""
    args = [arg.astype(np.float64) if arg.dtype.kind == "f" else arg for arg in args]
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(fn)(*args))


def run(fn, *args, **how):
    """Run a function on secret arguments; return its results in the same nest."""
    return prepare(fn, *args, **how)()


def prepare(fn, *args, protocol="ABY3", field="FM128", fxp=None, passes=PASSES):
    """Compile a function and share its arguments; return a callable that runs it."""
    fxp = fxp or FRACTION_BITS[field]
    target = Target(protocol, field, fxp)
    code = engine.build(
        lower(stablehlo(fn, *args, target=target), target, passes), [True] * len(args)
    )
    with jax.enable_x64(_is_wide(args)):
        outs, tree = jax.tree.flatten(jax.eval_shape(fn, *args))
    started = _shared(code, args, protocol, field, fxp)

    def job():
        made = started(len(outs))
        pairs = zip(made, outs, strict=True)
        return jax.tree.unflatten(tree, [x.astype(o.dtype).reshape(o.shape) for x, o in pairs])

    return job


def run_text(text, args, gives, secret=None, protocol="SEMI2K", field="FM128"):
    """Run StableHLO text, on secret arguments by default; return results of the given types."""
    fxp, secret = FRACTION_BITS[field], secret or [True] * len(args)
    code = engine.build(lower(text, Target(protocol, field, fxp)), secret)
    made = _shared(code, args, protocol, field, fxp, secret)(len(gives))
    return [
        x.astype(kind.dtype.numpy).reshape(kind.shape) for x, kind in zip(made, gives, strict=True)
    ]


def _shared(code, args, protocol, field, fxp, secret=None):
    members = MEMBERS[protocol]
    config = {"protocol": protocol, "field": field, "fxp_fraction_bits": fxp, "exp_mode": "pade"}
    io, name = engine.io(members, protocol, field, fxp), uuid.uuid4().hex
    shares = [
        io.make_shares(np.asarray(arg, order="C"), engine.visibility(is_secret))
        for arg, is_secret in zip(args, secret or [True] * len(args), strict=True)
    ]
    shares += [io.make_shares(arg, engine.visibility(False)) for arg in code.operands]

    def member(rank, results):
        names = [f"P{i}" for i in range(members)]
        link = LinkCommunicator(rank, names, mem_link=True, name=name, timeout=60)
        machine = engine.Engine(link, config)
        try:
            return machine.run(code.code, [share[rank] for share in shares], results)
        finally:
            machine.close()

    def job(results):
        with ThreadPoolExecutor(members) as pool:
            pieces = list(pool.map(lambda rank: member(rank, results), range(members)))
        return [np.asarray(io.reconstruct(list(each))) for each in zip(*pieces, strict=True)]

    return job


def _is_wide(args) -> bool:
    return any(arg.dtype.itemsize == 8 for arg in args)


def off(found, exact) -> float:
    """Return the largest error of a result, relative to its largest number."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(exact), strict=True)
    return max((_off(np.asarray(a), np.asarray(b)) for a, b in pairs), default=0.0)


def _off(found, exact) -> float:
    if not exact.size:
        return 0.0
    if exact.dtype.kind != "f":
        return float(not np.array_equal(found, exact))
    largest = np.abs(exact).max()
    return float(np.abs(found.astype(np.float64) - exact).max() / (largest or 1))
