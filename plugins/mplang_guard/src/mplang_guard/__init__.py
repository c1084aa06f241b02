"""Guards: aggregates of a table, of which each number is made of at least ``k`` persons.

Example:
    >>> import mplang_core as mp
    >>> people = {"id": [1, 2, 3, 4], "dept": ["a", "a", "a", "b"], "pay": [1.0, 2.0, 6.0, 9.0]}
    >>> def program():
    ...     t = mp.dataset("bank", "people")
    ...     return mp.guard.aggregate(t, unit="id", k=3, by=["dept"], mean=("pay", "mean"))
    >>> cluster = mp.ClusterSpec([{"name": "bank"}])
    >>> with mp.Simulator(cluster, data={"bank": {"people": people}}) as sim:
    ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()
    [{'dept': 'a', 'mean': 3.0}]
"""

from mplang_guard.frontend import aggregate

__all__ = ["aggregate"]


def __dir__() -> list[str]:
    """Return the names that are for users."""
    return sorted(__all__)
