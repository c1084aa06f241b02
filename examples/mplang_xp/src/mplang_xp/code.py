"""Code of the op ``xp.run``: a list of calls as JSON, and what runs it.

A step is ``[function, [arguments], {keywords}]``. An argument is a number, a string, ``null``, or
one of these: ``{"value": i}`` for the value with that number (the operands first, then the result
of each step), ``{"tuple": [...]}``, ``{"dtype": name}``, ``{"slice": [...]}``, ``{"ellipsis": 0}``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mplang_core.ext import pack, unpack

from mplang_xp.functions import DTYPES, FUNCTIONS

MAX_STEPS = 100_000


class Ref:
    """Reference to a value of the program by its number."""

    def __init__(self, number: int) -> None:
        self.number = number


def write(steps: Sequence[tuple[str, Any, Any]], outputs: Sequence[int]) -> bytes:
    """Return the code of a program.

    Args:
        steps: per call the function, its arguments and its keywords; values are :class:`Ref`.
        outputs: the numbers of the values that it returns.
    """
    calls = [[name, _written(list(args)), _written(kwargs)] for name, args, kwargs in steps]
    return pack(json.dumps({"steps": calls, "outputs": list(outputs)}, separators=(",", ":")))


def _written(part: Any) -> Any:
    if isinstance(part, Ref):
        return {"value": part.number}
    if isinstance(part, tuple):
        return {"tuple": [_written(item) for item in part]}
    if isinstance(part, list):
        return [_written(item) for item in part]
    if isinstance(part, dict):
        return {name: _written(item) for name, item in part.items()}
    if isinstance(part, slice):
        return {"slice": [part.start, part.stop, part.step]}
    if part is Ellipsis:
        return {"ellipsis": 0}
    if isinstance(part, np.dtype):
        return {"dtype": part.name}
    if isinstance(part, np.generic):
        return part.item()
    if part is None or isinstance(part, bool | int | float | str):
        return part
    raise TypeError(f"a {type(part).__name__} cannot stand in a program")


def read(code: bytes, operands: int) -> tuple[list[tuple[str, Any, Any]], list[int]]:
    """Return the steps and the outputs of code, which may come from anybody.

    Args:
        code: the code.
        operands: how many operands the program has.

    Returns:
        The steps, with :class:`Ref` for values, and the numbers of the values that it returns.

    Raises:
        ValueError: it is not such a code, or calls what is not of the standard.
    """
    try:
        found = json.loads(unpack(code))
        steps, outputs = found["steps"], found["outputs"]
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"the code is not a list of steps: {error}") from error
    if not isinstance(steps, list) or len(steps) > MAX_STEPS or len(found) != 2:
        raise ValueError(f"the code is a list of at most {MAX_STEPS} steps, and outputs")
    read_steps = [_read_step(step, operands + i) for i, step in enumerate(steps)]
    known = operands + len(steps)
    if not isinstance(outputs, list) or not all(_is_number_below(i, known) for i in outputs):
        raise ValueError(f"the outputs are numbers below {known}")
    return read_steps, outputs


def _read_step(step: Any, known: int) -> tuple[str, Any, Any]:
    if not isinstance(step, list) or len(step) != 3:
        raise ValueError("a step is [function, arguments, keywords]")
    name, args, kwargs = step
    if not isinstance(name, str) or name not in FUNCTIONS:
        raise ValueError(f"{str(name)[:40]!r} is not a function that programs may call")
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise ValueError("arguments are a list, keywords a map")
    keywords = {key: _read(item, known) for key, item in kwargs.items() if key.isidentifier()}
    if len(keywords) != len(kwargs) or "out" in keywords:
        raise ValueError("a keyword is a name, and not 'out'")
    return name, [_read(item, known) for item in args], keywords


def _is_number_below(number: Any, limit: int) -> bool:
    return type(number) is int and 0 <= number < limit


def _read(part: Any, known: int) -> Any:
    if isinstance(part, list):
        return [_read(item, known) for item in part]
    if not isinstance(part, dict):
        return part
    match list(part.items()):
        case [("value", number)] if _is_number_below(number, known):
            return Ref(number)
        case [("tuple", [*items])]:
            return tuple(_read(item, known) for item in items)
        case [("slice", [start, stop, step])]:
            return slice(start, stop, step)
        case [("dtype", str(name))] if name in DTYPES:
            return np.dtype(name)
        case [("ellipsis", 0)]:
            return Ellipsis
    raise ValueError(f"no argument is {str(part)[:60]}")


def run(steps: Sequence[tuple[str, Any, Any]], operands: Sequence[Any]) -> list[Any]:
    """Return all values of a program: the operands, then the result of each step."""
    values = list(operands)
    for name, args, kwargs in steps:
        called = [_filled(arg, values) for arg in args]
        named = {key: _filled(item, values) for key, item in kwargs.items()}
        values.append(np.asarray(function(name)(*called, **named)))
    return values


def _filled(part: Any, values: Sequence[Any]) -> Any:
    if isinstance(part, Ref):
        return values[part.number]
    if isinstance(part, tuple | list):
        return type(part)(_filled(item, values) for item in part)
    return part


def function(name: str) -> Callable[..., Any]:
    """Return NumPy's function of a name of the standard; its namespace keeps the standard."""
    if name == "getitem":
        return lambda x, index: x[index]
    found: Callable[..., Any] = getattr(np, name)
    return found
