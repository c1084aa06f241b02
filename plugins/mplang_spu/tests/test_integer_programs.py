"""Random programs of integers that leave their types, on SPU and in JAX, op by op."""

from __future__ import annotations

import pytest
import spu_runner
from integer_programs import check_as_jax, program


def check(seed: int, protocol: str) -> None:
    fn, args = program(seed)
    check_as_jax(fn, args, spu_runner.run(fn, *args, protocol=protocol))


@pytest.mark.parametrize("seed", range(5))
def test_random_programs_of_integers_wrap_as_jax_does(seed):
    check(seed, "ABY3")


@pytest.mark.long("200 random programs on two protocols, and 20 on CHEETAH")
@pytest.mark.parametrize(
    ("seed", "protocol"),
    [
        *((seed, protocol) for seed in range(5, 212) for protocol in ("ABY3", "SEMI2K")),
        *((seed, "CHEETAH") for seed in range(20)),
    ],
)
def test_so_do_two_hundred_on_each_protocol(seed, protocol):
    check(seed, protocol)
