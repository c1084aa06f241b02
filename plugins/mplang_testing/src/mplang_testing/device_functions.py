"""Functions that devices are tried on: an op, a function of arrays, and one of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from mplang_core import registry
from mplang_testing import dialect

On = Callable[[Any], Callable[..., Any]]  # as mp.device("P0") gives


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """Function that a device runs, with an operand and the check of its result.

    Attributes:
        what: a phrase for it, in messages.
        call: ``call(on, x)`` runs it on a device with one operand.
        operand: returns the data of the operand.
        is_right: whether what comes back is its result, within a tolerance.
        is_installed: whether all that it needs is installed.
    """

    what: str
    call: Callable[[On, Any], Any]
    operand: Callable[[], Any]
    is_right: Callable[[Any, float], bool]
    is_installed: Callable[[], bool] = lambda: True


def _numbers() -> Any:
    return np.array([3, 4], np.float32)


def _doubled(found: Any, tolerance: float) -> bool:
    array = np.asarray(found)
    return array.shape == (2,) and bool(np.allclose(array, [6, 8], rtol=0.0, atol=tolerance))


def _table() -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]

    return pa.table({"age": [17, 44]})


def _compiles(kind: str) -> bool:
    """Return whether a frontend compiles Python functions of plain values of a kind."""
    compilers = [meta for meta in registry.list_ops() if meta.op_kind == "compiler"]
    plain = [meta for meta in compilers if not meta.targets]
    return any(spec.kind == kind for meta in plain for spec in meta.inputs)


FUNCTIONS = {
    "ops": DeviceFunction(
        "an op of one party", lambda on, x: on(dialect.add)(x, x), _numbers, _doubled
    ),
    "arrays": DeviceFunction(
        "a Python function of arrays",
        lambda on, x: on(lambda x: x * 2)(x),
        _numbers,
        _doubled,
        lambda: _compiles("Tensor"),
    ),
    "tables": DeviceFunction(
        "a Python function of tables",
        lambda on, t: on(lambda t: t)(t),
        _table,
        lambda found, tolerance: found.to_pydict() == {"age": [17, 44]},
        lambda: _compiles("Table") and find_spec("mplang_tables") is not None,
    ),
}
"""By what they are functions of."""
