"""``mp.explain``: where the parts of a query over parties run, what they tell, and what they cost.

What is sent on shares does not depend on data, and grows with bounds of rows alone. So the cost of
a program is that of the same program over empty tables with small bounds, run here and drawn out.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from mplang_analysis import Paragraphs, Report, TextTable, disclosure
from mplang_spu import SpuConfig

import mplang_core as mp
from mplang_core import ClusterSpec, Mask, MPType, Program, TableType
from mplang_core.ext import Operation, PartyCall, TraceError, control_of
from mplang_joins.on_shares import oblivious

SIZES = {"network": (64, 128, 256)}
"""Bounds of rows of the runs that are drawn out, by the method of sorting."""
USUAL_SIZES = (128, 512, 1024)

MAX_SHOWN = 60  # characters of what a part does, in a table

Link: TypeAlias = tuple[int, int]


class _Host(Protocol):
    """A host of any backend: its cluster, and what owners publish."""

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""

    @property
    def catalogue(self) -> Mapping[str, Mapping[str, object]] | None:
        """Descriptions of data sets by party and name."""


@dataclass(frozen=True, slots=True)
class QueryStep:
    """Part of a query over several parties.

    Attributes:
        parties: the names of those that run it.
        what: what they do.
        line: the user's line.
    """

    parties: tuple[str, ...]
    what: str
    line: str


@dataclass(frozen=True, slots=True)
class Explanation(Report):
    """Plan of a program: where its parts run, what they disclose to whom, and their costs.

    Attributes:
        program: its name.
        steps: its parts.
        tells: who learns what, in sentences.
        bytes: what parties send each other, by the names of sender and receiver; estimates.
        seconds: how long it takes on this machine, with all parties in one process.
    """

    program: str
    steps: tuple[QueryStep, ...]
    tells: tuple[str, ...]
    bytes: Mapping[tuple[str, str], int]
    seconds: float

    def tables(self) -> list[TextTable]:
        """Return its parts, and what they send."""
        steps = [[", ".join(each.parties), _short(each.what), each.line] for each in self.steps]
        links = [[f"{a} → {b}", f"{n / 1e6:.3g}"] for (a, b), n in self.bytes.items()]
        return [
            TextTable(f"Parts of {self.program}", ["runs at", "what", "line"], steps),
            TextTable("What is sent, about", ["from → to", "MB"], links),
        ]

    def parts(self, drawings: bool = True) -> Sequence[TextTable | Paragraphs]:
        """Return its tables, who learns what, and how long it takes."""
        said = (
            f"About {self.seconds:.2g} s on this machine, where all parties share its cores, once "
            "the program is compiled."
        )
        return [*self.tables(), Paragraphs(self.tells, "Who learns what"), Paragraphs([said])]

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "program": self.program,
            "steps": [asdict(each) for each in self.steps],
            "tells": list(self.tells),
            "bytes": [[a, b, n] for (a, b), n in self.bytes.items()],
            "seconds": self.seconds,
        }


def explain(host: _Host, fn: Callable[[], object]) -> Explanation:
    """Return where the parts of a query over parties run, what they tell, and what they cost.

    Bytes and seconds are those of the same program over empty tables with small bounds of rows,
    which is run on this machine three times, drawn out to the bounds that owners publish. So no
    data is read, and nothing is sent to a worker.

    Args:
        host: a host of any backend; its catalogue has the data sets.
        fn: a program without arguments, such as one of :func:`mplang_joins.join`, ``mp.sql`` on an
            SPU, or a guard of :func:`mplang_joins.overlap`.

    Raises:
        TraceError: the program reads no data set, or does not compile; shows the line.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     people, sales = mp.dataset("bank", "people"), mp.dataset("shop", "sales")
        ...     text = "SELECT sum(pay) AS pay FROM {people} JOIN {sales} ON id = who"
        ...     return mp.reveal(mp.sql("SP0", text, people=people, sales=sales), to="P0")
        >>> data = {"bank": {"people": {"id": [1, 2], "pay": [10, 20]}},
        ...         "shop": {"sales": {"who": [2, 2, 3]}}}
        >>> cluster = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
        >>> with mp.Simulator(cluster, data=data) as sim:
        ...     explained = explain(sim, program)
        >>> for step in explained.steps:
        ...     print(", ".join(step.parties), "|", step.what[:18])
        bank | SELECT "people"."i
        bank | shares a row for e
        shop | SELECT "sales"."wh
        shop | shares a row for e
        bank, shop | joins and computes
    """
    costs = _Costs(host, fn)
    with mp.catalogue(host.catalogue or {}):
        program = mp.compile(fn, cluster_spec=host.cluster_spec).program
    names = [node.name for node in host.cluster_spec.nodes]
    links, seconds = costs.at_full_size()
    called = {(names[a], names[b]): size for (a, b), size in sorted(links.items())}
    tells = tuple(disclosure(program, names=names).sentences())
    return Explanation(program.name, tuple(_steps(program, names)), tells, called, seconds)


# -- parts


def _short(what: str) -> str:
    return what if len(what) <= MAX_SHOWN else f"{what[:MAX_SHOWN]}…"


def _steps(program: Program, names: Sequence[str]) -> Iterator[QueryStep]:
    for op in program.graph.ops:
        control = control_of(op)
        inner = [each for region in op.regions.values() for each in region.ops]
        parties = control.parties if isinstance(control, PartyCall) else None
        for each in inner or [op]:
            what = _what(each)
            if what:
                ranks = parties if parties is not None else _holders(op)
                line = str(each.location or op.location or "")
                yield QueryStep(tuple(names[rank] for rank in ranks), what, line)


def _holders(op: Operation) -> Mask:
    """Return the parties that have operands of an op among parties."""
    kinds = [value.type for value in op.inputs]
    return Mask.from_ranks(
        rank
        for kind in kinds
        if isinstance(kind, MPType) and kind.pmask is not None
        for rank in kind.pmask
    )


def _what(op: Operation) -> str:
    """Return what an op does; nothing if it only moves values."""
    attrs = op.attrs
    match op.opcode:
        case "ibis.run":
            from mplang_ibis.ext import read_sql

            return " ".join(read_sql(attrs["code"]).split())
        case "match.match":
            return f"match keys, {_most(attrs['most'])}"
        case "joins.enter" | "joins.reduced" | "joins.placed" | "joins.units":
            groups = f", in {attrs['groups']} groups" if attrs.get("groups", 1) > 1 else ""
            return f"shares a row for each of {attrs['rows']} keys or fewer{groups}"
        case "joins.guarded":
            return f"joins on shares, and tells groups of {attrs['k']} units and more"
        case "spu.run_jax":
            return "joins and computes on shares"
        case "joins.table":
            return "makes a table of the groups that are there"
    return ""


def _most(bounds: Sequence[int | None]) -> str:
    return " and ".join("any number" if each is None else f"{each} or fewer" for each in bounds)


# -- costs


class _Costs:
    """Runs of a program over empty tables with smaller bounds."""

    def __init__(self, host: _Host, fn: Callable[[], object]) -> None:
        self._fn, self._spec = fn, host.cluster_spec
        self._sets = {
            party: {
                name: each
                for name, each in sets.items()
                if isinstance(getattr(each, "type", None), TableType)
            }
            for party, sets in (host.catalogue or {}).items()
        }
        bounds = [
            b for sets in self._sets.values() for each in sets.values() for b in _bounds(each)
        ]
        if not bounds:
            raise TraceError(
                "explain: the program reads no data set with a known bound on its rows", code="T018"
            )
        self._largest = max(bounds)

    def at_full_size(self) -> tuple[dict[Link, int], float]:
        """Return what parties send each other, and the seconds."""
        sizes = [size for size in self._sizes() if size < self._largest] or [self._largest]
        runs = [self._run(size / self._largest) for size in sizes]
        keys = sorted({link for links, _ in runs for link in links})
        links = {
            key: round(self._drawn_out(sizes, [links.get(key, 0) for links, _ in runs]))
            for key in keys
        }
        return links, self._drawn_out(sizes, [seconds for _, seconds in runs])

    def _sizes(self) -> Sequence[int]:
        return next((SIZES[each] for each in self._methods() if each in SIZES), USUAL_SIZES)

    def _methods(self) -> list[str]:
        """Return how the SPUs of the cluster sort for a join."""
        configs = [self._spec.device(name).config for name in self._spec.devices]
        return [
            oblivious(each).sort_method or "" for each in configs if isinstance(each, SpuConfig)
        ]

    def _drawn_out(self, sizes: Sequence[int], measured: Sequence[float]) -> float:
        """Return a cost at the largest bound: a part is constant, another one grows with rows.

        By a network the rows times the square of their logarithm are compared.
        """
        if len(sizes) < 2:
            return float(measured[-1])
        network = "network" in self._methods()

        def terms(size: int) -> list[float]:
            return [1.0, 2 * size * np.log2(2 * size) ** 2 if network else size]

        weights = 1 / np.maximum(np.asarray(measured, float), 1e-9)
        rows = np.array([terms(size) for size in sizes]) * weights[:, None]
        factors, *_ = np.linalg.lstsq(rows, np.ones(len(sizes)), rcond=None)
        return max(float(np.dot(factors, terms(self._largest))), float(measured[-1]))

    def _run(self, scale: float) -> tuple[dict[Link, int], float]:
        """Return the bytes by link, and the seconds, of a run with smaller bounds."""
        with tempfile.TemporaryDirectory(prefix="mplang-") as folder:
            data = {
                party: {name: _smaller(each, scale, Path(folder)) for name, each in sets.items()}
                for party, sets in self._sets.items()
            }
            with mp.Simulator(_counted(self._spec), data=data, mode="launch") as sim:
                made = mp.compile(self._fn, cluster_spec=sim.cluster_spec)
                with mp.record(sim) as recording:
                    mp.evaluate(sim, made)
                links = {link: use.bytes for link, use in recording.links().items()}
            with mp.Simulator(self._spec, data=data, mode="launch", check_numbers=False) as sim:
                made = mp.compile(self._fn, cluster_spec=self._spec)
                mp.evaluate(sim, made)
                begin = time.perf_counter()
                mp.evaluate(sim, made)
                return links, time.perf_counter() - begin


def _bounds(description: object) -> list[int]:
    """Return how many rows and keys a data set has at most, as its owner publishes."""
    rows, keys = getattr(description, "rows", None), getattr(description, "keys", {})
    bounds = [getattr(rows, "at_most", rows), *(each.at_most for each in keys.values())]
    return [each for each in bounds if each]


def _smaller(description: object, scale: float, folder: Path) -> dict[str, object]:
    """Return an empty data set like another one, with smaller bounds."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
    from mplang_tables import arrow

    kind = description.type  # type: ignore[attr-defined]
    path = Path(tempfile.mkstemp(suffix=".parquet", dir=folder)[1])
    pq.write_table(arrow.schema(kind).empty_table(), path)
    fields = description.model_dump(exclude_none=True, exclude_defaults=True)  # type: ignore[attr-defined]
    fields.pop("engine", None)
    rows, keys = fields.pop("rows", None), fields.pop("keys", {})
    if rows is not None:
        most = rows["at_most"] if isinstance(rows, Mapping) else rows
        fields["rows"] = {"at_most": max(1, round(most * scale))}
    if keys:
        fields["keys"] = {
            column: {"at_most": max(1, round(each["at_most"] * scale))}
            for column, each in keys.items()
        }
    return {**fields, "source": f"parquet:{path}"}


def _counted(spec: ClusterSpec) -> ClusterSpec:
    """Return a cluster whose SPUs send their messages where they are counted."""
    fields = spec.model_dump()
    for name, device in fields["devices"].items():
        if isinstance(spec.device(name).config, SpuConfig):
            device["config"] = {**device["config"], "use_mplang_channel": True}
    return ClusterSpec.from_dict(fields)
