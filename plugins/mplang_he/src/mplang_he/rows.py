"""Functions of several rows: sums over them, and moving them in a circle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mplang_core import Mask, MPObject
from mplang_core.ext import Device, TraceError, at, run_program
from mplang_he.config import HeConfig
from mplang_he.keys import Keys, known_keys
from mplang_he.ops import SchemeOps, ops_of
from mplang_he.parameters import sum_steps
from mplang_he.types import HeCiphertextType


def sum_rows(x: MPObject) -> MPObject:
    """Add up the rows of what is on an HE device.

    It takes one level, and keys of as many rotations as slots have bits, which go to the evaluator
    once in a program: 28 megabytes at degree 8,192, 230 at 16,384.

    Args:
        x: on a device of kind HE, with rows along the first axis, or where its function put them.

    Returns:
        The sums, with one row, on the device.

    Raises:
        TraceError: it is on no such device, or has no room: seal with ``levels:``, or call the
            function before by ``mp.device("H", spare=1)``.

    Example:
        >>> import numpy as np
        >>> import mplang_core as mp
        >>> nodes = [{"name": "clinic"}, {"name": "vendor"}]
        >>> h = {"kind": "HE", "members": [0, 1], "config": {"holder": 0}}
        >>> devices = {"C": {"kind": "PPU", "members": [0]}, "H": h}
        >>> cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})
        >>> def program():
        ...     x = mp.put("C", np.array([0.5, 1.0, -2.0]), range=(-2, 2))
        ...     squares = mp.device("H", spare=1)(lambda x: x * x)(x)
        ...     return mp.reveal(mp.he.sum_rows(squares), to="C")
        >>> with mp.Simulator(cluster) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).round(3).tolist()
        [5.25]
    """
    kind, keys = _keys(x)
    rotation = keys.rotation_at(keys.evaluator, sum_steps(kind.parameters))
    public = keys.public_at(keys.evaluator)
    return _on_device(x, lambda ops: ops.sum(x, rotation, public))


def rotate_rows(x: MPObject, by: int) -> MPObject:
    """Move the rows of what is on an HE device in a circle.

    It takes one level, and keys of two rotations.

    Args:
        x: on a device of kind HE; of no more rows than half its degree.
        by: which row becomes the first one.

    Returns:
        The rows from that one on, then those before it, on the device.

    Raises:
        TraceError: it is on no such device, has no room, or no such row.

    Example:
        >>> import numpy as np
        >>> import mplang_core as mp
        >>> nodes = [{"name": "clinic"}, {"name": "vendor"}]
        >>> h = {"kind": "HE", "members": [0, 1], "config": {"holder": 0, "limit": 100.0}}
        >>> devices = {"C": {"kind": "PPU", "members": [0]}, "H": h}
        >>> cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})
        >>> def program():
        ...     x = mp.seal(mp.put("C", np.array([3, 4, 5])), to="H")
        ...     return mp.reveal(mp.he.rotate_rows(x, 2), to="C")
        >>> with mp.Simulator(cluster) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
        [5, 3, 4]
    """
    kind, keys = _keys(x)
    if type(by) is not int or not 0 < by < kind.rows:
        raise TraceError(
            f"{at()}by is a row of {x!s} from 1 to {kind.rows - 1}, got {by!r}", code="T012"
        )
    rotation = keys.rotation_at(keys.evaluator, (by, by - kind.rows))
    public = keys.public_at(keys.evaluator)
    return _on_device(x, lambda ops: ops.roll(x, rotation, public, by=by))


def _keys(x: MPObject) -> tuple[HeCiphertextType, Keys]:
    """Return the type of what is on a device, and the keys of the device.

    Raises:
        TraceError: it is on none, or was made in another program.
    """
    device, kind = cast("Device | None", getattr(x, "device", None)), getattr(x, "base_type", None)
    if device is None or not isinstance(kind, HeCiphertextType):
        raise TraceError(f"{at()}rows takes a value on a device of kind HE, got {x!s}", code="T012")
    keys = known_keys(x.ctx, device, kind.parameters)
    if keys is None or not isinstance(device.config, HeConfig):
        raise TraceError(
            f"{at()}the key of {x!s} was made in another program, or within a branch", code="T012"
        )
    return kind, keys


def _on_device(x: MPObject, make: Callable[[SchemeOps], Any]) -> MPObject:
    """Run an op of its scheme at the evaluator, and return its result on the device."""
    device, kind = cast(Device, x.device), x.base_type
    assert isinstance(kind, HeCiphertextType)
    program = make(ops_of(kind.parameters))
    made = cast(MPObject, run_program(program, Mask.of(device.config.evaluator)))
    return x.ctx.place(made, device)
