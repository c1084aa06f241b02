"""Structural keys of jaxprs: their equations, constants and source frames. Imports JAX."""

from __future__ import annotations

import enum
from collections.abc import Hashable
from types import FunctionType
from typing import Any

import numpy as np
from jax.extend.core import Literal

_CUSTOM = ("custom_jvp_call", "custom_vjp_call")
"""Calls whose other parameters are rules of derivatives, none of which is left to be taken."""

_PLAIN = (str, int, bool, bytes, type(None), enum.Enum, np.dtype, type)


class _UnknownError(Exception):
    """A part that is not compared."""


def key_of(jaxpr: Any, tracer: str) -> Hashable:
    """Return a key of a jaxpr: equal to that of another one if both lower to the same code.

    Unlike its text, it has the constants, and no addresses of rules; it also has the frames of the
    stack of each equation, so both have the same source lines.

    Args:
        jaxpr: the jaxpr, without values of its constants.
        tracer: the file that calls the user's function; outer frames are ignored.

    Returns:
        The key; ``None`` if a parameter of a primitive is not compared.
    """
    try:
        key = _Numbers(tracer).jaxpr(jaxpr)
        hash(key)
    except (_UnknownError, TypeError):
        return None
    return key


class _Numbers:
    """Variables of one jaxpr and of those in it, numbered by their order."""

    def __init__(self, tracer: str) -> None:
        self._tracer = tracer
        self._numbers: dict[Any, int] = {}

    def jaxpr(self, jaxpr: Any) -> Hashable:
        inputs = tuple(map(self._bound, (*jaxpr.constvars, *jaxpr.invars)))
        equations = tuple(map(self._equation, jaxpr.eqns))
        return len(jaxpr.constvars), inputs, equations, tuple(map(self._read, jaxpr.outvars))

    def _bound(self, var: Any) -> Hashable:
        self._numbers[var] = len(self._numbers)
        return self._numbers[var], var.aval

    def _read(self, var: Any) -> Hashable:
        if isinstance(var, Literal):
            return var.aval, self._param(var.val)
        return self._numbers[var]

    def _equation(self, eqn: Any) -> Hashable:
        name, params = eqn.primitive.name, sorted(eqn.params.items())
        if name in _CUSTOM:
            params = [(key, value) for key, value in params if key == "call_jaxpr"]
        return (
            eqn.primitive,
            tuple(map(self._read, eqn.invars)),
            tuple((key, self._param(value)) for key, value in params),
            tuple(map(self._bound, eqn.outvars)),
            eqn.ctx,
            str(eqn.source_info.name_stack),
            self._frames(eqn.source_info.traceback),
        )

    def _frames(self, trace: Any) -> Hashable:
        if trace is None:
            return None
        found = []
        for code, at in zip(*trace.raw_frames(), strict=True):
            if code.co_filename == self._tracer:
                break
            found.append((code.co_filename, code, at))
        return tuple(found)

    def _param(self, value: Any) -> Hashable:
        if hasattr(value, "eqns"):
            return self.jaxpr(value)
        if hasattr(value, "jaxpr") and hasattr(value, "consts"):
            return self.jaxpr(value.jaxpr), self._param(tuple(value.consts))
        kind = type(value)
        if issubclass(kind, tuple | list):
            return kind, tuple(map(self._param, value))
        if kind is dict:
            return tuple((key, self._param(item)) for key, item in value.items())
        if kind in (float, complex):
            return kind, repr(value)
        if hasattr(value, "__array__"):
            array = np.asarray(value)
            return kind, array.shape, array.dtype, array.tobytes()
        home = value.__module__ if kind is FunctionType else kind.__module__
        if isinstance(value, _PLAIN) or home.partition(".")[0] in ("jax", "jaxlib"):
            return kind, value  # its own equality, or identity
        raise _UnknownError
