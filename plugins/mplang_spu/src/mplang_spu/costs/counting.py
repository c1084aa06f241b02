"""Counting of programs: compiled as a member compiles them, and counted op by op."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from mplang_analysis import Network
from mplang_stablehlo import read

from mplang_spu import engine
from mplang_spu.costs.count import OpCount
from mplang_spu.costs.counted import Counted, Request, Step
from mplang_spu.costs.members import Members
from mplang_spu.costs.multipliers import Prepared
from mplang_spu.costs.op_counter import OpCounter
from mplang_spu.costs.places import places_of
from mplang_spu.costs.pphlo import read_pphlo
from mplang_spu.costs.program import ProgramCounter, Row
from mplang_spu.costs.session import Session
from mplang_spu.lowering import lower_module
from mplang_spu.oblivious_transfer import Way, cheapest_way, comparisons_of
from mplang_spu.share_type import MAX_CODE
from mplang_spu.target import Target

SECONDS = 30.0
"""After which no further op is counted; the others stay unknown."""
MAX_TURNS = 100_000
"""Turns of a loop whose prepared products are followed one by one."""
SET_UPS = {"": "the link", "root-1": "oblivious transfers", "root-2": "those of further cores"}


def count(request: Request) -> Counted:
    """Count what a program takes.

    Args:
        request: the program.

    Raises:
        ValueError: SPU does not take the program.
    """
    target = Target.of(request.config)
    text = read(bytes.fromhex(request.code), MAX_CODE)
    module, lowered = lower_module(text, target)
    compiled = engine.build(lowered, request.shares)
    way = _way(request.config, request.network, compiled.code)
    session, counter = _counters(
        request.members, json.dumps(dict(request.config), sort_keys=True), way
    )
    program = read_pphlo(compiled.code.decode())
    found = ProgramCounter(counter.until(SECONDS), places_of(module, program.body))
    found.count(program, compiled.operands)
    uses = {""}.union(*(row.takes.uses for row in found.rows if row.takes))
    set_up = [_step(SET_UPS.get(e, e), each) for e, each in session.set_ups.items() if e in uses]
    compares = target.protocol == "CHEETAH" and "root-1" in uses
    steps = tuple(_by_line(_with_batches(found.rows, session)))
    return Counted(steps=steps, set_up=tuple(set_up), way=way if compares else "")


@functools.lru_cache(maxsize=4)
def _counters(members: int, config: str, way: Way) -> tuple[Session, OpCounter]:
    """Begin members; what they count serves other programs, too."""
    settings = json.loads(config)
    started = Members(members, settings, way)
    session = Session(started, settings["protocol"])
    return session, OpCounter(Target.of(settings), started, session)


def _way(config: Mapping[str, Any], network: Network, code: bytes) -> Way:
    chosen: Way | Literal["auto"] = config.get("ot") or "auto"
    return cheapest_way(network, comparisons_of(code, config)) if chosen == "auto" else chosen


def _with_batches(rows: Iterable[Row], session: Session) -> Iterator[Row]:
    """Add the batches of prepared products to the ops for which they are made."""
    prepared = Prepared()
    for row in rows:
        if row.takes is None or not row.takes.opened:
            yield row
            continue
        turns = row.turns or 1
        batches = sum(prepared.take(row.takes.opened) for _ in range(min(turns, MAX_TURNS)))
        whole = batches * turns / min(turns, MAX_TURNS)
        yield row._replace(batches=session.batch.times(whole))


def _by_line(rows: Iterable[Row]) -> Iterator[Step]:
    """Yield the ops of a line and name together."""
    found: dict[tuple[int, str, bool, bool], tuple[float, OpCount]] = {}
    for row in rows:
        turns = 1 if row.turns is None else row.turns
        count = (row.takes or OpCount()).times(turns) + row.batches
        if row.takes is not None and not count.messages and not count.seconds:
            continue
        key = row.line, row.name, row.turns is not None, row.takes is not None
        times, before = found.get(key, (0.0, OpCount()))
        found[key] = times + turns, before + count
    for (line, name, turns_known, known), (times, count) in found.items():
        yield _step(name, count, line, times, turns_known, known)


def _step(
    name: str,
    count: OpCount,
    line: int = 0,
    times: float = 1,
    turns_known: bool = True,
    known: bool = True,
) -> Step:
    return Step(
        name=name,
        line=line,
        times=times,
        turns_known=turns_known,
        known=known,
        messages=max(round(count.messages), 0),
        size=max(round(count.size), 0),
        rounds=max(count.rounds, 0),
        in_turn=max(count.in_turn, 0),
        seconds=max(count.seconds, 0),
        spread=count.spread,
        exact=count.exact,
    )
