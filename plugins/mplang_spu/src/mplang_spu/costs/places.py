"""Places of ops: the line of the StableHLO that each op of PPHLO comes from.

libspu's compiler keeps no source lines. It keeps the order, though, of most ops: so those of the
lowered StableHLO, which know their lines, are set beside those of PPHLO, by name and size.
"""

from __future__ import annotations

import difflib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from jaxlib.mlir import ir
from mplang_stablehlo.ext import walk

from mplang_spu.costs.pphlo import PphloOp, PphloRegion

_Key: TypeAlias = tuple[str, int]
"""Name of an op, and elements of its largest result."""

_NAMES = {
    "compare": "less", "dot_general": "dot", "not_equal": "less", "equal": "less",
    "greater": "less", "greater_equal": "less", "less_equal": "less", "simple_sort": "sort",
    "subtract": "add", "maximum": "select", "minimum": "select",
}  # fmt: skip
"""Names that stand for each other in the two languages."""


def places_of(module: ir.Module, body: PphloRegion) -> dict[int, int]:
    """Return the line of the text that each op comes from; those of the op before if unsure.

    Args:
        module: lowered StableHLO, whose ops have the places of the text.
        body: PPHLO that libspu made of it.

    Returns:
        Lines from 1 on, by the identity of the op; empty if no op is known.
    """
    lowered = [op for op in walk(module.operation) if op.results and op.location.is_a_file()]
    wanted = list(_flat(body))
    theirs = [(_name(op.name.partition(".")[2]), _size(op)) for op in lowered]
    ours = [(_name(op.name), max((kind.size for kind in op.gives), default=0)) for op in wanted]
    sources = {**_beside(theirs, ours), **_one_by_one(theirs, ours)}
    lines = [
        lowered[sources[i]].location.start_line if i in sources else None for i in range(len(ours))
    ]
    return {id(op): line for op, line in zip(wanted, _filled(lines), strict=True) if line}


def _one_by_one(theirs: Sequence[_Key], ours: Sequence[_Key]) -> Mapping[int, int]:
    """Return which op is which where both have as many of a name and size, in their order."""
    pairs: dict[int, int] = {}
    by_key: dict[_Key, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for keys, side in ((theirs, 0), (ours, 1)):
        for i, key in enumerate(keys):
            by_key[key][side].append(i)
    for before, after in by_key.values():
        if len(before) == len(after):
            pairs.update(zip(after, before, strict=True))
    return pairs


def _beside(theirs: Sequence[_Key], ours: Sequence[_Key]) -> Mapping[int, int]:
    """Return which op is which in the longest rows of equal ones."""
    matcher = difflib.SequenceMatcher(None, theirs, ours, autojunk=False)
    return {
        other + i: begin + i
        for begin, other, count in matcher.get_matching_blocks()
        for i in range(count)
    }


def _filled(lines: Sequence[int | None]) -> Sequence[int | None]:
    """Return lines where unknown ones are those before, at the beginning those behind."""
    last = next(filter(None, lines), None)
    filled = []
    for line in lines:
        last = line or last
        filled.append(last)
    return filled


def _flat(region: PphloRegion) -> Sequence[PphloOp]:
    ops = []
    for op in region.ops:
        ops += [op, *(each for inner in op.regions for each in _flat(inner))]
    return ops


def _name(name: str) -> str:
    return _NAMES.get(name, name)


def _size(op: ir.Operation) -> int:
    shapes = (ir.RankedTensorType(each.type).shape for each in op.results)
    return max(math.prod(map(int, shape)) for shape in shapes)
