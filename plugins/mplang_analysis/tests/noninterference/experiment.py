"""One experiment: a chain of programs of a seed, run with the data of each party changed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from mplang_analysis import Disclosure, follow, labels_of

import mplang_core as mp
from mplang_core.ext import HostVar, PartyError

from .checker import Comparison, Finding, Stage, readable_bytes, unexpected, unlisted
from .deviation import Deviation
from .generator import OPERANDS, PARTIES, TABLES, THEMES, Source, Theme, generate
from .lab import Lab, Setting, bytes_of
from .live import Live
from .live_checker import LiveComparison
from .opening import readable

COLUMNS = (("a", "int64"), ("b", "int64"))


@dataclass(frozen=True)
class Data:
    """The private data of all parties.

    Attributes:
        inputs: per name of an input, per rank that holds it the value.
        own: per rank what the party keeps.
    """

    inputs: Mapping[str, Mapping[int, Any]]
    own: Sequence[int]


def data_of(source: Source, seeds: Sequence[int], most: int = 4) -> Data:
    """Return the data of the parties, each drawn from a seed of its own.

    Args:
        source: the first program.
        seeds: by rank.
        most: rows of a table.
    """
    inputs: dict[str, dict[int, Any]] = {}
    own = []
    for rank, seed in zip(PARTIES, seeds, strict=True):
        dice = random.Random(seed * len(PARTIES) + rank)
        own.append(dice.randint(-50, 50))
        for variable in source.inputs:
            if rank in (variable.holders or ()):
                table = variable.kind == "table"
                value = _table(dice, most) if table else np.asarray(dice.randint(-50, 50))
                inputs.setdefault(variable.name, {})[rank] = value
    return Data(inputs, own)


def _table(dice: random.Random, most: int) -> pa.Table:
    rows = dice.randint(1, most)
    return pa.table({name: [dice.randint(-9, 9) for _ in range(rows)] for name, _ in COLUMNS})


@dataclass
class Experiment:
    """A chain of programs, and its runs.

    Args:
        seed: determines everything.
        lab: runs it.
        mode: of the host.
        liar: a party that deviates.
        length: of the chain.
        rows: at most, of a table.
        themes: what programs are about.

    Attributes:
        programs: the chain as traced.
        tables: per program its table.
    """

    seed: int
    lab: Lab | Live
    mode: Literal["launch", "standard"] = "launch"
    liar: int | None = None
    length: int = 1
    rows: int = 4
    themes: Sequence[Theme] = tuple(THEMES)
    programs: list[mp.Program] = field(default_factory=list)
    tables: list[Disclosure] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chain = generate(self.seed, self.length, themes=self.themes)
        self.functions = [
            mp.compile(source.function(), cluster_spec=self.lab.cluster_spec)
            for source in self.chain
        ]

    def findings(self) -> list[Finding]:
        """Run the chain with each party's data changed, and return all violations."""
        base = self.play(None)
        if self.liar is None:
            found = [f for i, s in enumerate(base) for f in unlisted(i, self.tables[i], s)]
            found += unexpected(base)
        else:
            found = []
        for source in PARTIES:
            if source != self.liar:
                changed = self.play(source)
                pair = Comparison(self.chain, self.tables, base, changed, source, self.liar)
                found += pair.findings()
        return found

    def play(self, changed: int | None, way: int = 1) -> list[Stage]:
        """Run the chain.

        Args:
            changed: the party whose data is another than by default.
            way: which other data.
        """
        seeds = [self.seed + 1_000_003 * way * (rank == changed) for rank in PARTIES]
        data = data_of(self.chain[0], seeds, self.rows)
        deviation = None if self.liar is None else Deviation(self.liar, self.seed)
        setting = Setting(data.own, deviation)
        if deviation is not None:
            setting.dealer.give(deviation.rank, deviation.private)
        self.lab.begin(setting)
        values = {name: self._given(name, held) for name, held in data.inputs.items()}
        stages: list[Stage] = []
        for source, function in zip(self.chain, self.functions, strict=True):
            start = len(setting.deliveries)
            stage, outputs = Stage(), ()
            try:
                args = [values[v.name] for v in source.inputs]
                if len(self.tables) == len(stages):
                    self._follow(function.trace(self.lab, *args).program, args)
                outputs = mp.evaluate(self.lab, function, *args, mode=self.mode)
            except PartyError as error:
                stage.failure = str(error)
                stage.failed_at = (error.rank, error.op, error.location)
            stage.deliveries = setting.deliveries[start:]
            stage.results = self._results(source, outputs)
            if isinstance(self.lab, Live):
                stage.frames = self.lab.frames(
                    self.programs[len(stages)], failed=bool(stage.failure)
                )
                stage.told, stage.log = self.lab.told(), self.lab.log()
            stage.readable = {
                rank: readable_bytes(readable(setting.dealer, rank)) for rank in PARTIES
            }
            stages.append(stage)
            values |= {v.name: x for v, x in zip(source.outputs, outputs, strict=False)}
            if stage.failure:
                break
        return stages

    def _follow(self, program: mp.Program, args: Sequence[mp.InterpVar]) -> None:
        """Add the table of a program over the labels that the host knows of its inputs."""
        found = follow(program, labels_of(*args), self.lab.held)
        self.programs.append(program)
        self.tables.append(found.disclosure)

    def _given(self, name: str, held: Mapping[int, Any]) -> mp.InterpVar:
        """Return an input: what each holder has."""
        some = next(iter(held.values()))
        base = mp.TableType(COLUMNS) if isinstance(some, pa.Table) else mp.TensorType("i64")
        kind = mp.MPType(base, mp.Mask.from_ranks(held))
        values = [self.lab.given(rank, held[rank]) if rank in held else None for rank in PARTIES]
        return mp.InterpVar(self.lab, kind, HostVar(values))

    def _results(self, source: Source, outputs: Sequence[Any]) -> dict[tuple[int, int], bytes]:
        """Return what the host may fetch: the plain outputs."""
        return {
            (i, rank): bytes_of(value)
            for i, out in enumerate(outputs)
            if out.base_type.form.value == "plain" and i not in source.kept
            for rank, value in enumerate(self.lab.fetch(out.value))
            if value is not None
        }


class LiveExperiment(Experiment):
    """An experiment on worker processes in production: one party's data is changed in two ways."""

    @property
    def source(self) -> int:
        """The party, every other time the one that has a table."""
        (owner,) = next(v.holders for v in self.chain[0].inputs if v.kind == "table") or ()
        return owner if self.seed % 2 else PARTIES[self.seed // 2 % len(PARTIES)]

    def findings(self) -> list[Finding]:
        """Run the chain three times, and return all violations."""
        base, source = self.play(None), self.source
        found = unexpected(base)
        for way in (1, 2):
            changed = self.play(source, way)
            pair = LiveComparison(self.chain, self.tables, base, changed, source)
            found += pair.findings()
        return found


def live_of_seed(seed: int, lab: Live) -> LiveExperiment:
    """Return the experiment of a seed on worker processes; lengths take turns."""
    length, themes = (1, 2, 1, 3)[seed % 4], (*THEMES, TABLES)
    return LiveExperiment(seed, lab, length=length, rows=400, themes=themes)


def with_operands(seed: int, lab: Lab) -> Experiment:
    """Return the experiment of a seed on what SPUs take for public; modes and lengths vary."""
    mode: Literal["launch", "standard"] = "launch" if seed // 3 % 2 else "standard"
    return Experiment(seed, lab, mode=mode, length=seed % 3 + 1, themes=[OPERANDS])


def of_seed(seed: int, lab: Lab | Live, length: int | None = None) -> Experiment:
    """Return the experiment of a seed: modes, lengths and liars take turns.

    Args:
        seed: of an even one all parties follow the protocol, of an odd one a party does not.
        lab: runs it.
        length: of the chain, if not that of the seed's turn.
    """
    turn = seed // 2
    return Experiment(
        seed,
        lab,
        mode=("launch", "standard")[turn % 2],
        liar=turn % 3 if seed % 2 else None,
        length=length or (1, 2, 1, 3)[turn // 2 % 4],
    )
