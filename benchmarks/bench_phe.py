"""Time of each op on ciphertexts of Paillier's scheme, for one element on one core.

    python benchmarks/bench_phe.py                # keys of 2,048 and 3,072 bits
    python benchmarks/bench_phe.py 4096           # of as many
    python benchmarks/bench_phe.py --elements 400

Beside it the same by hand: heu's own calls, in a loop, without a program and without a result that
is randomized anew. Tables of a key, which its first op makes, are told apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from heu import phe as heu
from mplang_phe import compute
from rich.console import Console
from rich.table import Table


def each(run: Callable[[], object], elements: int) -> float:
    """Return milliseconds for one element."""
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) / elements * 1000


def of_package(bits: int, elements: int) -> dict[str, float]:
    """Measure the ops of the package."""
    secret, *public = compute.run("keygen", {"bits": bits}, [])
    numbers = np.arange(1, elements + 1).astype("<i8").tobytes()
    found = {"tables of a key": each(lambda: compute.run("encrypt", {}, [*public, b""]), 1)}
    (x,) = compute.run("encrypt", {}, [*public, numbers])
    segments = (np.arange(elements) % 8).astype("<i8").tobytes()
    works: dict[str, tuple[str, dict[str, int], list[bytes]]] = {
        "encrypt": ("encrypt", {}, [*public, numbers]),
        "add": ("add", {}, [*public, x, x]),
        "multiply_plain": ("multiply_plain", {}, [*public, x, numbers]),
        "sum": ("sum", {"columns": 1}, [*public, x]),
        "segment_sum": ("segment_sum", {"columns": 1, "count": 8}, [*public, x, segments]),
        "decrypt": ("decrypt", {"size": 9}, [secret, *public, x]),
    }
    compute.run("decrypt", {"size": 9}, [secret, *public, b""])
    for name, (method, sizes, buffers) in works.items():
        found[name] = each(lambda m=method, s=sizes, b=buffers: compute.run(m, s, b), elements)  # type: ignore[misc]
    return found


def by_hand(bits: int, elements: int) -> dict[str, float]:
    """Measure heu's calls."""
    kit = heu.setup(heu.SchemaType.ZPaillier, bits)
    encryptor, evaluator, decryptor = kit.encryptor(), kit.evaluator(), kit.decryptor()
    numbers = range(1, elements + 1)
    x = [encryptor.encrypt_raw(n) for n in numbers]
    return {
        "encrypt": each(lambda: [encryptor.encrypt_raw(n) for n in numbers], elements),
        "add": each(lambda: [evaluator.add(a, a) for a in x], elements),
        "multiply_plain": each(
            lambda: [evaluator.mul(a, n) for a, n in zip(x, numbers, strict=True)], elements
        ),
        "decrypt": each(lambda: [decryptor.decrypt_raw(a) for a in x], elements),
    }


def main() -> None:
    """Measure keys of some sizes, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bits", nargs="*", type=int, default=[2048, 3072])
    parser.add_argument("--elements", type=int, default=200)
    chosen = parser.parse_args()
    table = Table("key, bits", "op", "ms an element", "by hand")
    for bits in chosen.bits:
        hand = by_hand(bits, chosen.elements)
        for name, found in of_package(bits, chosen.elements).items():
            table.add_row(
                str(bits), name, f"{found:.3f}", f"{hand[name]:.3f}" if name in hand else ""
            )
    Console().print(table)


if __name__ == "__main__":
    main()
