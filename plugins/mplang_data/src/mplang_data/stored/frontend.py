"""``mp.store``, ``mp.load`` and ``mp.remove``: results that stay. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

from mplang_analysis.ext import use_of

import mplang_core as mp
from mplang_core import BaseType, ClusterSpec, Form, Mask, MPObject, MPType, TensorType
from mplang_core.ext import TraceError, at, devices_of_parties, parse_base_type, run_program
from mplang_data.description import check_name
from mplang_data.known import Catalogue
from mplang_data.stored.entry import check_storable, skeleton, unflatten


def store(x: Any, name: str) -> None:
    """Leave a value in the storage of the parties that hold it, when the program comes there.

    A party's own value lies in its sink as Parquet or NPY, where its owner finds it. Shares and
    keys are stored by each member, encrypted, and are all of one run. What was stored under the
    name before is replaced, at all members or at none. What flowed into the value is stored with
    it, and told by programs that load it.

    Args:
        x: a value, or a dict, list or tuple of values that the same parties hold.
        name: the name: letters, digits, ``-`` and ``_``. It is this coordinator's; others have
            names of their own.

    Raises:
        TraceError: the name is none, or the values are held by different parties, or cannot be
            stored; shows the line.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     mp.evaluate(sim, lambda: mp.store(mp.put("P0", [0.5, 0.25]), "scores"))
        ...     scores = mp.evaluate(sim, lambda: mp.load("P0", "scores"))
        ...     mp.fetch(sim, scores)
        array([0.5 , 0.25])
    """
    from mplang_data.stored import ops

    try:
        check_name(name)
        nest, leaves = skeleton(x, lambda each: isinstance(each, MPObject))
        check_storable([leaf.base_type for leaf in leaves])
        members = _holders(leaves)
    except (TypeError, ValueError) as error:
        raise TraceError(f"{at()}mp.store({name!r}): {error}", code="T014") from None
    run_program(ops.store(*leaves, name=name, nest=nest), members)


def load(device: str, name: str, *, type: Any = None) -> Any:
    """Return what a program has left under a name, in this session or in another one.

    The version is the one that was stored last, and the same at all members.

    Args:
        device: the device, such as ``"SP0"`` or ``"P0"``, or the name of a party.
        name: the name.
        type: its type, or a dict, list or tuple of types; by default as the parties tell it. For a
            device of shares the type of the tensor.

    Returns:
        The values, nested as they were stored, on that device.

    Raises:
        TraceError: nothing is known to be stored under that name, or it is not of that device.
        AdmissionError: when it runs: a member holds none, or they do not hold those of one run.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     mp.evaluate(sim, lambda: mp.store({"w": mp.put("P0", [0.5, 0.25])}, "model"))
        ...     mp.fetch(sim, mp.evaluate(sim, lambda: mp.load("P0", "model")["w"]))
        array([0.5 , 0.25])
    """
    from mplang_data.stored import ops

    ctx, target = _device(device)
    try:
        check_name(name)
        _check_before(ctx, name)
        nest, kinds = _known(ctx, target, name) if type is None else _given(ctx, target, type)
        check_storable(kinds)
        for kind in kinds:
            if (kind.form is Form.SHARE) != (target.kind.form is Form.SHARE):
                raise TypeError(f"it is a {kind}, which is not a value of {target}")
        program = ops.load(name=name, types=tuple(kinds))
    except (TypeError, ValueError) as error:
        raise TraceError(f"{at()}mp.load({device!r}, {name!r}): {error}", code="T014") from None
    found = run_program(program, target.mask)
    return unflatten(nest, [ctx.place(leaf, target) for leaf in found])


def remove(device: str, name: str) -> None:
    """Remove what is stored under a name, when the program comes there; nothing if it is gone.

    Args:
        device: the device whose members hold it, or the name of a party.
        name: the name.

    Raises:
        TraceError: the name or the device is none; shows the line.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.evaluate(sim, lambda: mp.store(mp.put("P0", 1), "count"))
        ...     mp.evaluate(sim, lambda: mp.remove("P0", "count"))
        ...     dict(sim.catalogue.stored["node0"])
        {}
    """
    from mplang_data.stored import ops

    _, target = _device(device)
    try:
        check_name(name)
    except ValueError as error:
        raise TraceError(f"{at()}mp.remove({device!r}, {name!r}): {error}", code="T014") from None
    run_program(ops.remove(name=name), target.mask)


def _holders(leaves: Sequence[MPObject]) -> Mask:
    masks = [leaf.pmask for leaf in leaves]
    known = [mask for mask in masks if mask is not None]
    if len(known) < len(masks):
        raise TypeError("its holder is known only at run time; run its pcall at named parties")
    if len(set(known)) > 1:
        held = ", ".join(sorted({str(mask) for mask in known}))
        raise TypeError(f"its values are at different parties, {held}; store each under a name")
    return reduce(and_, known)


def _device(name: str) -> tuple[Any, Any]:
    """Return the context, and the device of a name, or that of the party of a name."""
    ctx = mp.cur_ctx()
    cluster = ctx.cluster_spec
    assert isinstance(cluster, ClusterSpec)
    if not isinstance(name, str):
        raise TraceError(f"{at()}a device or a party is named by a text, got {name!r:.80}")
    if name in cluster.devices:
        return ctx, cluster.device(name)
    for node in cluster.nodes:
        if node.name == name:
            for each in devices_of_parties(cluster):
                if each.mask.first == node.rank:
                    return ctx, each
    devices = ", ".join(cluster.devices)
    parties = ", ".join(node.name for node in cluster.nodes)
    raise TraceError(
        f"{at()}no device or party {name!r}; there are {devices}; {parties}", code="T007"
    )


def _check_before(ctx: Any, name: str) -> None:
    """Check that the program has not stored the name: what it loads was there before it."""
    for each in ctx.ancestors():
        graph = getattr(each, "graph", None)
        for op in () if graph is None else graph.walk():
            if use_of(op) == ("store", name):
                raise TypeError(
                    f"this program has stored {name!r} at {op.location}, and what it loads was "
                    "there before it; use the value that it has stored"
                )


def _known(ctx: Any, target: Any, name: str) -> tuple[str, list[BaseType]]:
    """Return the nest and the types that the parties have in their catalogues."""
    parties = [ctx.cluster_spec.nodes[rank].name for rank in target.mask]
    asked = f"what is stored as {name!r} on {target.name}"
    nest, kinds = ctx.look_up(asked, lambda known: _look_up(known, parties, name))
    return nest, [parse_base_type(kind) for kind in kinds]


def _look_up(
    known: Catalogue | None, parties: Sequence[str], name: str
) -> tuple[str, tuple[str, ...]]:
    """Return the nest and the types that a catalogue has of what is stored at some parties.

    Raises:
        TypeError: it has none.
    """
    stored = {} if known is None else known.stored
    described = [stored.get(party, {}).get(name) for party in parties]
    for each in described:
        if each is not None:
            return each
    names = sorted(set().union(*(stored.get(party, {}) for party in parties)))
    there = f"there are {', '.join(names)}" if names else "there is nothing"
    raise TypeError(
        f"nothing is known to be stored there under that name; {there}. What another host has "
        "stored since this one connected is known after host.refresh()"
    )


def _given(ctx: Any, target: Any, type: Any) -> tuple[str, list[BaseType]]:
    nest, kinds = skeleton(type, lambda each: isinstance(each, BaseType))
    if target.kind.form is Form.PLAIN:
        return nest, kinds
    return nest, [_on(ctx, target, kind) for kind in kinds]


def _on(ctx: Any, target: Any, kind: BaseType) -> BaseType:
    """Return the type that a tensor has on a device: that of a tensor that is brought there."""
    if not isinstance(kind, TensorType):
        return kind
    body = mp.TraceContext(ctx.cluster_spec)
    holder = MPType(kind, Mask.of(next(iter(target.mask))))
    traced = mp.trace(body, lambda x: mp.seal(x, to=target.name), holder)
    (moved,) = traced.program.graph.outputs
    assert isinstance(moved.type, MPType)
    return moved.type.base
