"""Kill a gate amid runs, again and again; print the runs that it said had begun.

Run as a program of its own, ``kill_runs.py FOLDER KILLS``: it forks a gate for each kill.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys

from mplang_analysis import RunRequest
from mplang_policy import Gate
from mplang_policy.offline import asked_of
from mplang_policy.owner import Owner
from mplang_testing.waiting import pause
from policy_testbed import NAMES, program_of

import mplang_core as mp


def noisy():
    """Return a noisy number, once it is approved."""
    people = mp.dataset("bank", "people", ["id"])
    return mp.dp.count(people, unit="id", epsilon=0.001)


def begin_runs(owner: Owner, asked: object, kill: int, told: int) -> None:
    """Begin runs without end, and tell of each that has begun."""
    gate = Gate(owner.gate, "bank", owner.names)
    for number in itertools.count():
        run = RunRequest("session", f"{kill}-{number}", asked)  # type: ignore[arg-type]
        gate.begin(run, gate.decide(run))
        os.write(told, f"{run.run}\n".encode())


def main(folder: str, kills: int) -> None:
    """Kill gates amid their runs."""
    owner = Owner.read(f"{folder}/worker.yaml")
    asked = asked_of(program_of(noisy), NAMES, "bank", "analyst", "production")
    begun: list[str] = []
    for kill in range(kills):
        begin, end = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                begin_runs(owner, asked, kill, end)
            finally:
                os._exit(1)
        os.close(end)
        found = os.read(begin, 1 << 16)  # until it has begun something
        pause(random.random() * 0.02, "a gate that is killed at any moment")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while data := os.read(begin, 1 << 16):
            found += data
        os.close(begin)
        begun += found.decode().split()
    print(json.dumps(begun))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
