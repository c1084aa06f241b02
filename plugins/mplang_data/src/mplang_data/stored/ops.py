"""Ops of the dialect ``data`` for results that stay. Imports no Arrow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mplang_analysis.ext import Action

from mplang_core import BaseType, FeProgram, Mask, PFunction, feop, simple_op
from mplang_core.ext import AnyType, Attr, Effects, OpDef, Operation, flatten
from mplang_data.description import check_name
from mplang_data.stored.entry import check_storable, places


class _Use:
    """Interface :class:`mplang_analysis.UsesStorage` of an op with a name."""

    def __init__(self, action: Action) -> None:
        self._action = action

    def use(self, op: Operation) -> tuple[Action, str]:
        return self._action, str(op.attrs["name"])


def _infer_store(op: Operation, world: Mask) -> Sequence[AnyType]:
    check_name(op.attrs["name"])
    kinds = [value.type for value in op.inputs]
    check_storable([kind for kind in kinds if isinstance(kind, BaseType)])
    if len(list(places(json.loads(op.attrs["nest"])))) != len(kinds):
        raise ValueError(f"the nest {op.attrs['nest'][:100]} is not of {len(kinds)} values")
    return []


STORE = OpDef(
    "data.store",
    _infer_store,
    attrs={
        "name": Attr(str, doc="the name at the parties that run it"),
        "nest": Attr(str, doc="how the operands are nested, as JSON"),
    },
    doc="Leaves its operands in the storage of the parties that run it, at all of them or at none.",
    effects=Effects.ANY,
    interfaces=[_Use("store")],
    reads=(),  # not total: a sink takes so many bytes, and a table has as many as its data say
)


@feop(name="data.store", dialects=("data",), inputs=({"kind": "Any"},), outputs=({"kind": "None"},))
def store(*values: Any, name: str, nest: str) -> FeProgram:
    """Leave values in the storage of the parties that run it; :func:`mplang_data.stored.store`.

    Args:
        *values: the values.
        name: the name.
        nest: how they are nested, as JSON.

    Example:
        >>> from mplang_core import TensorType
        >>> from mplang_core.ext import Operand
        >>> made = store(Operand(TensorType("f64", (3,))), name="model", nest="0")
        >>> made.pfunc.fn_type
        'data.store'
    """
    types = tuple(value.base_type for value in values)
    pfunc = PFunction("data.store", types, (), {"name": name, "nest": nest})
    return FeProgram(pfunc, flatten(values)[1], flatten(())[1], values)


@simple_op(
    "data.load",
    effects=Effects.ANY,
    interfaces=[_Use("load")],
    reads=(),
    total=True,
    inputs=(),
    outputs=({"kind": "Any"},),
)
def load(*, name: str, types: tuple[BaseType, ...]) -> tuple[BaseType, ...]:
    """Return what is stored under a name; :func:`mplang_data.stored.load` is its frontend.

    Args:
        name: the name, at each of the parties that run it.
        types: the types of the values.

    Returns:
        The values, of one run at all parties.

    Raises:
        TraceError: the name is none, or the types are not those of values that are stored.
        AdmissionError: a party holds none, or they do not hold those of one run.

    Example:
        >>> from mplang_core import TensorType
        >>> len(load(name="model", types=(TensorType("f64", (3,)),)).pfunc.outs_info)
        1
    """
    check_name(name)
    if not all(isinstance(kind, BaseType) for kind in types):
        raise TypeError(f"types are of values of a party, got {types}")
    check_storable(types)
    return tuple(types)


@simple_op(
    "data.remove",
    effects=Effects.ANY,
    interfaces=[_Use("remove")],
    reads=(),
    total=True,
    inputs=(),
    outputs=({"kind": "None"},),
)
def remove(*, name: str) -> tuple[BaseType, ...]:
    """Remove what is stored under a name; :func:`mplang_data.stored.remove` is its frontend.

    Args:
        name: the name, at each of the parties that run it.

    Returns:
        Nothing.

    Raises:
        TraceError: the name is none.

    Example:
        >>> remove(name="model").pfunc.outs_info
        ()
    """
    check_name(name)
    return ()
