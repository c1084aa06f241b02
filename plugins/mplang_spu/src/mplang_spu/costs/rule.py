"""Costs of the op ``spu.run_jax``. Imports neither libspu nor JAX before they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mplang_analysis import Network, OpCosts, StepCost, network_of

from mplang_core.ext import Location, Operation, RunError
from mplang_spu import public_part
from mplang_spu.share_type import ShareType


def costs_of_run(op: Operation, network: Network) -> OpCosts | None:
    """Return what a function takes; ``None`` if it cannot be counted.

    Args:
        op: an ``spu.run_jax``.
        network: between the members; what the device's ``link`` says counts for transfers.
    """
    from mplang_spu.costs.apart import counted
    from mplang_spu.costs.counted import CountRequest, Step

    config = dict(op.attrs["config"])
    link = config.get("link")
    said = Network(**link) if isinstance(link, Mapping) else network_of(link)
    shares = [isinstance(value.type, ShareType) for value in op.inputs]
    drawn = public_part.results_of(op.attrs.get("public"), [each.type for each in op.inputs])
    code: bytes = op.attrs["program"]["code"]
    request = CountRequest(
        code=code.hex(),
        shares=(*shares, *[False] * len(drawn)),
        config=config,
        members=len(op.attrs["parties"]),
        network=said,
    )
    try:
        costs = counted(request.model_dump_json())
    except RunError:
        return None
    lines = _lines(code, {step.line for step in costs.steps}, op.location)

    def steps_of(steps: Sequence[Step]) -> tuple[StepCost, ...]:
        return tuple(
            StepCost(
                name=each.name,
                line=lines.get(each.line),
                times=each.times,
                turns_known=each.turns_known,
                known=each.known,
                messages=round(each.messages),
                bytes=round(each.size),
                rounds=each.rounds,
                in_turn=each.in_turn,
                seconds=each.seconds,
                spread=each.spread,
                exact=each.exact,
            )
            for each in steps
        )

    return OpCosts(steps_of(costs.steps), steps_of(costs.set_up), costs.way)


def _lines(
    code: bytes, wanted: Iterable[int], call_site: Location | None
) -> Mapping[int, Location | None]:
    """Return the user's lines of lines of the StableHLO, where this process traced it."""
    from mplang_stablehlo import read
    from mplang_stablehlo.ext import line_at, parse, walk

    module = parse(read(code))
    rows = [
        op.location.start_line if op.location.is_a_file() else 0 for op in walk(module.operation)
    ]
    return {
        line: line_at(module, code, rows.index(line), call_site) for line in wanted if line in rows
    }
