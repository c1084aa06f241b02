"""Counting of programs: compiled as a member compiles them, and counted op by op."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, cast

from mplang_analysis import Network
from mplang_stablehlo import read

from mplang_spu import engine
from mplang_spu.costs.counted import Counted, CountRequest, Step
from mplang_spu.costs.expense import Expense
from mplang_spu.costs.members import Members
from mplang_spu.costs.multipliers import PreparedProducts
from mplang_spu.costs.op_counter import OpCounter
from mplang_spu.costs.places import places_of
from mplang_spu.costs.pphlo import read_pphlo
from mplang_spu.costs.program import ProgramCounter, Row
from mplang_spu.costs.session import SessionWork
from mplang_spu.lowering import lower_module
from mplang_spu.oblivious_transfer import Way, cheapest_way, comparisons_of
from mplang_spu.share_type import MAX_CODE
from mplang_spu.target import Target

SECONDS = 30.0
"""After which no further op is counted; the others stay unknown."""
MAX_TURNS = 100_000
"""Turns of a loop whose prepared products are followed one by one."""
SET_UPS = {"": "the link", "root-1": "oblivious transfers", "root-2": "those of further cores"}


def count(request: CountRequest) -> Counted:
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
    walk = ProgramCounter(counter.until(SECONDS), places_of(module, program.body))
    walk.count(program, compiled.operands)
    uses = {""}.union(*(row.takes.uses for row in walk.rows if row.takes))
    set_up = [_step(SET_UPS.get(e, e), each) for e, each in session.set_ups.items() if e in uses]
    compares = target.protocol == "CHEETAH" and "root-1" in uses
    steps = tuple(_by_line(_with_batches(walk.rows, session)))
    return Counted(steps=steps, set_up=tuple(set_up), way=way if compares else "")


@functools.lru_cache(maxsize=4)
def _counters(members: int, config: str, way: Way) -> tuple[SessionWork, OpCounter]:
    """Begin members; what they count serves other programs, too."""
    settings = json.loads(config)
    started = Members(members, settings, way)
    session = SessionWork(started, settings["protocol"])
    return session, OpCounter(Target.of(settings), started, session)


def forget() -> None:
    """Begin members anew with the next program: those that failed do not understand each other."""
    _counters.cache_clear()


def _way(config: Mapping[str, object], network: Network, code: bytes) -> Way:
    chosen = cast(Way | Literal["auto"], config.get("ot") or "auto")
    return cheapest_way(network, comparisons_of(code, config)) if chosen == "auto" else chosen


def _with_batches(rows: Iterable[Row], session: SessionWork) -> Iterator[Row]:
    """Add the batches of prepared products to the ops for which they are made."""
    prepared = PreparedProducts()
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
    by_step: dict[tuple[int, str, bool, bool], tuple[float, Expense]] = {}
    for row in rows:
        turns = 1 if row.turns is None else row.turns
        count = (row.takes or Expense()).times(turns) + row.batches
        if row.takes is not None and not count.messages and not count.seconds:
            continue
        key = row.line, row.name, row.turns is not None, row.takes is not None
        times, before = by_step.get(key, (0.0, Expense()))
        by_step[key] = times + turns, before + count
    for (line, name, turns_known, known), (times, count) in by_step.items():
        yield _step(name, count, line, times, turns_known, known)


def _step(
    name: str,
    count: Expense,
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
