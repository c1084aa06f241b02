"""Rehearsal of a program: a run on synthetic data, on a simulator, before anything is sent.

The data are made of what the analyst sees anyway: types, schemas and declared ranges. Nothing of
the owners' data is used, and the parties do not learn that there was a rehearsal.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from mplang_analysis import UNKNOWN, USUAL, Draw, Interval, numbers_within, storage_of

from mplang_core import ClusterSpec, MPType, Program, TableType, TensorType, connect
from mplang_core.ext import (
    Call,
    ConfigError,
    DeclaredRange,
    Forwards,
    Graph,
    HostVar,
    MPLangError,
    PartyCall,
    PrecisionWarning,
    SimpHost,
    Value,
    control_of,
    given_catalogue,
    interface_of,
)

SEED = 0
HEAD = (
    f"on synthetic data (check='simulator'; from {USUAL.low:g} to {USUAL.high:g} where no range is "
    "declared), before anything is sent: "
)
TAIL = "; check_numbers=False skips this check"  # of a simulator that somebody made


def rehearse(host: SimpHost, program: Program, inputs: Sequence[HostVar], seed: int = SEED) -> None:
    """Run a program on synthetic data, and tell what goes wrong.

    Each draw is one run: of numbers within their declared ranges, with ends, zeros and ties among
    them, and of numbers that are almost all the largest. A wrong number is a
    :class:`mplang_core.errors.PrecisionWarning` at its line, as in a simulator.

    Args:
        host: the host that is to run it.
        program: the program.
        inputs: its inputs; of those that are public the values are taken, of others the types.
        seed: of the data; the same gives the same data.

    Raises:
        ConfigError: an input, or what was stored, cannot be made up.
        MPLangError: the program fails; of the class of that error.
    """
    cluster = host.cluster_spec
    assert isinstance(cluster, ClusterSpec)
    told: set[tuple[str, int]] = set()
    for draw in get_args(Draw):
        data = _data_sets(host, program, seed, draw)
        simulator: Any = connect("simulator", cluster, mode="launch", data=data)
        simulator.diagnosed.add(program)  # the host tells it
        with simulator:
            given = list(_inputs(host, simulator, program, inputs, seed, draw))
            _run(simulator, program, given, told)


def _run(
    simulator: SimpHost, program: Program, inputs: Sequence[HostVar], told: set[tuple[str, int]]
) -> None:
    """Run a program, and warn of each line once; ``told`` has those of earlier runs."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            simulator.evaluate(program, inputs)
        except MPLangError as error:
            error.args = (f"{HEAD}{error}", *error.args[1:])
            raise
    for each in caught:
        text = str(each.message)
        if issubclass(each.category, PrecisionWarning):
            if (each.filename, each.lineno) in told:
                continue
            told.add((each.filename, each.lineno))
            text = HEAD + text.replace(TAIL, "")
        warnings.warn_explicit(text, each.category, each.filename, each.lineno)


def _data_sets(host: SimpHost, program: Program, seed: int, draw: Draw) -> Any:
    """Return the data sets that a program reads, made up."""
    loads = [use.name for use in storage_of(program) if use.action == "load"]
    if loads:
        raise ConfigError(
            f"check='simulator' cannot make up what was stored as {loads[0]!r}: no range of it is "
            "declared. Check the program that stores it, and leave check= out here",
            code="C002",
        )
    if not any(op.dialect == "data" for op in program.graph.walk()):
        return None
    from mplang_data.ext import synthetic_data

    known: Mapping[str, Any] = given_catalogue.get() or getattr(host, "catalogue", None) or {}
    return synthetic_data(program, host.names, known, seed, draw)


def _inputs(
    host: SimpHost, simulator: SimpHost, program: Program, inputs: Sequence[HostVar],
    seed: int, draw: Draw,
) -> Iterator[HostVar]:  # fmt: skip
    ranges = declared_ranges(program)
    for i, (value, given) in enumerate(zip(program.graph.inputs, inputs, strict=True)):
        kind = value.type
        assert isinstance(kind, MPType)
        if given.public and isinstance(kind.base, TensorType):
            made = host.fetch(given)[0]
        else:
            random = np.random.default_rng([seed, i])
            made = _value(kind, ranges.get(i, UNKNOWN), random, draw)
        found = simulator.lift(made, kind.pmask)
        yield HostVar(found.values, public=given.public)


def _value(kind: MPType, within: Interval, random: np.random.Generator, draw: Draw) -> Any:
    base = kind.base
    if isinstance(base, TensorType):
        return numbers_within(base, within, random, draw)
    if isinstance(base, TableType):
        from mplang_data.ext import synthetic_table

        return synthetic_table(base, random, draw)
    raise ConfigError(
        f"check='simulator' cannot make up an argument of type {base}: only tensors and tables are "
        "made up. Check a program that makes it as well, and leave check= out here",
        code="C002",
    )


def declared_ranges(program: Program) -> dict[int, Interval]:
    """Return the ranges that a program declares of its inputs, by position.

    Example:
        >>> import mplang_core as mp
        >>> x = mp.MPType(mp.TensorType("f32", (3,)), mp.Mask.of(0))
        >>> seal = lambda x: mp.put("P0", x, range=(0, 9))
        >>> declared_ranges(mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), seal, x).program)
        {0: Interval(low=0, high=9)}
    """
    found: dict[int, Interval] = {}
    _follow(program.graph, list(range(len(program.graph.inputs))), found)
    return found


def _follow(
    graph: Graph, inputs: Sequence[int | None], found: dict[int, Interval]
) -> list[int | None]:
    """Follow copies of the program's inputs, and collect the ranges that they are checked by."""
    env: dict[Value, int | None] = dict(zip(graph.inputs, inputs, strict=True))
    for op in graph.ops:
        ins = [env[value] for value in op.inputs]
        outs: Sequence[int | None] = [None] * len(op.outputs)
        control, bounds = control_of(op), interface_of(op, DeclaredRange)
        forwards = interface_of(op, Forwards)
        if isinstance(control, Call | PartyCall):
            outs = _follow(op.regions[control.region], ins, found)
        elif bounds is not None and ins[0] is not None:
            low, high = bounds.declared(op)
            before = found.get(ins[0], UNKNOWN)
            found[ins[0]] = Interval(max(low, before.low), min(high, before.high))
            outs = ins[:1]
        elif forwards is not None:
            copies = [{ins[i] for i in forwards.sources(op, j)} for j in range(len(outs))]
            outs = [each.pop() if len(each) == 1 else None for each in copies]
        env.update(zip(op.outputs, outs, strict=True))
    return [env[value] for value in graph.outputs]
