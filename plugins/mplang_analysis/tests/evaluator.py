"""A second meaning of programs: each party in NumPy, with all that it gets to see written down."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

import mplang_core as mp
from mplang_core.ir import Graph, Operation

Copies = dict[int, Any]  # a value: rank -> what that party holds


class Run:
    """One run of a program of toy ops.

    Args:
        program: the program.
        inputs: per input what each holder has.
        own: per party what ``toy.rank`` gives it.

    Attributes:
        outputs: what it gives.
        seen: per party what it learned of others, in order.
    """

    def __init__(self, program: mp.Program, inputs: list[Copies], own: dict[int, int]) -> None:
        self.world, self.own = list(program.mask), own
        self.seen: dict[int, list[Any]] = defaultdict(list)
        with np.errstate(over="ignore"):
            self.outputs = self.graph(program.graph, inputs)

    def graph(self, graph: Graph, inputs: list[Copies]) -> list[Copies]:
        env = dict(zip(graph.inputs, inputs, strict=True))
        for op in graph.ops:
            outs = getattr(self, op.opcode.partition(".")[2])(op, *[env[v] for v in op.inputs])
            env.update(zip(op.outputs, outs, strict=True))
        return [env[value] for value in graph.outputs]

    def constant(self, op: Operation) -> list[Copies]:
        return [dict.fromkeys(op.attrs["parties"], op.attrs["value"])]

    def pcall_static(self, op: Operation, *args: Copies) -> list[Copies]:
        return self._local(op, args, list(op.attrs["parties"]))

    def pcall_dynamic(self, op: Operation, *args: Copies) -> list[Copies]:
        return self._local(op, args, [r for r in self.world if all(r in arg for arg in args)])

    def _local(self, op: Operation, args: tuple[Copies, ...], ranks: list[int]) -> list[Copies]:
        self._running = ranks
        return self.graph(op.regions["do"], [{r: arg[r] for r in ranks} for arg in args])

    def shuffle_static(self, op: Operation, src: Copies) -> list[Copies]:
        return [{to: self._get(to, frm, src) for to, frm in op.attrs["routing"]}]

    def shuffle_dynamic(self, op: Operation, src: Copies, index: Copies) -> list[Copies]:
        for to, frm in index.items():
            for other in self.world:
                if other != to:
                    self.seen[other].append(int(frm) == other)
        return [{to: self._get(to, int(frm), src) for to, frm in index.items()}]

    def _get(self, to: int, frm: int, src: Copies) -> Any:
        if to != frm:
            self.seen[to].append(src[frm].tolist())
        return src[frm]

    def converge(self, op: Operation, *args: Copies) -> list[Copies]:
        return [{rank: copy for arg in args for rank, copy in arg.items()}]

    def uniform_cond(self, op: Operation, pred: Copies, *args: Copies) -> list[Copies]:
        return self.graph(op.regions["then" if self._agree(pred) else "else"], list(args))

    def while_loop(self, op: Operation, *args: Copies) -> list[Copies]:
        size = len(op.outputs)
        state, captures = list(args[:size]), list(args[size:])
        while self._agree(self.graph(op.regions["cond"], state + captures)[0]):
            state = self.graph(op.regions["body"], state + captures)
        return state

    def _agree(self, pred: Copies) -> bool:
        (agreed,) = {bool(copy) for copy in pred.values()}
        for rank in self.world:
            self.seen[rank].append(agreed)
        return agreed

    def call(self, op: Operation, *args: Copies) -> list[Copies]:
        return self.graph(op.regions["body"], list(args))

    # -- toy

    def add(self, op: Operation, x: Copies, y: Copies) -> list[Copies]:
        return [{r: np.asarray(x[r] + y[r]) for r in x}]

    def mul(self, op: Operation, x: Copies, y: Copies) -> list[Copies]:
        return [{r: np.asarray(x[r] * y[r]) for r in x}]

    def less(self, op: Operation, x: Copies, y: Copies) -> list[Copies]:
        return [{r: np.asarray(x[r] < y[r]) for r in x}]

    def next_rank(self, op: Operation, x: Copies) -> list[Copies]:
        return [{r: np.asarray((x[r] + 1) % len(self.world)) for r in x}]

    def rank(self, op: Operation) -> list[Copies]:
        return [{r: np.asarray(self.own[r]) for r in self._running}]
