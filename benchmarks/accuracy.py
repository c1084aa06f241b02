"""Measure the accuracy of SPU's functions, and write the table into the plugin's README.

Each function gets 40 operands per power of ten, of both signs where it takes them. Errors are
relative to the largest result among the operands of the same power of ten; the table has the
largest error.
"""

from __future__ import annotations

import itertools
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mplang_core as mp

README = pathlib.Path(__file__).parents[1] / "plugins/mplang_spu/README.md"
BEGIN, END = "<!-- accuracy: by benchmarks/accuracy.py -->\n", "<!-- end of accuracy -->\n"
MEMBERS = {"ABY3": 3, "CHEETAH": 2, "SEMI2K": 2}
FIELDS = ["FM128", "FM64"]
PER_TEN = 40
COLUMNS = tuple[float, float]

BOTH, POSITIVE = (-1, 1), (1,)
Row = tuple[str, Callable[..., Any], tuple[int, ...], COLUMNS, COLUMNS]
ROWS: list[Row] = [
    ("`x * x`", lambda x: x * x, BOTH, (1e-4, 8e6), (1e-1, 8e3)),
    ("`1 / x`", lambda x: 1 / x, BOTH, (1e-6, 1e6), (1e-2, 1e2)),
    ("`x / x`", lambda x: x / x, BOTH, (1e-6, 1e20), (1e-2, 1e9)),
    ("`x / 40000`", lambda x: x / 40_000, BOTH, (1e-3, 1e18), (1e2, 1e11)),
    ("`x // 7`, `x % 7`", lambda x: (jnp.round(x) // 7, x % 7), BOTH, (1, 1e7), (1, 1e6)),
    ("`sqrt`", jnp.sqrt, POSITIVE, (1e-6, 1e20), (1e-2, 1e9)),
    ("`1 / sqrt`", jax.lax.rsqrt, POSITIVE, (1e-4, 1e12), (1e-2, 1e3)),
    ("`log`", jnp.log, POSITIVE, (1e-6, 1e20), (1e-2, 1e9)),
    ("`log1p`", jnp.log1p, POSITIVE, (1e-4, 1e20), (1e-1, 1e9)),
    ("`exp`", jnp.exp, BOTH, (1e-3, 31), (1e-2, 18)),
    ("`expm1`", jnp.expm1, BOTH, (1e-4, 31), (1e-1, 18)),
    ("`sigmoid`", jax.nn.sigmoid, BOTH, (1e-3, 1e3), (1e-2, 1e3)),
    ("`tanh`", jnp.tanh, BOTH, (1e-3, 1e3), (1e-1, 1e3)),
    ("`erf`", jax.scipy.special.erf, BOTH, (1e-3, 1e3), (1e-1, 1e3)),
    ("`gelu`", jax.nn.gelu, BOTH, (1e-3, 1e2), (1e-1, 1e2)),
    ("`softplus`", jax.nn.softplus, BOTH, (1e-3, 1e3), (1e-2, 1e3)),
    ("`x ** 1.5`", lambda x: x**1.5, POSITIVE, (1e-3, 1e9), (1e-1, 1e4)),
    ("`x ** 3`", lambda x: x**3, BOTH, (1e-3, 1e4), (1e-1, 1e2)),
    ("`sin`, `cos`", lambda x: (jnp.sin(x), jnp.cos(x)), BOTH, (1e-2, 3), (1e-1, 3)),
    ("`arctan2`", lambda x: jnp.arctan2(x, 1 + x * 0), BOTH, (1e-3, 1e3), (1e-1, 1e3)),
    ("`mean` of rows", lambda x: _rows(x).mean(1), POSITIVE, (1e-3, 1e7), (1e-1, 1e7)),
    ("`std` of rows", lambda x: _rows(x).std(1), POSITIVE, (1e-3, 1e7), (1e-1, 1e2)),
]  # fmt: skip


def _rows(x: Any) -> Any:
    """Make a row of 1,000 numbers of each one, its multiples by 0.001 … 1."""
    return x[:, None] * (jnp.arange(1, 1001, dtype=x.dtype) / 1000)


def operands(signs: tuple[int, ...], low: float, high: float) -> list[np.ndarray]:
    """Return operands by power of ten."""
    tens = np.log10(high / low)
    edges = np.append(np.arange(np.ceil(tens)), tens)
    rows = [np.geomspace(low * 10**a, low * 10**b, PER_TEN) for a, b in itertools.pairwise(edges)]
    return [np.concatenate([sign * row for sign in signs]).astype(np.float32) for row in rows]


def error(sim: mp.Simulator, fn: Callable[..., Any], rows: list[np.ndarray]) -> float:
    """Return the largest error relative to the largest result of its power of ten."""
    x = np.concatenate(rows)
    found = jax.tree.leaves(mp.fetch(sim, mp.evaluate(sim, _program(fn), x)))
    worst = 0.0
    with jax.enable_x64(True):
        exact = jax.tree.leaves(fn(jnp.asarray(x, jnp.float64)))
    for mine, right in zip(found, exact, strict=True):
        off = np.abs(np.asarray(mine, np.float64) - np.asarray(right))
        for start in range(0, len(x), len(rows[0])):
            part = slice(start, start + len(rows[0]))
            worst = max(worst, off[part].max() / np.abs(np.asarray(right)[part]).max())
    return worst


def _program(fn: Callable[..., Any]) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        return mp.reveal(mp.device("SP0")(fn)(mp.seal(x)), to="P0")

    return program


def cluster(protocol: str, field: str) -> mp.ClusterSpec:
    """Return parties, and an SPU of all."""
    names = [f"n{i}" for i in range(MEMBERS[protocol])]
    config = {"protocol": protocol, "field": field}
    devices = {f"P{i}": {"kind": "PPU", "members": [name]} for i, name in enumerate(names)}
    devices["SP0"] = {"kind": "SPU", "members": names, "config": config}
    return mp.ClusterSpec.from_dict({"nodes": [{"name": n} for n in names], "devices": devices})


def main() -> None:
    """Measure the errors, and write the table."""
    warnings.simplefilter("ignore")
    measured: dict[tuple[str, str, str], float] = {}
    for protocol in MEMBERS:
        for field in FIELDS:
            with mp.Simulator(cluster(protocol, field), check_numbers=False, timeout=300) as sim:
                for name, fn, signs, *ranges in ROWS:
                    rows = operands(signs, *ranges[FIELDS.index(field)])
                    measured[name, protocol, field] = error(sim, fn, rows)
                    print(f"{protocol} {field} {name}: {measured[name, protocol, field]:.1e}")
    head = ["function", *(f"{field}: sizes | {' | '.join(MEMBERS)}" for field in FIELDS)]
    lines = ["| " + " | ".join(head) + " |\n", "|" + " --- |" * (1 + 4 * len(FIELDS)) + "\n"]
    for name, _, _, *ranges in ROWS:
        cells = [name]
        for field, (low, high) in zip(FIELDS, ranges, strict=True):
            cells.append(f"{low:.0e} … {high:.0e}")
            cells += [f"{measured[name, protocol, field]:.0e}" for protocol in MEMBERS]
        lines.append("| " + " | ".join(cells) + " |\n")
    text = README.read_text(encoding="utf-8")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    README.write_text(text[:start] + "".join(lines) + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
