"""Programs of several kinds, with what they are given and what comes of it."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from mplang_cli.artifact.arguments import stand_in

import mplang_core as mp

TWO = mp.ClusterSpec.simple(2)
Pair = collections.namedtuple("Pair", "first second")

SEMI2K = TWO
if find_spec("mplang_spu"):
    SEMI2K = mp.ClusterSpec.from_dict(
        {
            "nodes": [{"name": "bank", "address": "bank:1"}, {"name": "shop", "address": "shop:1"}],
            "devices": {
                "P0": {"kind": "PPU", "members": ["bank"]},
                "P1": {"kind": "PPU", "members": ["shop"]},
                "SP0": {"kind": "SPU", "members": [0, 1], "config": {"protocol": "SEMI2K"}},
            },
        }
    )


@dataclass(frozen=True)
class Case:
    """A program.

    Attributes:
        fn: the function.
        types: of its arguments, as in ``mplang compile``.
        data: its arguments, as in ``mplang run``.
        results: the values of its results, leaf by leaf.
        needs: the plugins that it needs.
    """

    fn: Callable[..., Any]
    types: Mapping[str, str]
    data: Mapping[str, Any]
    results: list[Any]
    needs: tuple[str, ...] = ()
    cluster: mp.ClusterSpec = TWO

    def compiled(self) -> mp.CompiledFunction:
        types = {name: stand_in(text, self.cluster, name) for name, text in self.types.items()}
        compiled = mp.CompiledFunction(self.fn, self.cluster)
        compiled.trace(None, *types.values())
        return compiled

    def args(self, host: mp.simp.SimpHost) -> list[Any]:
        """The arguments, as values of a host."""
        made = []
        with mp.with_ctx(host):
            for name, text in self.types.items():
                base, _, place = text.partition("@")
                data = np.array(self.data[name], mp.DType.of(base.partition("[")[0]).numpy)
                made.append(mp.put(place, data) if place else data)
        return made


def swap(x, y):
    """Core alone: messages, a constant, and a nest of results."""
    there = mp.pshfl_s(x, 1, [0])
    return {"both": Pair(there, [y]), "none": None, "limit": mp.constant([0.5, 1.5])}


@mp.builtin_function
def handed_over(x):
    return mp.pshfl_s(x, [0, 1], [0, 0])


def call(x):
    """A function that is called as one op, twice."""
    return handed_over(handed_over(x))


def plain(a, b):
    """Arrays, in plain, at their parties."""
    doubled = mp.device("P0")(lambda a, b: {"twice": a * 2, "sum": (a + b).sum()})(a, b)
    return doubled, mp.put("P1", doubled["sum"])


def loop(limit, step):
    """A loop whose predicate all know, and a branch."""
    total = mp.while_loop(lambda t: t < limit, lambda t: t + step, step)
    return mp.uniform_cond(total > limit, lambda: total - limit, lambda: total)


def shares(a, b):
    """Secret shares: one result is revealed, one is kept."""
    gap = mp.device("SP0")(lambda a, b: a.mean() - b.mean())(a, b)
    return mp.reveal(gap, to="P1"), gap


def secret_loop(limit, step):
    """A loop on shares, until a revealed predicate says so."""

    def below(total):
        return mp.reveal(mp.device("SP0")(lambda t, limit: t < limit)(total, limit))

    total = mp.device("SP0")(lambda s: s)(step)
    add = mp.device("SP0")(lambda t, s: t + s)
    return mp.reveal(mp.while_loop(below, lambda t: add(t, step), total), to="P0")


def sealed(x):
    """Keys, their exchange, and a ciphertext."""
    from mplang_crypto import agree, decrypt, encrypt, keypair

    here, there = mp.device("P0"), mp.device("P1")
    mine, public = here(keypair)()
    theirs, their_public = there(keypair)()
    key = here(agree)(mine, mp.put("P0", their_public), info="test")
    sent = mp.put("P1", here(encrypt)(x, key))
    return there(decrypt)(sent, there(agree)(theirs, mp.put("P1", public), info="test"))


def close(found: Any, expected: Any) -> bool:
    """Tell whether nested numbers are the same, but for what fixed-point numbers lose."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(close, found, expected))
    return found == expected if expected is None else abs(found - expected) < 1e-3


CASES = {
    "swap": Case(
        swap,
        {"x": "f64[]@P0", "y": "i64[2]"},
        {"x": 2.5, "y": [1, 2]},
        [[None, 2.5], [[1, 2], [1, 2]], [[0.5, 1.5], [0.5, 1.5]]],
    ),
    "call": Case(call, {"x": "i64[2]@P0"}, {"x": [3, 4]}, [[[3, 4], [3, 4]]]),
    "plain": Case(
        plain,
        {"a": "f32[2]@P0", "b": "f32[2]"},
        {"a": [1, 2], "b": [10, 20]},
        [33.0, [2.0, 4.0], 33.0],
        ("jax",),
    ),
    "loop": Case(
        loop, {"limit": "i64[]", "step": "i64[]"}, {"limit": 10, "step": 4}, [[2, 2]], ("jax",)
    ),
    "shares": Case(
        shares,
        {"a": "f32[3]@P0", "b": "f32[2]@P1"},
        {"a": [1, 2, 6], "b": [0.5, 1.5]},
        [2.0, None],
        ("jax", "spu"),
        SEMI2K,
    ),
    "secret_loop": Case(
        secret_loop,
        {"limit": "i64[]@P0", "step": "i64[]@P1"},
        {"limit": 10, "step": 4},
        [12],
        ("jax", "spu"),
        SEMI2K,
    ),
    "sealed": Case(sealed, {"x": "f32[3]@P0"}, {"x": [1, 2, 3]}, [[1.0, 2.0, 3.0]], ("crypto",)),
}
