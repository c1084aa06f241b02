"""Re-execution of functions on SPU in this process."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from mplang_spu import engine
from mplang_spu.link import LinkCommunicator
from mplang_spu.lowering import Target
from mplang_spu.reference_check.flat_function import Variant
from mplang_spu.reference_check.reconstruction import reconstruct_tensor
from mplang_spu.reference_check.reference import Array

TIMEOUT = 600.0  # seconds that a member waits for a message


@dataclass(frozen=True, slots=True)
class Setting:
    """Configuration of an SPU run.

    Attributes:
        config: of the device.
        members: the number of members.
        secret: per operand whether it is a share.
        unreduced: the numbers of the shares whose integers may be beyond their type.
        computed: the numbers of the shares that an earlier run gave.
    """

    config: Mapping[str, Any]
    members: int
    secret: tuple[bool, ...]
    unreduced: frozenset[int] = frozenset()
    computed: frozenset[int] = frozenset()

    @property
    def step(self) -> float:
        """Distance of neighboring fixed-point numbers."""
        return float(2.0 ** -self.config["fxp_fraction_bits"])


def rerun(variant: Variant, operands: Sequence[Sequence[Any]], setting: Setting) -> list[Array]:
    """Run a variant of a function on SPU, with one thread of this process per member.

    Args:
        variant: of the code that SPU ran.
        operands: libspu's share of each operand, per member.
        setting: the configuration of the run.

    Returns:
        The reconstructed results.
    """
    target = Target.of(setting.config)
    compiled = engine.compile(variant.text, setting.secret, target, setting.unreduced)
    lifted = [_public(number, setting) for number in compiled.operands]
    name = uuid.uuid4().hex
    addresses = [f"P{rank}" for rank in range(setting.members)]

    def member(rank: int) -> list[Any]:
        link = LinkCommunicator(rank, addresses, mem_link=True, name=name, timeout=TIMEOUT)
        runtime = engine.Engine(link, setting.config)
        try:
            given = [*operands[rank], *(shares[rank] for shares in lifted)]
            return runtime.run(compiled.code, given, len(variant.gives))
        finally:
            runtime.close()

    with ThreadPoolExecutor(setting.members) as pool:
        results = list(pool.map(member, range(setting.members)))
    return [
        reconstruct_tensor(pieces, kind, setting.config)
        for pieces, kind in zip(zip(*results, strict=True), variant.gives, strict=True)
    ]


def _public(number: Array, setting: Setting) -> list[Any]:
    """Return each member's form of a public number."""
    target = Target.of(setting.config)
    io = engine.io(setting.members, target.protocol, target.field, target.fxp)
    made: list[Any] = io.make_shares(number, engine.visibility(False))
    return made
