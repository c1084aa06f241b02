"""Sums of a log: how often approvals were used, and what is used up of budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mplang_policy.budgets import Amount
from mplang_policy.ledger import ENTRIES, EXPIRED, ROTATION, Entry, Ledger


@dataclass
class Sums:
    """Totals used by the runs of a log.

    Attributes:
        uses: how often approvals were used, by their names.
        spent: what was used up, by data set and coordinator.
    """

    uses: Counter[str] = field(default_factory=Counter)
    spent: dict[tuple[str, str], Amount] = field(default_factory=dict)

    @classmethod
    def begin(cls, entries: Sequence[Entry]) -> Sums:
        """Return the sums before the first of some entries, as the rotation before it says."""
        first = entries[0].number if entries else 1
        for entry in entries:
            body = entry.body
            if entry.kind == ROTATION and body.get("first") == first:
                return cls.of(body)
        return cls()

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Sums:
        """Return sums that an entry tells."""
        spent = {(name, who): Amount(*amount) for name, who, *amount in body.get("spent") or ()}
        return cls(Counter(body.get("uses") or {}), spent)

    def to_dict(self) -> dict[str, Any]:
        """Return them as plain data."""
        spent = [[*key, *amount] for key, amount in sorted(self.spent.items())]
        return {"uses": dict(self.uses), "spent": spent}

    def _add(self, other: Sums) -> None:
        self.uses.update(other.uses)
        for key, amount in other.spent.items():
            self.spent[key] = self.spent.get(key, Amount()).plus(amount)

    def add(self, entry: Entry) -> None:
        """Add what a run has used, or runs whose bodies have expired."""
        body = entry.body
        if entry.kind == EXPIRED and body.get("what") == ENTRIES:
            self._add(Sums.of(body))
        if entry.kind != "run":
            return
        self.uses.update(filter(None, [body.get("approval")]))
        for data_set, amount in (body.get("spends") or {}).items():
            key = data_set, str(body.get("coordinator"))
            self.spent[key] = self.spent.get(key, Amount()).plus(Amount(*amount))


def sums_that_differ(ledger: Ledger) -> Iterator[str]:
    """Yield which counts of a ledger are not those of its log.

    Args:
        ledger: the ledger.

    Raises:
        LedgerError: it cannot be read.
    """
    entries = list(ledger.entries())
    try:
        sums = Sums.begin(entries)
        for entry in entries:
            sums.add(entry)
    except (AttributeError, TypeError, ValueError):
        yield "what its entries say is used up cannot be added: one was changed"
        return
    uses = ledger.uses()
    for name in sorted(uses.keys() | sums.uses.keys()):
        if uses.get(name, 0) != sums.uses[name]:
            yield f"the count of the uses of approval {name} was changed"
    spent = ledger.spent()
    for data_set, who in sorted(spent.keys() | sums.spent.keys()):
        if spent.get((data_set, who)) != sums.spent.get((data_set, who)):
            yield f"what {who} has used up of data set {data_set} was changed"
