"""Counter of what single ops of PPHLO take: each is run on made-up numbers, once.

What an op takes depends on the types of its operands, on how their shares are stored, and on their
shape, but not on the numbers; sorts by comparisons apart. So a value stands here for all of its
type and storage: a scalar, of which any shape is made by a broadcast, which sends nothing.

An op that treats each element by itself sends so much for each on SEMI2K and ABY3: two sizes tell
it for all. CHEETAH sends in batches, so that such an op runs at its own size up to :data:`MOST`.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from mplang_spu.costs.expense import Expense, expense_of
from mplang_spu.costs.members import Members, Ran
from mplang_spu.costs.multipliers import PreparedProducts, opened_of, split_batches
from mplang_spu.costs.pphlo import TENSOR, VALUE, PphloOp, Tensor, free_values, module_of, tensors
from mplang_spu.costs.session import MATRICES, PRODUCTS, SessionWork
from mplang_spu.target import Target

SIZES = 1024, 4096
"""Elements at which ops are counted that send so much for each."""
MOST = 1 << 14
"""Elements up to which an op of CHEETAH runs at its own size; beyond it follows from two others."""
LARGEST = {"CHEETAH": 1 << 16}
"""Elements up to which an op runs that is not element by element, by protocol."""
LARGEST_ELSEWHERE = 1 << 19
MOST_PRODUCTS = {"CHEETAH": 1 << 24}
"""Products of single numbers up to which matrices are multiplied, by protocol."""
MOST_PRODUCTS_ELSEWHERE = 1 << 28
SORTED = 1 << 9
"""Rows up to which a sort of CHEETAH runs at its own size."""
DRAWS = 4
"""How often a sort is counted; CHEETAH's quicksort compares what it gets, in random order."""
SPREAD, SAME = 0.4, 0.02
"""Share by which a sort may differ from what draws show, and one whose draws are alike."""
BRIEF = 2e-3
"""Seconds of an op that is timed three times."""

ELEMENTWISE = {
    "abs", "add", "and", "arshift", "atan2", "ceil", "clamp", "convert", "cosine", "custom_call",
    "divide", "equal", "exponential", "exponential_minus_one", "floor", "greater",
    "greater_equal", "less", "less_equal", "log", "log_plus_one", "logistic", "lshift",
    "maximum", "minimum", "multiply", "negate", "not", "not_equal", "or", "popcnt", "power",
    "reciprocal", "remainder", "round_nearest_afz", "round_nearest_even", "rshift", "rsqrt",
    "select", "sign", "sine", "sqrt", "subtract", "tanh", "xor",
}  # fmt: skip
"""Ops that treat each element by itself."""

MATRIX = {"dot", "dot_general", "convolution"}
SORTS = {"simple_sort", "sort"}
"""Ops that compare what they get: CHEETAH's messages depend on it."""

_NUMPY = {"i1": "bool", "f16": "f2", "f32": "f4", "f64": "f8"}
_NUMPY |= {f"{s}i{n}": f"{s or 'i'}{n // 8}" for s in ("", "u") for n in (8, 16, 32, 64)}


@dataclass(frozen=True, slots=True)
class Stand:
    """Representative of all values of a type and storage.

    Attributes:
        element: the element type.
        secret: whether it is a share.
        storage: how libspu stores it.
        number: what it is, where that matters.
    """

    element: str
    secret: bool
    storage: str
    number: int = 1


Stands: TypeAlias = tuple[Stand | None, ...]
"""What stands for the results of an op; ``None`` for one without elements."""


class OpCounter:
    """Counter of ops, on members that run them.

    Args:
        target: protocol, field and fixed point.
        members: on channels that count.
        session: what they do beside single ops.
    """

    def __init__(self, target: Target, members: Members, session: SessionWork) -> None:
        self._target, self._members, self._session = target, members, session
        self._until = math.inf
        self._counted: dict[object, tuple[Expense | None, Stands]] = {}
        self._stands: dict[Stand, str] = {}
        self._prepared = PreparedProducts()

    def until(self, seconds: float) -> OpCounter:
        """Run no further op after so many seconds, and return this counter."""
        self._until = time.monotonic() + seconds
        return self

    def input(self, kind: Tensor, number: int = 1) -> Stand:
        """Return what stands for an operand of the program, or for a constant."""
        name = "made"
        made = np.array(number).astype(_NUMPY[kind.element])
        self._members.put(name, made, kind.secret)
        return self._keep(kind, name, number)

    def count(
        self, op: PphloOp, types: Mapping[str, Tensor], stands: Mapping[str, Stand | None]
    ) -> tuple[Expense | None, Stands]:
        """Count what an op takes.

        Args:
            op: no loop or branch.
            types: of the values that it uses.
            stands: what stands for each.

        Returns:
            What it takes, ``None`` if it is too large to be run, and what stands for its results.
        """
        used = [types[each] for each in (*op.operands, *free_values(op))]
        if not all(kind.size for kind in (*used, *op.gives)):
            return Expense(), (None,) * len(op.gives)
        sizes = {kind.size for kind in (*used, *op.gives)}
        if op.name in ELEMENTWISE and len(sizes - {1}) <= 1:
            return self._by_element(op, types, stands, max(sizes))
        if self._is_too_large(op, used):
            return None, tuple(map(self.input, op.gives))
        if op.name in SORTS and self._target.protocol == "CHEETAH":
            return self._sort(op, types, stands)
        if op.name in MATRIX:
            self._session.multiply_matrices()
        return self._at_its_shape(op, types, stands)

    def _is_too_large(self, op: PphloOp, used: Sequence[Tensor]) -> bool:
        protocol, sizes = self._target.protocol, [kind.size for kind in (*used, *op.gives)]
        is_row = all(len(kind.shape) == 1 for kind in op.gives)
        if op.name in SORTS and protocol == "CHEETAH" and is_row:
            return False  # it follows from a shorter one
        if op.name in MATRIX:  # of m by k and k by n: the root is m k n
            most = MOST_PRODUCTS.get(protocol, MOST_PRODUCTS_ELSEWHERE)
            if math.sqrt(math.prod(sizes[:3])) > most:
                return True
        return sum(sizes) > LARGEST.get(protocol, LARGEST_ELSEWHERE)

    def _by_element(
        self,
        op: PphloOp,
        types: Mapping[str, Tensor],
        stands: Mapping[str, Stand | None],
        size: int,
    ) -> tuple[Expense | None, Stands]:
        batched = self._target.protocol == "CHEETAH"
        if size <= (MOST if batched else SIZES[0]):
            return self._at_its_shape(*_resized(op, types, size), stands)
        sizes = (MOST // 2, MOST) if batched else SIZES
        (less, made), (more, _) = (
            self._at_its_shape(*_resized(op, types, each), stands) for each in sizes
        )
        if less is None or more is None:
            return None, made
        return replace(less.at(sizes[0], more, sizes[1], size), exact=not batched), made

    def _sort(
        self, op: PphloOp, types: Mapping[str, Tensor], stands: Mapping[str, Stand | None]
    ) -> tuple[Expense | None, Stands]:
        """Count a sort on random numbers, several times; a long one follows from a shorter one."""
        rows = max(kind.size for kind in op.gives)
        counted = min(rows, SORTED)
        resized, kinds = _resized(op, types, counted)
        if any(len(kind.shape) > 1 for kind in op.gives):
            counted, resized, kinds = rows, op, types
        drawn = [self._at_its_shape(resized, kinds, stands, draw) for draw in range(DRAWS)]
        made = drawn[0][1]
        counts = [each for each, _ in drawn if each is not None]
        if len(counts) < DRAWS:
            return None, made
        mean = sum(counts[1:], counts[0]).times(1 / DRAWS)
        differs = max(abs(each.messages - mean.messages) / mean.messages for each in counts)
        deeper = math.log2(max(rows, 2)) / math.log2(max(counted, 2))
        longer = rows / counted * deeper
        scaled = replace(
            mean.times(longer),
            messages=mean.messages * longer**0.55,  # measured: long rows go in fewer messages
            rounds=mean.rounds * deeper**2,
            opened=tuple(round(each * longer) for each in counts[0].opened),
            spread=SPREAD if differs > SAME else SAME,
            exact=False,
        )
        return scaled, made

    def _at_its_shape(
        self,
        op: PphloOp,
        types: Mapping[str, Tensor],
        stands: Mapping[str, Stand | None],
        draw: int | None = None,
    ) -> tuple[Expense | None, Stands]:
        """Count an op once for all that are the same.

        Args:
            op: the op.
            types: of the values that it uses.
            stands: what stands for each.
            draw: which random numbers it gets; ones by default.
        """
        used = dict.fromkeys((*op.operands, *free_values(op)))
        named = {each: f"%v{i}" for i, each in enumerate(used)}
        text = _renamed(op, named)
        key = text, draw, tuple((types[each], stands[each]) for each in named)
        if key not in self._counted:
            if time.monotonic() > self._until:
                return None, tuple(map(self.input, op.gives))
            takes = [(name, types[each], stands[each]) for each, name in named.items()]
            self._counted[key] = self._run(op, text, takes, draw)
        return self._counted[key]

    def _run(
        self,
        op: PphloOp,
        text: str,
        takes: Sequence[tuple[str, Tensor, Stand | None]],
        draw: int | None,
    ) -> tuple[Expense, Stands]:
        outs = [f"out{i}" for i in range(len(op.gives))]
        random, ins, heads = np.random.default_rng(draw), [], []
        for i, (name, kind, stand) in enumerate(takes):
            assert stand is not None
            if draw is None or not kind.secret:
                ins.append(self._stands[stand])
                heads.append((name, kind, True))
            else:
                ins.append(f"drawn{i}")
                numbers = random.uniform(-1000, 1000, kind.shape).astype(_NUMPY[kind.element])
                self._members.put(ins[-1], numbers, kind.secret)
                heads.append((name, kind, False))
        code = _module(heads, text, op)
        expense = self._count_of(self._members.run(code, ins, outs), op)
        for _ in range(2 if expense.seconds < BRIEF else 0):
            again = self._count_of(self._members.run(code, ins, outs), op)
            expense = replace(expense, seconds=min(expense.seconds, again.seconds))
        made = [self._keep(kind, name) for kind, name in zip(op.gives, outs, strict=True)]
        return expense, tuple(made)

    def _count_of(self, ran: Ran, op: PphloOp) -> Expense:
        """Return what an op took, without the batches of prepared products that were made amid."""
        others = Expense(seconds=self._session.idle)
        if self._target.protocol != "CHEETAH":
            return expense_of(ran).without(others)
        opened = opened_of(ran.sent, self._target.bits // 8)
        batches, (kept, _) = self._prepared.take(opened), split_batches(ran.sent)
        others += replace(self._session.batch.times(batches), messages=0, size=0)
        expense = expense_of(ran._replace(sent=kept)).without(others)
        uses = {each.link for each in kept if each.link != "root"}
        if opened or any(each.link == "root" for each in kept):
            uses.add(MATRICES if op.name in MATRIX else PRODUCTS)
        return replace(expense, opened=opened, uses=frozenset(uses))

    def _keep(self, kind: Tensor, name: str, number: int = 1) -> Stand:
        """Keep a variable as what stands for its like, if there is none."""
        made = Stand(kind.element, kind.secret, self._members.storage(name), number)
        if made not in self._stands:
            self._stands[made] = f"stand{len(self._stands)}"
            self._members.copy(name, self._stands[made])
        self._members.drop(name)
        return made


def _resized(
    op: PphloOp, types: Mapping[str, Tensor], elements: int
) -> tuple[PphloOp, Mapping[str, Tensor]]:
    """Return an op, and the types of its operands, with another number of elements in a row."""
    size = max(kind.size for kind in op.gives)

    def anew(kind: Tensor) -> Tensor:
        return kind.of_shape(elements) if kind.size == size else kind

    def written(match: re.Match[str]) -> str:
        return str(anew(next(tensors(match[0]))))

    made = replace(op, text=TENSOR.sub(written, op.text), gives=tuple(map(anew, op.gives)))
    return made, {name: anew(types[name]) for name in op.operands}


def _renamed(op: PphloOp, named: Mapping[str, str]) -> str:
    """Return the text of an op whose operands have these names, and whose results ``%r``."""

    def anew(match: re.Match[str]) -> str:
        return "%r" if match[0] == op.defines else named.get(match[0], match[0])

    return VALUE.sub(anew, op.text)


def _module(takes: Sequence[tuple[str, Tensor, bool]], text: str, op: PphloOp) -> str:
    """Return a module that runs an op and returns a scalar of each result.

    Args:
        takes: names and types of the operands, and whether a scalar is given of which it is made.
        text: the op.
        op: of which this is the text.
    """
    heads, lines = [], []
    for i, (name, kind, is_scalar) in enumerate(takes):
        one = kind.of_shape() if is_scalar else kind
        heads.append(f"{name if one == kind else f'%a{i}'}: {one}")
        if one != kind:
            lines.append(f"{name} = pphlo.broadcast %a{i}, dims = [] : ({one}) -> {kind}")
    lines.append(text)
    for i, kind in enumerate(op.gives):
        name = "%r" if len(op.gives) == 1 else f"%r#{i}"
        first = kind.of_shape(*[1] * len(kind.shape))
        if kind.shape:
            part = ", ".join(["0:1:1"] * len(kind.shape))
            lines.append(f"%s{i} = pphlo.slice {name} [{part}] : ({kind}) -> {first}")
            name = f"%s{i}"
        lines.append(f"%o{i} = pphlo.reshape {name} : ({first}) -> {kind.of_shape()}")
    results = {f"%o{i}": kind.of_shape() for i, kind in enumerate(op.gives)}
    return module_of(heads, lines, results)
