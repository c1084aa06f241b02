"""One unit of the sweep: a function on a type and a shape, on the three inputs.

The outcome on an input is a letter of :data:`OUTCOMES`.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import sweep_inputs
from mplang_spu.config import FRACTION_BITS
from mplang_spu.reference_check.tolerance import compare

import mplang_core as mp
from mplang_core.errors import MPLangError, PrecisionWarning, TraceError

OUTCOMES = {
    "=": "right",
    "f": "right, but warned of",
    "c": "off, and said while compiling",
    "s": "off, and said when it runs, by the simulator, or just before, on workers",
    "!": "off without a word",
    "b": "as in JAX if numbers below the smallest step are 0; without a word",
    "u": "NaN or infinite in JAX, and said when it runs, or just before",
    "U": "NaN or infinite in JAX, without a word",
    "r": "refused while tracing, with line and reason",
    "R": "refused while tracing, without a line or a known reason",
    "e": "refused when the data enters",
    "x": "failed at a party",
    "k": "the process ended",
    "t": "not done in time",
    "-": "JAX does not take it",
    ".": "not measured",
}

REASONS = {
    "decompositions": r"Cholesky|triangular systems|linear algebra of LAPACK|lapack_",
    "complex numbers": r"complex|c64|c128",
    "Fourier transforms": r"Fourier",
    "bits of floats": r"bitcast_convert of floats",
    "keys of kind rbg": r"random bits \(of a JAX key",
    "float16 of wider floats": r"convert of f\d\d to f16",
    "leading zeros": r"count_leading_zeros|leading zeros",
    "precision": r"reduce_precision",
    "cube roots": r"cube root",
    "a loop's condition is secret": r"the condition of a loop depends on secrets",
    "forms at which libspu fails": r"in the region of a|groups of a batch|a scalar has no slices|"
    r"indices stand in the last|combines two elements|crops nothing",
    "a constant does not fit": r"the constant|constant .* (NaN|infinit|does not fit)",
    "ops that no list admits": r"not among the (custom calls|ops) allowed there",
    "types that SPU lacks": r"has no (element )?type|element type|bf16|f8|i4|i2\b|ui2|ui4",
    "needs a result that is public": r"Concretization|traced array|TracerBool|NonConcrete",
}
"""The closed list of reasons why a function is refused, by a pattern of the message."""

LINE = re.compile(r"^\S+\.(py|ipynb):\d+: ")
STEP = 2.0 ** -FRACTION_BITS["FM128"]


@dataclass(slots=True)
class Result:
    """What came of a unit.

    Attributes:
        letters: an outcome per input; one for empty shapes.
        reason: why it was refused.
        details: what was said, and the worst element, per letter.
    """

    letters: str
    reason: str = ""
    details: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Unit:
    """A function with operands of a type and shape.

    Attributes:
        call: gives a list of arrays.
        inputs: the operands per input.
        exact: gives JAX's results; it may not end on inputs of what is refused.
        key: equal for units that lower to the same code and have the same operands.
    """

    call: Callable[..., Any]
    inputs: list[list[np.ndarray]]
    exact: Callable[[list[np.ndarray]], list[np.ndarray]]
    key: str


def prepare(call: Callable[..., Any], count: int, dtype: str, shape: str) -> Unit | None:
    """Return a unit with what JAX gives; ``None`` if JAX does not take it."""
    sizes = (sweep_inputs.SHAPES | sweep_inputs.SQUARE)[shape]
    kinds = sweep_inputs.INPUTS if sizes != (0,) else ("ordinary",)

    def of(kind: str, domain: int = 0) -> list[np.ndarray]:
        return sweep_inputs.operands(dtype, sizes, kind, count, domain)

    wide = dtype.endswith("64")
    function = lambda *xs: call(*xs)  # noqa: E731  # its name is in the code
    try:
        with jax.enable_x64(wide):
            lowered = jax.jit(function, keep_unused=True).lower(*of("ordinary"))
            text = lowered.as_text()
            run = lowered.compile()
    except Exception:
        return None

    def exact(args: list[np.ndarray]) -> list[np.ndarray]:
        with jax.enable_x64(wide):
            return [np.asarray(x) for x in run(*args)]

    inputs = [of(kind) for kind in kinds]
    if dtype != "bool" and not _finite(exact(inputs[0])):
        better = [of("ordinary", domain) for domain in (1, 2)]
        inputs[0] = next((args for args in better if _finite(exact(args))), inputs[0])
    key = hashlib.sha256(f"{text}{dtype}{shape}".encode()).hexdigest()[:24]
    return Unit(call, inputs, exact, key)


def _finite(outs: list[np.ndarray]) -> bool:
    return all(np.isfinite(x).all() for x in outs if x.dtype.kind in "fc")


def run(host: Any, unit: Unit) -> Result:
    """Run a unit on a host; return its outcomes."""

    def program(*xs: Any) -> Any:
        return mp.reveal(mp.device("SP0")(unit.call)(*xs), to="P0")

    with warnings.catch_warnings(record=True) as told, mp.with_ctx(host):
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrecisionWarning)
        try:
            values = [[mp.put(f"P{i % 2}", x) for i, x in enumerate(args)] for args in unit.inputs]
            compiled = mp.compile(program, cluster_spec=host.cluster_spec)
            compiled.trace(host, *values[0])
        except Exception as error:
            return _refused(error, len(unit.inputs))
    said = [str(each.message) for each in told]
    result = Result("")
    for args, given in zip(unit.inputs, values, strict=True):
        letter, detail = _on_input(host, compiled, given, args, unit, bool(said))
        result.letters += letter
        if letter in "cf" and said:
            detail = f"{said[0][:150]} | {detail}"
        if detail:
            result.details.setdefault(letter, detail[:400])
    return result


def _refused(error: Exception, inputs: int) -> Result:
    text = f"{error}"
    reason = next((name for name, p in REASONS.items() if re.search(p, text)), "")
    known = isinstance(error, TraceError) and LINE.match(text) and reason
    letter = "r" if known else "R"
    detail = {} if known else {"R": f"{type(error).__name__}: {text[:400]}"}
    return Result(letter * inputs, reason, detail)


def _on_input(
    host: Any, compiled: Any, given: list[Any], args: list[np.ndarray], unit: Unit, said: bool
) -> tuple[str, str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrecisionWarning)
        try:
            found = mp.fetch(host, mp.evaluate(host, compiled, *given))
        except MPLangError as error:
            entering = "SPU" in str(error) and "hold" in str(error)
            return ("e" if entering else "x"), f"{type(error).__name__}: {error}"
    warned = str(told[0].message) if told else ""
    off = worst(found, unit.exact(args), args, unit.call)
    if off is None:
        return ("f", warned) if said or told else ("=", "")
    undefined = off.startswith("undefined")
    if said:
        return "c", off
    if told:
        return ("u" if undefined else "s"), f"{off} | {warned}"
    if worst(found, _without_small(unit.call, args), args, unit.call) is None:
        return "b", off
    return ("U" if undefined else "!"), off


def _without_small(call: Callable[..., Any], args: list[np.ndarray]) -> list[np.ndarray]:
    """Return JAX's results if numbers below SPU's smallest step are 0."""
    large = [np.where(np.abs(x) < STEP, 0, x) if x.dtype.kind == "f" else x for x in args]
    with jax.enable_x64(args[0].dtype.itemsize == 8):
        typed = [x.astype(old.dtype) for x, old in zip(large, args, strict=True)]
        made = jax.jit(lambda *xs: call(*xs))(*typed)
        return [np.asarray(x) for x in made]


def worst(
    found: list[Any], exact: list[np.ndarray], args: list[np.ndarray], call: Callable[..., Any]
) -> str | None:
    """Return what is wrong with results; ``None`` if they are JAX's within the tolerance.

    A float may be near JAX's in the type of the operands, or that in float64.
    """
    text = None
    wide: list[np.ndarray] | None = None
    for i, (mine, right) in enumerate(zip(found, exact, strict=True)):
        mine = np.asarray(mine)
        if mine.dtype != right.dtype or mine.shape != right.shape:
            return f"result {i} is {mine.dtype}{mine.shape}, not {right.dtype}{right.shape}"
        difference = _compare(mine, right)
        if not difference.is_wrong:
            continue
        if right.dtype.kind == "f":
            wide = wide if wide is not None else _in_float64(call, args)
            comparable = wide and wide[i].shape == right.shape and wide[i].dtype.kind == "f"
            if comparable and (
                not _compare(mine, wide[i]).is_wrong or _cancels(mine, right, wide[i], args)
            ):
                continue
            defined = np.isfinite(right)
            if not defined.all() and not _compare(mine[defined], right[defined]).is_wrong:
                text = text or f"undefined: result {i} at {difference.index}"
                continue
        at = difference.index
        operands = ", ".join(str(x[at] if x.shape == mine.shape else x.tolist()) for x in args)
        return (
            f"result {i} at {at}: {difference.found} instead of {difference.exact}, of {operands}"
        )[:300]
    return text


def _cancels(mine: np.ndarray, right: np.ndarray, wide: np.ndarray, args: list[np.ndarray]) -> bool:
    """Return whether JAX's own type keeps no digit, so that the size of the terms counts."""
    size = max([1.0, *(float(np.abs(x).max()) for x in args if x.dtype.kind == "f" and x.size)])
    return _compare(right, wide).is_wrong and not compare(mine, wide, STEP, scale=size).is_wrong


def _compare(found: np.ndarray, exact: np.ndarray) -> Any:
    if exact.dtype.kind == "f":
        return compare(found.astype(np.float64), exact.astype(np.float64), STEP)
    return compare(found, exact, STEP)


def _in_float64(call: Callable[..., Any], args: list[np.ndarray]) -> list[np.ndarray]:
    try:
        with jax.enable_x64(True):
            floats = any(x.dtype.kind == "f" for x in args)  # if none is, JAX makes float32 of all
            widened = [x.astype(float) if x.dtype.kind == "f" or not floats else x for x in args]
            return [np.asarray(x) for x in jax.jit(lambda *xs: call(*xs))(*widened)]
    except Exception:
        return []
