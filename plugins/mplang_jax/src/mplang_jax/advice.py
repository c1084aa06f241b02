"""Advice for code that JAX cannot trace. Imports no JAX."""

from __future__ import annotations

import re
import sys

from mplang_core.ext import similar

FETCH = "return it from the function and the program, and mp.fetch(host, result)"

_RULES = (
    # kind of the error, what its message has, what the user's line has: what to write
    ("TracerBool", "", r"\bwhile\b", "instead of `while` use jax.lax.fori_loop with a fixed number "
     "of turns, or jax.lax.while_loop, which an SPU refuses on secrets"),
    ("TracerBool|ValueError", "conversion|truth value", r"\b(and|or|not)\b", "instead of `and`, "
     "`or`, `not` use &, |, ~ between comparisons in parentheses, as (x > 0) & (x < 9)"),
    ("ValueError", "truth value", "", "instead of `if` use jnp.where, which chooses for each "
     "element; all of them are one bool by .all() or .any()"),
    ("TracerBool", "", r"\b(max|min|sorted)\(", "instead of Python's max, min and sorted use "
     "jnp.maximum(a, b), jnp.minimum(a, b) and jnp.sort(x)"),
    ("TracerBool", "", "", "instead of `if` use jnp.where or jax.lax.cond"),
    ("NonConcreteBoolean", "", "", "a shape does not depend on data; keep all elements, and have "
     "others where the condition is false, as jnp.where(x > 0, x, 0)"),
    ("Concretization", "size argument", "", "a shape does not depend on data; say how many results "
     "there are at most, by size=3 and fill_value=0 of that function; a choice of elements is "
     "jnp.where(x > 0, x, 0)"),
    ("Concretization", "jnp.repeat", "", "say total_repeat_length=, a number in Python"),
    ("Concretization|Tracer", "", r"\bmath\.\w+", "use jnp instead of math inside of the function, "
     "as jnp.exp(x)"),
    ("Concretization", "", r"\b(float|int|complex)\(|\.(item|tolist)\(", "a number in Python is "
     "not known while the function is traced; compute with the array itself, as x.astype(int); to "
     f"see it, {FETCH}"),
    ("TypeError", "format string", "", "its data is not known while the function is traced; to see "
     f"it, {FETCH}"),
    ("TracerInteger", "", r"\brange\(", "instead of `for` over a range use "
     "jax.lax.fori_loop(0, n, lambda i, x: x + i, x)"),
    ("TracerInteger", "", "", "a list of Python has no element at a place that is computed; make "
     "an array of it, as jnp.asarray([1, 2, 3])[i]"),
    ("Concretization|IndexError|TypeError", "arose in|static start|Shapes must be|argument of jnp",
     "", "a shape cannot depend on data; use a Python number that the function captures, and mask "
     "the surplus by jnp.where(jnp.arange(x.size) < n, x, 0)"),
    ("Concretization|TracerArray", "", "", "use jnp instead of np inside of the function"),
    ("TypeError", "PRNG key", "", "a random function takes a key first, as "
     "jax.random.normal(jax.random.key(0), (3,))"),
    ("TypeError", "grad requires", "", "make floats of integers first, as x.astype(jnp.float32)"),
    ("TypeError", "scalar-output", "", "reduce the result to one number, as by .sum(), or use "
     "jax.jacobian"),
    ("TypeError", "abstract array|dtype <U|dtype str|string dtypes", "", "JAX takes arrays of "
     "numbers alone; strings and dates are columns of tables, or are numbered before, as by "
     "np.unique(names, return_inverse=True)"),
    ("TypeError", "scalar arguments, got <class '(list|tuple)'>", "", "make one array of a list "
     "first, as jnp.stack([x, y])"),
    ("ValueError", "Zero-dimensional arrays cannot be concatenated", "", "give a list of arrays, "
     "as jnp.concatenate([x, y])"),
    ("OverflowError", "", "", "a Python number takes the type of what it meets, and this one is "
     "too large for that; write np.int64(...) around it, or float(...) if it is 2**63 or more"),
)  # fmt: skip

_OF_PANDAS = {
    "apply": "jax.vmap(fn)(x)",
    "fillna": "jnp.nan_to_num(x)",
    "isna": "jnp.isnan(x)",
    "isnull": "jnp.isnan(x)",
    "map": "jax.vmap(fn)(x)",
    "numpy": "x, which is an array",
    "shift": "jnp.roll(x, 1)",
    "sort_values": "jnp.sort(x)",
    "to_numpy": "x, which is an array",
    "values": "x, which is an array",
}


def advice_for(kind: str, message: str, line: str) -> str:
    """Return what to write instead; empty if nothing is known.

    Args:
        kind: the name of the error's class.
        message: the whole message of JAX.
        line: the user's line.

    Example:
        >>> advice_for("TypeError", "unexpected PRNG key type <class 'tuple'>", "")[:36]
        'a random function takes a key first,'
    """
    if kind == "AttributeError" and (match := re.search(r"Tracer has no attribute (\w+)", message)):
        return _method(match[1])
    for kinds, pattern, written, advice in _RULES:
        if re.match(kinds, kind) and re.search(pattern, message) and re.search(written, line):
            return advice
    return ""


def _method(name: str) -> str:
    """Return what to write for a method that arrays do not have."""
    if name in _OF_PANDAS:
        return f"write {_OF_PANDAS[name]}"
    jnp = sys.modules["jax.numpy"]
    if hasattr(jnp, name):
        return f"write jnp.{name}(x), with its other arguments"
    return similar(name, dir(sys.modules["jax"].Array)) or "arrays have the methods of NumPy's"
