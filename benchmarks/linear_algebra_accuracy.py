"""Measure linear algebra on SPU, and write the table into the plugin's README.

Matrices have singular values from 1 to 1e-4. The error is that of the tests: of a decomposition its
residual, or how far its vectors are from orthonormal; of a solution its residual; both relative to
the norms. Seconds are of CPU, of all parties in one process, after the program was compiled.
"""

from __future__ import annotations

import pathlib
import sys
import time
import warnings

import jax
import numpy as np

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "plugins/mplang_spu/tests"))
import linear_algebra_samples  # noqa: E402 - the functions that tests run
import spu_runner  # noqa: E402 - runs a function on SPU alone

README = ROOT / "plugins/mplang_spu/README.md"
BEGIN = "<!-- linear algebra: by benchmarks/linear_algebra_accuracy.py -->\n"
END = "<!-- end of linear algebra -->\n"
CASES = [("ABY3", 10), ("CHEETAH", 10), ("ABY3", 32)]
CONDITION = 1e4


def measured(name: str, protocol: str, rows: int) -> tuple[float, float]:
    """Return the error, and the seconds of CPU."""
    fn, kind, error, _ = linear_algebra_samples.FUNCTIONS[name]
    a = linear_algebra_samples.INPUTS[kind](rows, CONDITION)
    run = spu_runner.prepare(fn, a, protocol=protocol)
    before = time.process_time()
    found = run()
    seconds = time.process_time() - before
    found = jax.tree.map(lambda x: np.asarray(x, np.float64), found)
    return float(error(found, a.astype(np.float64))), seconds


def main() -> None:
    """Measure the functions, and write the table."""
    warnings.simplefilter("ignore")
    cells: dict[str, list[str]] = {name: [] for name in linear_algebra_samples.FUNCTIONS}
    for protocol, rows in CASES:
        for name, row in cells.items():
            error, seconds = measured(name, protocol, rows)
            row += [f"{error:.0e}", f"{seconds:.1f}"]
            print(protocol, rows, name, *row[-2:], flush=True)
    head = ["function", *(f"{protocol}, n = {rows}: error | CPU s" for protocol, rows in CASES)]
    lines = [f"| {' | '.join(head)} |\n", "|" + " --- |" * (1 + 2 * len(CASES)) + "\n"]
    lines += [f"| `{name}` | {' | '.join(row)} |\n" for name, row in cells.items()]
    text = README.read_text(encoding="utf-8")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    README.write_text(text[:start] + "".join(lines) + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
