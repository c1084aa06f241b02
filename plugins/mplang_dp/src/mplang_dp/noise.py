"""Noise of OpenDP: discrete Laplace and Gaussian, drawn exactly from the system's random numbers.

Numbers are integers before noise is added, since floats have gaps that tell of what they were
(Mironov, "On significance of the least significant bits for differential privacy", CCS 2012).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

LOWEST = 0.05  # of the norm, a scale that is enough for no epsilon that is allowed


def noisy(
    numbers: Sequence[int], sensitivity: int, norm: float, epsilon: float, delta: float
) -> Any:
    """Return integers with noise.

    Args:
        numbers: the integers.
        sensitivity: how much one unit changes all of them together, at most.
        norm: how far one unit moves them as a point, at most (the L2 norm).
        epsilon: how much the result may tell of one unit.
        delta: 0 for a Laplace distribution, of scale ``sensitivity / epsilon``; else a Gaussian
            one, and the probability that it tells more.

    Returns:
        A list of integers.

    Example:
        >>> abs(noisy([10], 1, 1.0, 20.0, 0.0)[0] - 10) < 10
        True
    """
    make = laplace(sensitivity, epsilon) if not delta else gaussian(norm, epsilon, delta)
    return make(list(numbers))


@functools.lru_cache(maxsize=256)
def laplace(sensitivity: int, epsilon: float) -> Any:
    """Return the mechanism that adds Laplace noise.

    Args:
        sensitivity: how much one unit changes all numbers together, at most.
        epsilon: how much the result may tell of one unit.
    """
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import binary_search_param

    _enable()
    domain, metric = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")

    def make(scale: float) -> Any:
        return make_laplace(domain, metric, scale)

    bounds = (sensitivity / epsilon / 2, 2 * sensitivity / epsilon)
    return make(binary_search_param(make, d_in=sensitivity, d_out=epsilon, bounds=bounds))


@functools.lru_cache(maxsize=256)
def gaussian(norm: float, epsilon: float, delta: float) -> Any:
    """Return the mechanism that adds Gaussian noise.

    Args:
        norm: how far one unit moves the numbers as a point, at most.
        epsilon: how much the result may tell of one unit.
        delta: the probability that it tells more.
    """
    from opendp.combinators import make_fix_delta, make_zCDP_to_approxDP
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import binary_search_param

    _enable()
    domain, metric = vector_domain(atom_domain(T="i64")), l2_distance(T=float)

    def make(scale: float) -> Any:
        return make_gaussian(domain, metric, scale)

    def bounded(scale: float) -> Any:
        return make_fix_delta(make_zCDP_to_approxDP(make(scale)), delta)

    # twice what the classical theorem asks for, which holds for epsilon below 1
    largest = 2 * norm * math.sqrt(2 * math.log(1.25 / delta)) / min(epsilon, 1.0)
    bounds = (LOWEST * norm, largest)
    scale = binary_search_param(bounded, d_in=norm, d_out=(epsilon, delta), bounds=bounds)
    return make(scale)


@functools.cache
def _enable() -> None:
    from opendp.mod import enable_features

    enable_features("contrib")
