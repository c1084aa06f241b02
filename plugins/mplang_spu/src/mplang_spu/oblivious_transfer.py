"""Oblivious transfers of CHEETAH: the way that costs least. Imports neither libspu nor JAX.

CHEETAH compares by oblivious transfers. libspu extends them in two ways: Ferret (Yang et al., CCS
2020) takes seconds to set up, in some 9,000 messages, and sends few bytes then; SoftSpoken (Roy,
CRYPTO 2022) is set up at once, and sends 830 bytes for a comparison of 128 bits. So few comparisons
are cheaper by SoftSpoken, and many by Ferret, the sooner the slower the link is.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from mplang_analysis import Network

from mplang_spu.config import BITS

Way: TypeAlias = Literal["ferret", "softspoken"]

SET_UP = 2.1  # seconds of Ferret's set-up, beside the network
ROUND_TRIPS = 40  # of it
SET_UP_BYTES = 4_300_000
SOFTSPOKEN, FERRET = 19e-6, 23e-6  # seconds of a comparison of 128 bits, set-ups amid included
BYTES = 830 - 70  # that SoftSpoken sends more for a comparison of 128 bits
TURNS = 16
"""Turns that are assumed of a loop: those of most are not known before it runs."""

_WORK = {
    "abs": 1, "atan2": 40, "ceil": 2, "clamp": 2, "convert": 0, "cosine": 30, "divide": 25,
    "equal": 1, "exponential": 16, "exponential_minus_one": 16, "floor": 2, "greater": 1,
    "greater_equal": 1, "less": 1, "less_equal": 1, "log": 18, "log_plus_one": 18, "logistic": 38,
    "maximum": 1, "minimum": 1, "not_equal": 1, "power": 34, "reciprocal": 25,
    "round_nearest_afz": 2, "rsqrt": 18, "sign": 1, "sine": 30, "sqrt": 18, "tanh": 40,
}  # fmt: skip
"""Comparisons that an op takes as long as, for each element."""

_OP = re.compile(r"(?:%\S+ = )?pphlo\.(\w+)")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)!?[a-z]")


def cheapest_way(network: Network, comparisons: float) -> Way:
    """Return the way that takes least time.

    Args:
        network: between the members.
        comparisons: of 128 bits, all of them.

    Example:
        >>> from mplang_analysis import network_of
        >>> [cheapest_way(network_of("lan"), n * 16384) for n in (1, 40, 100)]
        ['softspoken', 'softspoken', 'ferret']
        >>> [cheapest_way(network_of("wan"), n * 16384) for n in (1, 40)]
        ['softspoken', 'ferret']
    """
    set_up = SET_UP + network.seconds(2 * ROUND_TRIPS, SET_UP_BYTES)
    saved = SOFTSPOKEN - FERRET + network.seconds(0, BYTES)
    return "ferret" if comparisons * saved > set_up else "softspoken"


def comparisons_of(code: bytes, config: Mapping[str, object]) -> float:
    """Estimate how many comparisons of 128 bits a compiled program takes as long as.

    Args:
        code: PPHLO.
        config: of the device.

    Returns:
        The estimate; 0 for other protocols than CHEETAH.
    """
    if config["protocol"] != "CHEETAH":
        return 0.0
    return _comparisons_in(code) * BITS[str(config["field"])] / 128


@functools.lru_cache(maxsize=256)
def _comparisons_in(code: bytes) -> float:
    return sum(_comparisons_by_line(code.decode()))


def _comparisons_by_line(code: str) -> Iterator[float]:
    times = [1.0]  # how often the ops of each region run
    elements = 1.0
    for line in code.splitlines():
        text = line.strip()
        if text.startswith("}"):
            times.pop()
        op = _OP.match(text)
        if op is not None and "!pphlo.secret<" in text:
            sizes = _sizes(text)
            elements = max(sizes, default=1.0)
            yield times[-1] * _comparisons_of(op[1], elements)
        if text.endswith("{"):
            inner = elements if text.startswith("reducer(") else 1.0
            loops = TURNS if text.startswith("} do {") else 1.0
            times.append((times[-1] if times else 1.0) * inner * loops)


def _comparisons_of(name: str, elements: float) -> float:
    if name in ("simple_sort", "sort"):
        return elements * math.ceil(math.log2(max(elements, 2))) ** 2 / 4
    return elements * _WORK.get(name, 0)


def _sizes(text: str) -> list[float]:
    dims = (each[1].split("x")[:-1] for each in _TENSOR.finditer(text))
    return [float(math.prod(map(int, each))) for each in dims]
