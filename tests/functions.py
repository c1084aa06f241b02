"""Random small functions of arrays, for properties of compiled code.

``functions()`` draws a function of ``jax.numpy`` line by line. Each line is run with NumPy in
float64 as it is drawn, and left out if it fails there: a wrong shape, a root of a negative number,
an overflow. So every function is defined at its arguments, and its float64 results are known.

Importing this needs no JAX; ``Function.fn`` does.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import assume, strategies as st

__all__ = ["Argument", "Function", "functions"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, repr=False)
class Argument:
    """One argument: an array, and the range that it was drawn from."""

    name: str
    value: Array
    range: tuple[float, float]

    def __repr__(self) -> str:
        low, high = self.range
        shown = np.array2string(self.value, threshold=40, separator=", ", prefix=" " * 4)
        kind = f"{self.value.dtype}{list(self.value.shape)}"
        return f"{self.name}: {kind} in [{low:g}, {high:g}]\n    {shown}"


@dataclass(frozen=True, repr=False)
class Function:
    """A function, arguments for it, and what it gives for them.

    Attributes:
        source: the text of ``def fn(x0, …)``, of ``jnp``, ``nn`` and ``lax``.
        arguments: one per parameter; float32, int32 or int64.
        x64: whether JAX has to run it with 64-bit types.
        reference: its results in float64 and int64.
    """

    source: str
    arguments: tuple[Argument, ...]
    x64: bool
    reference: tuple[Array, ...] = field(compare=False)

    @property
    def args(self) -> tuple[Array, ...]:
        """The arrays."""
        return tuple(argument.value for argument in self.arguments)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The range of each parameter, by its name."""
        return {argument.name: argument.range for argument in self.arguments}

    @functools.cached_property
    def fn(self) -> Callable[..., Any]:
        """The function itself; it returns an array, or a tuple of arrays."""
        import jax
        import jax.numpy as jnp

        scope: dict[str, Any] = {"jnp": jnp, "nn": jax.nn, "lax": jax.lax}
        exec(compile(self.source, "fn.py", "exec"), scope)
        made: Callable[..., Any] = scope["fn"]
        return made

    def __repr__(self) -> str:
        mode = "64-bit types" if self.x64 else "32-bit types"
        return "\n".join([f"Function with {mode}:", self.source, *map(repr, self.arguments)])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Have Hypothesis print it like that as well."""
        for line in repr(self).splitlines():
            printer.text(line)
            printer.break_()


# -- templates: {a} and {b} are numbers, {f} and {g} floats, {i} and {j} integers, {p} and {q}
# bools, {c} is a constant, {n} a small integer, {x} an axis

SMOOTH = """
{a} + {b}; {a} - {b}; {a} * {b}; {a} / {b}; {a} + {c}; {c} - {a}; {a} * {c}; {a} / {c}; {c} / {a}
jnp.maximum({a}, {b}); jnp.minimum({a}, {b}); jnp.maximum({a}, {c}); jnp.clip({a}, -{c}, {c})
-{a}; jnp.abs({a}); {a} * {a}; {a} ** 3; jnp.sqrt({a}); jnp.sqrt(jnp.abs({a}))
jnp.log({a}); jnp.log1p(jnp.abs({a})); jnp.exp({a}); jnp.exp(-jnp.abs({a})); jnp.tanh({a})
nn.sigmoid({f}); 1 / (1 + jnp.exp(-{a})); nn.relu({a}); nn.softmax({f})
{a} - {a}.max(); {a} - {a}.mean(); {a}.sum({x}); {a}.mean({x}); {a}.var({x}); {a}.std({x})
{a}.max({x}); {a}.min({x}); jnp.median({a}); jnp.prod({a})
jnp.sort({a}); jnp.cumsum({a}); jnp.diff({a}); jnp.roll({a}, 1); jnp.concatenate([{a}, {b}])
{a} @ {b}; {a}.T @ {b}; jnp.dot({a}, {b})
{a}.reshape(-1); {a}.T; {a}[::-1]; {a}[1:]; {a}[..., 0]; {a}[:, None]
lax.fori_loop(0, {n}, lambda i, s: (s * {c} + {f}).astype(s.dtype), {g})
lax.fori_loop(0, {n}, lambda i, s: (s + i * {f}).astype(s.dtype), {g})
{p}.sum(); {p}.astype(jnp.float32); {i}.astype(jnp.float32)
"""
STEPS = """
{a} > {b}; {a} <= {c}; {i} == {j}; {a} < {a}.mean(); {p} & {q}; {p} | {q}; ~{p}; {p}.any()
jnp.where({p}, {a}, {b}); jnp.where({a} > {c}, {a}, {b}); jnp.where({p}, {a}, {c})
jnp.argmax({a}); jnp.argmin({a}); jnp.argsort({a}.reshape(-1)); {a}[{i}]
jnp.sign({a}); {f}.astype(int); jnp.floor({a}); jnp.round({a}); {a} // {c}; {a} % {c}
{i} // {j}; {i} % {j}
"""
KINDS = {"a": "fi", "b": "fi", "f": "f", "g": "f", "i": "i", "j": "i", "p": "b", "q": "b"}
MAX_SIZE = 400
MAX_RANK = 3
LARGEST = 1e30  # far from the largest number of float32, 3e38


def _templates(table: str) -> list[str]:
    return [cell.strip() for line in table.strip().splitlines() for cell in line.split(";")]


# -- NumPy in the place of JAX


class _Numpy:
    """``jax.numpy`` in float64."""

    float32 = np.float64

    def argsort(self, x: Array) -> Array:
        """Leave what is equal in its order, as JAX does."""
        return np.argsort(x, stable=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _sigmoid(x: Array) -> Any:
    return 0.5 * (1 + np.tanh(x / 2))


def _softmax(x: Array) -> Any:
    if np.ndim(x) == 0:
        raise ValueError("JAX wants an axis")
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _fori_loop(low: int, high: int, body: Callable[[int, Array], Array], state: Array) -> Array:
    for i in range(low, high):
        state, before = body(i, state), state
        if np.shape(state) != np.shape(before):
            raise ValueError("a loop keeps the shape of its state")
    return state


_SCOPE = {
    "jnp": _Numpy(),
    "nn": SimpleNamespace(sigmoid=_sigmoid, relu=lambda x: np.maximum(x, 0), softmax=_softmax),
    "lax": SimpleNamespace(fori_loop=_fori_loop),
}


def _run(text: str, env: dict[str, Array]) -> Array | None:
    """Return what an expression gives in float64, or ``None`` where that is not defined."""
    try:
        with np.errstate(all="raise", under="ignore"):
            found = np.asarray(eval(text, {**_SCOPE, **env}))
    except (ArithmeticError, ValueError, TypeError, IndexError):
        return None
    small = 0 < found.size <= MAX_SIZE and found.ndim <= MAX_RANK
    return found if small and np.isfinite(found).all() else None


def _fits(text: str, env: dict[str, Array], found: Array, x64: bool) -> bool:
    """Tell whether float32 holds the result, and whether integers did not wrap on the way."""
    if found.dtype.kind != "i":
        return bool(np.abs(found).max() <= LARGEST) if found.dtype.kind == "f" else True
    floats = {name: value.astype(float) for name, value in env.items()}
    wide = _run(text, floats)  # where it is not an op of floats, nothing is added up in it either
    limit = 2.0**62 if x64 else 2.0**31 - 1
    return all(np.abs(x).max() <= limit for x in (found, wide) if x is not None)


# -- drawing


@st.composite
def _arguments(draw: Any, x64: bool) -> list[Argument]:
    n, m = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    shape = st.sampled_from([(n,), (n, m), (), (m,)])
    return [draw(_argument(f"x{i}", shape, x64)) for i in range(draw(st.integers(1, 3)))]


@st.composite
def _argument(draw: Any, name: str, shapes: Any, x64: bool) -> Argument:
    """Draw a magnitude, a range of it, and numbers within by a seed: a list would draw slowly."""
    scale = 10.0 ** draw(st.integers(-3, 7))
    low, high = draw(st.sampled_from([(0.0, scale), (-scale, scale), (scale, 2 * scale)]))
    rng, shape = np.random.default_rng(draw(st.integers(0, 999))), draw(shapes)
    if draw(st.sampled_from("ffi")) == "i":
        low, high = float(math.floor(low)), float(math.ceil(high))
        whole = rng.integers(int(low), int(high), shape, np.int64 if x64 else np.int32, True)
        return Argument(name, np.asarray(whole), (low, high))
    value = np.asarray(rng.uniform(low, high, shape), np.float32)
    return Argument(name, value.clip(np.float32(low), np.float32(high)), (low, high))


@st.composite
def _line(draw: Any, templates: Sequence[str], env: dict[str, Array]) -> str | None:
    """Draw an expression of values that are there, late ones first."""
    holes: dict[str, str] = {
        "c": repr(float(f"{draw(st.integers(1, 99))}e{draw(st.integers(-5, 5))}")),
        "n": str(draw(st.integers(1, 6))),
    }
    axis = draw(st.sampled_from(["", "axis=0", "axis=-1"]))
    template = draw(st.sampled_from(templates))
    for hole, kinds in KINDS.items():
        if "{" + hole + "}" in template:
            fitting = [name for name, value in env.items() if value.dtype.kind in kinds]
            if not fitting:
                return None
            if hole in "bgjq" and len(fitting) > 1:  # rather two than one twice
                fitting = [name for name in fitting if name not in holes.values()] or fitting
            holes[hole] = fitting[-1 - draw(st.integers(0, len(fitting) - 1))]
    axes = (
        axis if "a" in holes and np.ndim(env[holes["a"]]) else ""
    )  # NumPy lets scalars have an axis, JAX not
    return template.format(x=axes, **holes)


@st.composite
def functions(draw: Any, *, steps: bool = True, lines: int = 12) -> Function:
    """Draw functions with arguments and results.

    Args:
        draw: given by Hypothesis.
        steps: whether results may jump where an argument changes a little: comparisons,
            ``where``, ``floor``, ``//``, ``argmax``. There rounding changes results.
        lines: the maximum number of lines.

    Example:
        >>> from hypothesis import given
        >>> @given(functions())
        ... def test(function):
        ...     assert len(function.fn(*function.args)) == len(function.reference)
    """
    x64 = draw(st.sampled_from([False, False, True]))
    arguments = draw(_arguments(x64))
    templates = _templates(SMOOTH + STEPS if steps else SMOOTH)
    env = {x.name: x.value.astype(float if x.value.dtype.kind == "f" else int) for x in arguments}
    body: dict[str, str] = {}
    for _ in range(draw(st.integers(1, lines))):
        text = draw(_line(templates, env))
        found = _run(text, env) if text else None
        if text and found is not None and _fits(text, env, found, x64):
            name = f"v{len(body)}"
            body[name], env[name] = text, found
    assume(body)
    results = list(body)[-draw(st.integers(1, 2)) :]
    kept = _needed(body, results)
    source = "\n".join(
        [
            f"def fn({', '.join(argument.name for argument in arguments)}):",
            *(f"    {name} = {text}" for name, text in body.items() if name in kept),
            f"    return {', '.join(results)}",
        ]
    )
    return Function(source, tuple(arguments), x64, tuple(env[name] for name in results))


def _needed(body: dict[str, str], results: Sequence[str]) -> set[str]:
    """Return the lines that the results need; the names of values are not parts of other names."""
    needed = set(results)
    for name, text in reversed(body.items()):
        if name in needed:
            words = "".join(c if c.isalnum() else " " for c in text).split()
            needed.update(word for word in words if word in body)
    return needed
