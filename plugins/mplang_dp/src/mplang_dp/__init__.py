"""Differential privacy: noisy counts, sums, means and histograms of a party's table.

Two tables are neighbours if one has the rows of one unit more, a person's: whoever gets a result of
``epsilon`` learns hardly whether any person is in the table, however many rows that has. A person's
contribution is clipped, and the party that has the table adds the noise, so no receiver knows it.

Example:
    >>> import mplang_core as mp
    >>> def program():
    ...     t = mp.dataset("bank", "people")
    ...     return mp.dp.count(t, unit="id", epsilon=1.0)
    >>> people = {"id": list(range(1000))}
    >>> cluster = mp.ClusterSpec([{"name": "bank"}])
    >>> with mp.Simulator(cluster, data={"bank": {"people": people}}) as sim:
    ...     found = mp.fetch(sim, mp.evaluate(sim, program))
    >>> abs(int(found) - 1000) < 100
    True
"""

from mplang_dp.frontend import count, histogram, mean, sum

__all__ = ["count", "histogram", "mean", "sum"]


def __dir__() -> list[str]:
    """Return the names that are for users."""
    return sorted(__all__)
