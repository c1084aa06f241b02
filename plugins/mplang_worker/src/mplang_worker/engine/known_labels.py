"""Labels that a worker knows itself: of the results of a session's runs, at all parties."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from mplang_analysis import Label
from mplang_http.ext import Input, Stored

from mplang_worker.wire.opening import Opening, read_labels

MAX_KNOWN = 10_000  # results


class KnownLabels:
    """Labels of results by name and rank; those of the last ``MAX_KNOWN`` results."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Mapping[int, Label]] = OrderedDict()

    def add(self, run: str, outputs: Sequence[Mapping[int, Label]]) -> None:
        """Record the labels of the results of a run.

        Args:
            run: name of the run.
            outputs: per result the label of each party's copy.
        """
        for i, labels in enumerate(outputs):
            self._known[f"{run}.{i}"] = labels
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def of(self, name: str, rank: int) -> Label | None:
        """Return the label of a party's copy of a result; ``None`` if it is not known."""
        return self._known.get(name, {}).get(rank)

    def of_inputs(
        self, openings: Mapping[int, Opening], inputs: Sequence[Input]
    ) -> list[dict[int, Label]]:
        """Return per input the labels of the parties' copies.

        A party tells the labels of its own copies. Of a result that this worker knows, they are
        joined with what it knows, so that a party cannot leave out whose data it got.

        Args:
            openings: the openings of the parties by rank.
            inputs: the inputs of the run.

        Raises:
            WireError: a party tells of another number of inputs, or a label is malformed.
        """
        found = read_labels(openings, len(inputs))
        for labels, given in zip(found, inputs, strict=True):
            if isinstance(given, Stored):
                for rank, name in enumerate(given.names):
                    mine = self.of(name or "", rank)
                    if mine is not None:
                        labels[rank] = labels[rank] | mine if rank in labels else mine
        return found
