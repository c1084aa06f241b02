"""Labels from run to run: the table over those of the inputs, and those of the outputs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mplang_analysis.disclosure_table import Disclosure, check_labels, table_of
from mplang_analysis.guarding import Spend
from mplang_analysis.holdings import Holding
from mplang_analysis.labels import Label
from mplang_analysis.storage import Stored
from mplang_analysis.taint import Flow
from mplang_core import Program

MAX_CACHED = 512  # programs with labels
MAX_ROWS = 50_000  # of all cached tables

Question: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Followed:
    """Result of following labels through a run of a program.

    Attributes:
        disclosure: the table over the labels of the inputs.
        outputs: per output and holder the label of its copy.
        held: per party what it had so far: the ``held`` of the next run.
        stores: the labels of what it leaves in storage.
        spends: what its differentially private ops use up of the budgets of data sets.
        remarks: why guards of it do not count, with their lines.
    """

    disclosure: Disclosure
    outputs: Sequence[Mapping[int, Label]]
    held: Mapping[int, Holding]
    stores: Stored
    spends: Sequence[Spend] = ()
    remarks: Sequence[str] = ()


def follow(
    program: Program,
    labels: Sequence[Mapping[int, Label]] | None = None,
    held: Mapping[int, Holding] | None = None,
    stored: Stored | None = None,
) -> Followed:
    """Return the table of a run of a program, and the labels of its outputs.

    The labels of a chain of runs do not grow with its length: secrets and keys are named by the
    program and the position that makes them. Results are cached by the digest and the labels, so
    that a run like an earlier one costs microseconds.

    Args:
        program: the whole program, verified.
        labels: per input the label of each holder's copy, as in :func:`disclosure`.
        held: the ``held`` of the session's last run. A share or a key opens what its party got
            in any run of a session, whether or not it is an input of this one.
        stored: the labels of what the parties have in storage, by name.

    Raises:
        TraceError: the number of labels is not that of the inputs.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_analysis import own
        >>> scalar = mp.MPType(mp.TensorType("i64"), mp.Mask.of(1))
        >>> context = mp.TraceContext(mp.ClusterSpec.simple(2))
        >>> move = mp.trace(context, lambda x: mp.put("P0", x), scalar).program
        >>> first = follow(move, [{1: own(1, "put")}])
        >>> print(first.outputs[0][0].parties, [row.discloses for row in first.disclosure.rows])
        {1} [(1,), (1,)]
    """
    given = check_labels(program, labels)
    key = (
        program.digest,
        program.line_hash,
        program.name,
        *(tuple(fact.items()) for fact in given),
        None if held is None else tuple(held.items()),
        tuple((name, tuple(each.items())) for name, each in (stored or {}).items()),
    )
    found = _cache.get(key)
    if found is None:
        found = _follow(program, given, held or {}, stored or {})
        _cache.put(key, found)
    return found


def _follow(
    program: Program,
    labels: Sequence[Mapping[int, Label]],
    held: Mapping[int, Holding],
    stored: Stored,
) -> Followed:
    flow = Flow(program, labels, held, stored=stored)
    outputs = [_made_by(program, fact) for fact in flow.outputs]
    stores = {name: _made_by(program, fact) for name, fact in flow.stores.items()}
    after = dict(held)
    for rank in program.mask:
        found = flow.held.of(rank)
        if found != held.get(rank):  # else the same object, which is compared in no time
            after[rank] = found
    guards = flow.guards
    return Followed(
        table_of(flow), outputs, after, stores, tuple(guards.spends), tuple(guards.remarks)
    )


def _made_by(program: Program, fact: Mapping[int, Label]) -> Mapping[int, Label]:
    return {rank: label.made_by(program.digest) for rank, label in fact.items()}


class _Cache:
    """Least recently used answers; safe for threads."""

    def __init__(self) -> None:
        self._found: OrderedDict[Question, Followed] = OrderedDict()
        self._rows = 0
        self._lock = threading.Lock()

    def get(self, key: Question) -> Followed | None:
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def put(self, key: Question, found: Followed) -> None:
        with self._lock:
            if key not in self._found:
                self._rows += len(found.disclosure.rows)
            self._found[key] = found
            while len(self._found) > MAX_CACHED or (self._rows > MAX_ROWS and len(self._found) > 1):
                _, dropped = self._found.popitem(last=False)
                self._rows -= len(dropped.disclosure.rows)


_cache = _Cache()
