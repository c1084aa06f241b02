"""Profile of libspu by op: where two and three parties' time goes, as a table of docs/spu-time.md.

Each program runs twice on links in memory; the second run counts, as the first one sets up the
oblivious transfers of CHEETAH. Seconds are those of one party, bytes and messages what it sends.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from spu_work import f32, step

PAGE = Path(__file__).parents[1] / "docs/spu-time.md"
BEGIN, END = "<!-- profile: by benchmarks/profile_spu.py -->\n", "<!-- end of profile -->\n"
PROTOCOLS = {"ABY3": 3, "CHEETAH": 2}
SHOWN = 4  # ops of a program
LINE = re.compile(
    r"- pphlo\.(\w+)(?:: [\w.]+)?, executed (\d+) times, duration ([\d.e-]+)s, "
    r"send bytes (\d+) recv bytes \d+, send actions (\d+)"
)


def network(x: Any, a: Any, b: Any) -> Any:
    """Choose the largest score of a network of two layers."""
    return jnp.argmax(jax.nn.relu(x @ a) @ b, axis=1)


def nearest(x: Any, centers: Any) -> Any:
    """Choose the nearest center of each row."""
    return jnp.argmin(((x[:, None, :] - centers) ** 2).sum(2), axis=1)


def standardized(x: Any) -> Any:
    """Scale columns to mean 0 and deviation 1."""
    return (x - x.mean(0)) / x.std(0)


def ridge(x: Any, y: Any) -> Any:
    """Solve a ridge regression."""
    return jnp.linalg.solve(x.T @ x + jnp.eye(x.shape[1]), x.T @ y)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "compare 16,384 numbers": (lambda x, y: x < y, (f32(16384), f32(16384))),
    "multiply 16,384 numbers": (lambda x, y: x * y, (f32(16384), f32(16384))),
    "the logistic function of 4,096": (jax.nn.sigmoid, (f32(4096),)),
    "a softmax of 200 rows of 10": (lambda x: jax.nn.softmax(x, axis=1), (f32(200, 10),)),
    "a step of logistic regression, 455 × 30": (step, (f32(455, 30), f32(455), f32(30))),
    "a network of 64, 32 and 10, 100 rows": (network, (f32(100, 64), f32(64, 32), f32(32, 10))),
    "the nearest of 3 centers, 500 × 4": (nearest, (f32(500, 4), f32(3, 4))),
    "standardize 500 × 10": (standardized, (f32(500, 10),)),
    "ridge regression, 200 × 5": (ridge, (f32(200, 5), f32(200))),
    "sort 1,000 numbers": (jnp.sort, (f32(1000),)),
}


@dataclass
class Use:
    """What an op took at one party."""

    seconds: float = 0.0
    size: int = 0
    messages: int = 0


@dataclass
class Profile:
    """What the ops of a program took at one party."""

    ops: dict[str, Use] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def share(self, name: str) -> float:
        """Return the share of the seconds that an op took."""
        return self.ops[name].seconds / (sum(use.seconds for use in self.ops.values()) or 1.0)


def profiles(text: str) -> Iterator[Profile]:
    """Yield the profile of each run at each party: they print one after the other."""
    blocks = text.split("HLO profiling")[1:]
    for block in blocks:
        found = Profile()
        for name, count, seconds, size, messages in LINE.findall(block):
            found.ops[name] = Use(float(seconds), int(size), int(messages))
            found.counts[name] = int(count)
        yield found


def run(protocol: str, name: str, runs: int) -> None:
    """Run a program so often; libspu prints what it took."""
    from mplang_spu import engine
    from mplang_spu.libspu import libspu
    from mplang_spu.link import LinkCommunicator
    from mplang_spu.lowering import Target, lower

    from mplang_core import FeSignature, TensorType, registry

    options = libspu.logging.LogOptions()
    options.enable_console_logger = True
    options.log_level = libspu.logging.LogLevel.INFO
    options.system_log_path = os.devnull
    libspu.logging.setup_logging(options)
    fn, args = PROGRAMS[name]
    members, target = PROTOCOLS[protocol], Target(protocol, "FM128", 40)
    from mplang_stablehlo import read

    with engine.spu_tracing(target):
        kinds = tuple(map(TensorType.of, args))
        made = registry.get("jax.compile")(fn, FeSignature(kinds))
    given = [*args, *made.consts]
    secret = [True] * len(args) + [False] * len(made.consts)
    code = engine.build(lower(read(made.pfunc.attrs["code"]), target), secret)
    config = {"protocol": protocol, "field": "FM128", "fxp_fraction_bits": 40, "exp_mode": "pade"}
    profiled = engine.runtime_config

    def with_profile(*args: Any) -> Any:
        found = profiled(*args)
        found.enable_pphlo_profile = True
        return found

    engine.runtime_config = with_profile
    io = engine.io(members, protocol, "FM128", 40)
    shares = [
        io.make_shares(np.asarray(arg, order="C"), engine.visibility(is_secret))
        for arg, is_secret in zip(given, secret, strict=True)
    ]
    shares += [io.make_shares(arg, engine.visibility(False)) for arg in code.operands]

    def member(rank: int) -> None:
        names = [f"P{i}" for i in range(members)]
        link = LinkCommunicator(rank, names, mem_link=True, name="profile", timeout=600)
        machine = engine.Engine(link, config)
        for _ in range(runs):
            machine.run(code.code, [share[rank] for share in shares], len(made.pfunc.outs_info))

    begin = time.process_time()
    with ThreadPoolExecutor(members) as pool:
        list(pool.map(member, range(members)))
    print("CPU", (time.process_time() - begin) / members)


def profile(protocol: str, name: str) -> Profile:
    """Return what the second run of a program takes at a party, in a process of its own."""
    *_, last = profiles_of(protocol, name, runs=2)[0]
    return last


def profiles_of(protocol: str, name: str, runs: int) -> tuple[Sequence[Profile], float]:
    """Return what runs of a program take, at each party, in a process of their own.

    Returns:
        A profile for each run and party, and the seconds of the CPU that each party takes.
    """
    command = [sys.executable, __file__, "--run", protocol, name, str(runs)]
    made = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=True)
    seconds = float(made.stdout.rpartition("CPU ")[2].splitlines()[0])
    return list(profiles(made.stdout + made.stderr)), seconds


def rows() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| program | protocol | seconds | MB | messages | of the seconds |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in PROGRAMS:
        for protocol in PROTOCOLS:
            found = profile(protocol, name)
            uses = found.ops.values()
            ranked = sorted(found.ops, key=found.share, reverse=True)[:SHOWN]
            parts = [
                f"{each.replace('_', ' ')} {found.share(each):.0%} ({found.counts[each]}×)"
                for each in ranked
                if found.share(each) >= 0.02
            ]
            cells = (
                name if protocol == "ABY3" else "",
                protocol,
                f"{sum(use.seconds for use in uses):.3f}",
                f"{sum(use.size for use in uses) / 1e6:.2f}",
                f"{sum(use.messages for use in uses):,}",
                ", ".join(parts),
            )
            yield f"| {' | '.join(cells)} |"
            print(*cells, flush=True)


def main() -> None:
    """Profile all programs, and write the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", nargs=3, metavar=("PROTOCOL", "PROGRAM", "RUNS"))
    chosen = parser.parse_args()
    if chosen.run:
        return run(chosen.run[0], chosen.run[1], int(chosen.run[2]))
    table = "".join(f"{row}\n" for row in rows())
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2], "utf-8")
    return None


if __name__ == "__main__":
    main()
