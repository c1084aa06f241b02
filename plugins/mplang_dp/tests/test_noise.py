"""Noise: of the distribution that is stated, and drawn so that nobody knows it."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from mplang_dp.noise import gaussian, laplace, noisy

SAMPLES = 50_000
# by the theorem of Dvoretzky, Kiefer and Wolfowitz: larger once in 1e9 runs
MOST = math.sqrt(math.log(2 / 1e-9) / 2 / SAMPLES)
STEPS = 1 << 20


def farthest(sample, cdf) -> float:
    """Return how far the sample's distribution is from another one, at most."""
    found = np.sort(np.asarray(sample, float))
    expected = np.array([cdf(x) for x in found])
    ranks = np.arange(1, len(found) + 1) / len(found)
    return float(
        max(np.abs(ranks - expected).max(), np.abs(ranks - 1 / len(found) - expected).max())
    )


def laplace_cdf(scale):
    return lambda x: 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)


def normal_cdf(scale):
    return lambda x: 0.5 * (1 + math.erf(x / scale / math.sqrt(2)))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_laplace_noise_is_of_its_scale(epsilon):
    sample = laplace(STEPS, epsilon)([0] * SAMPLES)
    scale = STEPS / epsilon
    assert farthest(sample, laplace_cdf(scale)) < MOST
    assert farthest(sample, laplace_cdf(1.1 * scale)) > MOST  # the test would see another one
    assert farthest(sample, laplace_cdf(0.9 * scale)) > MOST


def test_gaussian_noise_is_of_its_scale():
    """Of the scale by which the zCDP of Bun and Steinke gives epsilon and delta."""
    epsilon, delta = 0.5, 1e-6
    sample = gaussian(float(STEPS), epsilon, delta)([0] * SAMPLES)
    scale = float(np.std(sample))
    assert farthest(sample, normal_cdf(scale)) < MOST
    rho = (STEPS / scale) ** 2 / 2
    bound = rho + 2 * math.sqrt(rho * math.log(1 / delta))  # not tight, so it is above epsilon
    assert epsilon < bound < 1.3 * epsilon
    classical = STEPS * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert 0.7 * classical < scale < classical


def test_a_discrete_laplace_distribution_is_that_of_its_numbers():
    sample = np.asarray(laplace(1, 1.0)([0] * SAMPLES))
    alpha = math.exp(-1.0)
    for number in range(-3, 4):
        expected = (1 - alpha) / (1 + alpha) * alpha ** abs(number)
        spread = math.sqrt(expected * (1 - expected) / SAMPLES)
        assert abs((sample == number).mean() - expected) < 6.5 * spread


@pytest.mark.parametrize("epsilon", [1e-6, 5e-7, 0.3, 20.0])
@pytest.mark.parametrize("delta", [0.0, 5e-13, 1e-6, 0.01])
@pytest.mark.parametrize(
    "sensitivity", [1, pytest.param(7, marks=pytest.mark.long("16 noises more: 5 s")), STEPS]
)
def test_each_epsilon_and_delta_that_is_allowed_has_noise(epsilon, delta, sensitivity):
    assert len(noisy([1, 2], sensitivity, float(sensitivity), epsilon, delta)) == 2


def test_forked_processes_do_not_draw_the_same():
    """Engines are forked from a process that has loaded OpenDP."""
    mechanisms = laplace(STEPS, 1.0), gaussian(float(STEPS), 1.0, 1e-6)
    for each in mechanisms:
        each([0])
    found = []
    for _ in range(8):
        begin, end = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(end, repr([each([0, 0]) for each in mechanisms]).encode())
            os._exit(0)
        os.close(end)
        found.append(os.read(begin, 1000))
        os.close(begin)
        os.waitpid(child, 0)
    assert len(set(found)) == 8
