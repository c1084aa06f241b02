"""What ``recorded_links`` logs at the workers, as one reads it at the host: frames of each run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from mplang_testing.waiting import wait_until

Place: TypeAlias = tuple[str, int, int, str]
"""``engine`` or ``mpc``, sender, receiver, and the place of the op in the program."""

Frames: TypeAlias = Mapping[Place, Counter[int]]
"""By place the number of messages of each size in bytes."""


class LinkLogs:
    """Reader of the frames in the logs of workers.

    Args:
        folder: folder of the logs.
        names: names of the workers by rank.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._ranks = {name: rank for rank, name in enumerate(names)}
        self._files = [(folder / f"{name}.log").open("rb") for name in names]
        self._rest = [b""] * len(names)
        self._runs: dict[str, str] = {}  # from the names of coordinators to those on links
        self._frames: dict[str, dict[Place, Counter[int]]] = {}
        self._ended: set[tuple[str, str, int]] = set()  # run on links, role, rank

    def close(self) -> None:
        """Close the logs."""
        for file in self._files:
            file.close()

    def frames(self, run: str, roles: Sequence[str]) -> Frames:
        """Return the frames of a run, once all workers have logged them.

        Args:
            run: name of the run, as its coordinator calls it.
            roles: the processes that are in it at each worker: ``engine``, perhaps ``mpc``.
        """

        def whole() -> bool:
            self._read()
            key = self._runs.get(run, "")
            ranks = self._ranks.values()
            return all((key, role, rank) in self._ended for role in roles for rank in ranks)

        wait_until(whole, f"all frames of {run}")
        return self._frames.get(self._runs[run], {})

    def _read(self) -> None:
        for rank, file in enumerate(self._files):
            *lines, self._rest[rank] = (self._rest[rank] + file.read()).split(b"\n")
            for fields in map(_fields, lines):
                if fields is not None:
                    self._take(rank, *fields)

    def _take(self, rank: int, run: str, role: str, *rest: Any) -> None:
        if len(rest) == 1:
            self._ended.add((run, role, rank))
            if rest[0]:
                self._runs[rest[0].rpartition(":")[2]] = run
            return
        peer, place, sizes = rest
        found = self._frames.setdefault(run, {})
        counts = {int(size): count for size, count in sizes.items()}
        found[role, rank, self._ranks[peer], place] = Counter(counts)


def _fields(line: bytes) -> Any:
    _, found, data = line.partition(b"mplang.frames: ")
    return json.loads(data) if found else None


def differences(one: Frames, other: Frames, loose: Sequence[int]) -> Iterator[Place]:
    """Yield the places where two runs sent other messages, by number or size.

    Args:
        one: a run.
        other: another run of the same program.
        loose: ranks between whose MPC processes bytes vary by a thousandth whatever the data,
            as CHEETAH's do.
    """
    for place in sorted(one.keys() | other.keys()):
        found, expected = one.get(place, Counter()), other.get(place, Counter())
        role, sender, receiver, _ = place
        if role == "mpc" and sender in loose and receiver in loose:
            total, wanted = (sum(size * n for size, n in c.items()) for c in (found, expected))
            if found.total() == expected.total() and abs(total - wanted) * 1000 <= wanted:
                continue
        if found != expected:
            yield place
