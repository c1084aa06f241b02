"""Memory of a session: the labels of its values, from program to program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mplang_analysis.follow import Followed, follow
from mplang_analysis.holdings import Holding, is_protected, unknown_history
from mplang_analysis.labels import PUBLIC, Label, own
from mplang_analysis.source_names import PUT
from mplang_analysis.storage import Stored
from mplang_core import InterpVar, Program
from mplang_core.ext import HostVar


class Memory:
    """Values that the parties got in the runs of a session; a host has one, and each worker."""

    def __init__(self) -> None:
        self._held: Mapping[int, Holding] = {}

    def __repr__(self) -> str:
        return f"<Memory of {len(self._held)} parties>"

    @property
    def held(self) -> Mapping[int, Holding]:
        """Per party what it had so far, for :func:`follow` and :func:`disclosure`."""
        return self._held

    def follow(
        self,
        program: Program,
        labels: Sequence[Mapping[int, Label]],
        *,
        missed: bool = False,
        stored: Stored | None = None,
    ) -> Followed:
        """Return the table of a run, and remember what the parties get in it.

        Args:
            program: the whole program, verified.
            labels: per input the label of each party's copy.
            missed: whether there were runs of which this memory knows nothing; then the parties
                count as having had anything.
            stored: the labels of what the parties have in storage. Where they are of shares or
                keys, there were runs of other sessions, too.
        """
        missed = missed or is_protected((stored or {}).values())
        held = unknown_history(program.mask) if missed else self._held
        followed = follow(program, labels, held, stored)
        self._held = followed.held
        return followed

    def follow_values(
        self, program: Program, inputs: Sequence[HostVar], stored: Stored | None = None
    ) -> Followed:
        """Return :meth:`follow` over the values of a host."""
        return self.follow(program, [_labels(each) for each in inputs], stored=stored)


def remember(results: Sequence[HostVar], followed: Followed) -> None:
    """Record the labels of the results of a run.

    Args:
        results: the results.
        followed: what :meth:`Memory.follow_values` returned for the run.
    """
    for result, labels in zip(results, followed.outputs, strict=True):
        result.labels = labels


def labels_of(*values: object) -> list[Mapping[int, Label]]:
    """Return the labels of the values of a host, for :func:`disclosure`.

    Args:
        *values: what programs returned, in the order of a program's inputs; anything else is a
            literal, which is public.

    Returns:
        Per value a label for each party that holds it.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_core import analysis
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     with mp.with_ctx(sim):
        ...         x = mp.put("P1", [1, 2])
        ...     moved = mp.evaluate(sim, lambda x: mp.put("P0", x), x)
        ...     told = mp.compile(lambda x: x, moved.type, cluster_spec=sim.cluster_spec)
        ...     table = analysis.disclosure(told, labels=analysis.labels_of(moved))
        >>> [(row.what, row.sender, row.discloses) for row in table.rows]
        [('result', 0, (1,))]
    """
    return [_labels(value.value) if isinstance(value, InterpVar) else {} for value in values]


def _labels(var: HostVar) -> Mapping[int, Label]:
    if var.labels is not None:
        return var.labels
    held = (rank for rank, value in enumerate(var.values) if value is not None)
    return {rank: PUBLIC if var.public else own(rank, PUT) for rank in held}
