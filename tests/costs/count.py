"""Calls, messages and instructions of works, held against a file of limits; ``make lint`` does it.

    python tests/costs/count.py            # a cost a tenth above its limit is an error
    python tests/costs/count.py --write    # write today's costs as the limits

Counts hardly differ from run to run, and times do. Instructions are those of callgrind, of Debian's
package ``valgrind``; without it the rest is counted. A limit is raised with a reason in the commit.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "runner"))

LIMITS = Path(__file__).with_name("limits.json")
MORE = 1.1  # times its limit that a cost may be
TURNS = 5  # of each work; the least counts
TRIES = 4  # of all turns, while something costs too much: who waits for a busy machine asks again
SENDS = {"send_request": "requests", "write": "messages"}
"""Functions that send something, by their names: an HTTP request, or bytes on a link."""

OURS = re.compile("mplang_(http|worker)")
"""What the files of requests and links have in their paths."""

BY_TIME = re.compile(r"POST \S+/release |GET /v1/sessions/[^/\s]+ ")
"""Requests that a coordinator sends while time goes by: it renews leases, and asks for life."""

Costs = dict[str, dict[str, int]]


class Profile:
    """Counter of the calls of all threads that begin while it counts, and of this one."""

    def __init__(self) -> None:
        self.found = {"calls": 0, **dict.fromkeys(SENDS.values(), 0)}

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        if event in ("call", "c_call"):
            self.found["calls"] += 1
        if event == "call" and _sends(frame):
            self.found[SENDS[frame.f_code.co_name]] += 1

    def __enter__(self) -> dict[str, int]:
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        return self.found

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


def _sends(frame: FrameType) -> bool:
    code, head = frame.f_code, frame.f_locals.get("head", "")
    ours = code.co_name in SENDS and OURS.search(code.co_filename)
    return bool(ours) and not (isinstance(head, str) and BY_TIME.match(head))


def count_calls() -> Costs:
    """Return the least calls and messages of each work."""
    from works import WORKS

    costs: Costs = {}
    for name, make in WORKS.items():
        with make() as work:
            end_of(work())
            turns = []
            for _ in range(TURNS):
                with Profile() as found:
                    made = work()
                turns.append({name: {key: value for key, value in found.items() if value}})
                end_of(made)
        costs |= functools.reduce(least, turns)
    return costs


def end_of(made: object) -> None:
    """End what a work has made, such as a session, whose lease would be renewed amid the next."""
    if isinstance(made, contextlib.AbstractContextManager):
        with made:
            pass


def least(costs: Costs, others: Costs) -> Costs:
    """Return the lower of each two costs of the same works."""
    return {
        work: {what: min(value, others[work].get(what, value)) for what, value in counted.items()}
        for work, counted in costs.items()
    }


# -- instructions

BEGIN, END = "getppid", "getpgrp"
"""Functions of ``os`` that no work calls: callgrind counts from one to the other."""


def count_instructions() -> Costs:
    """Return the least instructions of each work, run under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
        command += [f"--zero-before={BEGIN}", f"--dump-before={END}"]
        command += [f"--callgrind-out-file={folder}/out", sys.executable, __file__, "--within"]
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"callgrind failed:\n{done.stdout}{done.stderr}")
        names: list[str] = json.loads(done.stdout.splitlines()[-1])
        costs: Costs = {}
        for i, name in enumerate(names):
            text = Path(f"{folder}/out.{i + 1}").read_text()
            found = int(re.findall(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)[-1])
            costs.setdefault(name, {"instructions": found})
            costs[name]["instructions"] = min(costs[name]["instructions"], found)
    return costs


def run_within_callgrind() -> None:
    """Run each work, and dump its instructions; print their names in the order of the dumps.

    What controls callgrind takes time, and so instructions: it is not between begin and end.
    """
    from works import WORKS

    begin, end, names = getattr(os, BEGIN), getattr(os, END), []
    gc.disable()
    for name, make in WORKS.items():
        with make() as work:
            end_of(work())
            _control("--instr=on")
            for _ in range(TURNS):
                begin()
                made = work()
                end()
                end_of(made)
                names.append(name)
            _control("--instr=off")
    print(json.dumps(names))


def _control(order: str) -> None:
    process = subprocess.Popen(["callgrind_control", order, str(os.getpid())], stdout=2)
    while process.poll() is None:  # callgrind answers only while this process runs
        pass


# -- the file of limits


def compare(costs: Costs, limits: Costs) -> list[str]:
    """Return a line for each cost that is more than a tenth above its limit."""
    return [
        f"{work}: {found} {what}, at most {limits[work][what]} and a tenth, see {LIMITS}"
        for work, counted in costs.items()
        for what, found in counted.items()
        if found > MORE * limits[work][what]
    ]


def main(arguments: Sequence[str]) -> int:
    """Count, and compare with the limits; return 1 where something costs too much."""
    from components import missing
    from works import workers

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--within", action="store_true")
    given = parser.parse_args(arguments)
    if given.within:
        run_within_callgrind()
        return 0
    kinds = [count_calls, count_instructions]
    if missing(["valgrind"]):
        print("instructions are not counted: no valgrind here (make components)")
        del kinds[1]
    limits: Costs = {} if given.write else json.loads(LIMITS.read_text())
    costs: Costs = {}
    with workers() as environment:
        os.environ.update(environment)
        for count in kinds:
            counted = count()
            for _ in range(TRIES - 1):
                if given.write or not compare(counted, limits):
                    break
                counted = least(counted, count())
            for work, each in counted.items():
                costs.setdefault(work, {}).update(each)
    if given.write:
        LIMITS.write_text(json.dumps(costs, indent=2) + "\n")
        limits = costs
    found = compare(costs, limits)
    counts: list[Any] = [f"{w} {v:,} {k}" for w, each in costs.items() for k, v in each.items()]
    print("\n".join([*found, f"costs: {', '.join(counts)}"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
