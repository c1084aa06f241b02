"""Admission rules for custom calls of LAPACK: shapes and options of each routine.

jaxlib reads sizes from one operand, and trusts that every other buffer fits; a result declared
smaller is written past its end. So operands, results, options, layouts and aliases of a call must
match the routine's rule exactly.

A rule reads ``T[m,n] -> T[m,n] R[k]``: ``T`` is the type of the routine's letter (``s``: f32,
``d``: f64, ``c``: c64, ``z``: c128), ``R`` the corresponding real type, ``C`` the complex one,
``i`` an i32. Letters in brackets are sizes: operands bind them in order, ``k`` is min(m, n), ``e``
is n - 1. Batch dimensions come first, equal in all. Source of the shapes: LAPACK Users' Guide, and
``jax._src.lax.linalg``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxlib.mlir import ir
from mplang_stablehlo.ext import check_attributes, check_types, shape_of, tensor

MAX_ELEMENTS = (1 << 31) - 1  # of a matrix: LAPACK's integers have 32 bits
MAX_ORDER = 16_000  # min(rows, columns) of a matrix: workspaces grow with its square

_ELEMENTS = {
    "s": {"T": "f32", "R": "f32", "C": "complex<f32>", "i": "i32"},
    "d": {"T": "f64", "R": "f64", "C": "complex<f64>", "i": "i32"},
    "c": {"T": "complex<f32>", "R": "f32", "i": "i32"},
    "z": {"T": "complex<f64>", "R": "f64", "i": "i32"},
}

Sizes = dict[str, int]
Options = Mapping[str, int]


def _always(sizes: Sizes, options: Options) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Routine:
    """LAPACK routine.

    Attributes:
        rule: operands and results.
        letters: the element types that it exists for.
        aliases: per result that reuses the memory of an operand, that operand.
        options: allowed characters per option; an empty string means any i32.
        holds: further condition on sizes and options.
    """

    rule: str
    letters: str = "sdcz"
    aliases: Mapping[int, int] = field(default_factory=lambda: {0: 0})
    options: Mapping[str, str] = field(default_factory=dict)
    holds: Callable[[Sizes, Options], bool] = _always


def _trsm(sizes: Sizes, options: Options) -> bool:
    return sizes["a"] == sizes["m" if options["side"] == ord("L") else "n"]


def _orgqr(sizes: Sizes, options: Options) -> bool:
    return sizes["j"] <= sizes["n"] <= sizes["m"]


def _svd(sizes: Sizes, options: Options) -> bool:
    """Return whether U and V are complete, or have k vectors; either if none is requested."""
    full = {"u": sizes["m"], "v": sizes["n"]}
    thin = {"u": sizes["k"], "v": sizes["k"]}
    found = {"u": sizes["u"], "v": sizes["v"]}
    wanted = {ord("A"): [full], ord("S"): [thin]}.get(options["mode"], [full, thin])
    return found in wanted


def _gehrd(sizes: Sizes, options: Options) -> bool:
    return 1 <= options["low"] <= options["high"] <= sizes["n"]


_SVD = _Routine("T[m,n] -> T[m,n] R[k] T[m,u] T[v,n] i[]", options={"mode": "ASN"}, holds=_svd)
_EIGH = {"mode": "VN", "uplo": "LU"}
_EIG = {"compute_left": "VN", "compute_right": "VN"}
_SCHUR = {"mode": "VN", "sort": "N"}  # sorting would take a callback

_ROUTINES: Mapping[str, Sequence[_Routine]] = {
    "trsm": [
        _Routine(
            "T[a,a] T[m,n] -> T[m,n]",
            aliases={0: 1},
            options={"side": "LR", "uplo": "LU", "trans_x": "NTC", "diag": "NU"},
            holds=_trsm,
        )
    ],
    "getrf": [_Routine("T[m,n] -> T[m,n] i[k] i[]")],
    "geqrf": [_Routine("T[m,n] -> T[m,n] T[k]")],
    "geqp3": [_Routine("T[m,n] i[n] -> T[m,n] i[n] T[k]", aliases={0: 0, 1: 1})],
    "orgqr": [_Routine("T[m,n] T[j] -> T[m,n]", "sd", holds=_orgqr)],
    "ungqr": [_Routine("T[m,n] T[j] -> T[m,n]", "cz", holds=_orgqr)],
    "potrf": [_Routine("T[n,n] -> T[n,n] i[]", options={"uplo": "LU"})],
    "gesdd": [_SVD],
    "gesvd": [_SVD],
    "syevd": [_Routine("T[n,n] -> T[n,n] R[n] i[]", "sd", options=_EIGH)],
    "heevd": [_Routine("T[n,n] -> T[n,n] R[n] i[]", "cz", options=_EIGH)],
    "geev": [
        _Routine("T[n,n] -> T[n] T[n] C[n,n] C[n,n] i[]", "sd", {}, _EIG),
        _Routine("T[n,n] -> T[n] T[n,n] T[n,n] i[]", "cz", {}, _EIG),
    ],
    "gees": [
        _Routine("T[n,n] -> T[n,n] T[n,n] T[n] T[n] i[] i[]", "sd", options=_SCHUR),
        _Routine("T[n,n] -> T[n,n] T[n,n] T[n] i[] i[]", "cz", options=_SCHUR),
    ],
    "sytrd": [_Routine("T[n,n] -> T[n,n] R[n] R[e] T[e] i[]", "sd", options={"uplo": "LU"})],
    "hetrd": [_Routine("T[n,n] -> T[n,n] R[n] R[e] T[e] i[]", "cz", options={"uplo": "LU"})],
    "gehrd": [
        _Routine("T[n,n] -> T[n,n] T[e] i[]", options={"low": "", "high": ""}, holds=_gehrd)
    ],
    "gtsv": [
        _Routine("T[n] T[n] T[n] T[n,b] -> T[n] T[n] T[n] T[n,b] i[]",
                 aliases={0: 0, 1: 1, 2: 2, 3: 3})
    ],
}  # fmt: skip


def _check(routine: _Routine, letter: str, op: ir.Operation) -> None:
    """Check a call of a routine against its rule.

    Raises:
        ValueError: it differs from the routine's rule.
    """
    operands, results = map(str.split, routine.rule.split(" -> "))
    options = _options(op, routine.options)
    if len(op.operands) != len(operands) or len(op.results) != len(results):
        raise ValueError(f"its rule is {routine.rule}")
    first = shape_of(op.operands[0])
    batch = first[: len(first) - len(_dims(operands[0]))]
    sizes: Sizes = {}
    _bind(sizes, operands, [shape_of(value) for value in op.operands])
    sizes["k"] = min(sizes.get("m", 0), sizes.get("n", 0))
    sizes["e"] = sizes["n"] - 1
    _bind(sizes, results, [shape_of(value) for value in op.results])
    if not routine.holds(sizes, options):
        raise ValueError(f"{sizes} with {dict(options)} is not a call that {routine.rule} accepts")
    for pattern in (*operands, *results):
        _check_size([sizes[dim] for dim in _dims(pattern)])
    made = [[_tensor(each, letter, batch, sizes) for each in side] for side in (operands, results)]
    check_types(op, *made)
    layouts = [[_layout(each, len(batch)) for each in side] for side in (operands, results)]
    wanted = {
        "mhlo.backend_config": _config(options, routine.options),
        "operand_layouts": f"[{', '.join(layouts[0])}]",
        "result_layouts": f"[{', '.join(layouts[1])}]",
    }
    if routine.aliases:
        wanted["output_operand_aliases"] = _aliases(routine.aliases, len(results))
    check_attributes(op, wanted)


def _options(op: ir.Operation, allowed: Mapping[str, str]) -> Options:
    config = None
    if "mhlo.backend_config" in op.attributes:
        config = op.attributes["mhlo.backend_config"]
    if not isinstance(config, ir.DictAttr) or {each.name for each in config} != allowed.keys():
        raise ValueError(f"its options are {sorted(allowed)}, given as mhlo.backend_config")
    found: dict[str, int] = {}
    for name, characters in allowed.items():
        if not isinstance(config[name], ir.IntegerAttr):
            raise ValueError(f"its option {name} is not a number")
        found[name] = ir.IntegerAttr(config[name]).value
        if characters and found[name] not in characters.encode():
            raise ValueError(f"its option {name} is {found[name]}, expected one of {characters!r}")
    return found


def _dims(pattern: str) -> list[str]:
    """Return the sizes in ``T[m,n]``."""
    return [dim for dim in pattern[2:-1].split(",") if dim]


def _bind(sizes: Sizes, patterns: Sequence[str], shapes: Sequence[Sequence[int]]) -> None:
    """Bind letters without a size to the size at their first occurrence."""
    for pattern, shape in zip(patterns, shapes, strict=True):
        dims = _dims(pattern)
        if len(shape) < len(dims):
            raise ValueError(f"a shape is {list(shape)}, expected {pattern}")
        for dim, size in zip(dims, shape[len(shape) - len(dims) :], strict=True):
            sizes.setdefault(dim, size)


def _check_size(shape: Sequence[int]) -> None:
    if len(shape) == 2 and (min(shape) > MAX_ORDER or shape[0] * shape[1] > MAX_ELEMENTS):
        raise ValueError(f"a matrix of {shape} is too large for LAPACK's 32-bit integers")


def _tensor(pattern: str, letter: str, batch: Sequence[int], sizes: Sizes) -> str:
    shape = [*batch, *(sizes[dim] for dim in _dims(pattern))]
    return tensor(shape, _ELEMENTS[letter][pattern[0]])


def _layout(pattern: str, batch: int) -> str:
    """Return the layout of a column-major matrix, batches last, as MLIR writes it."""
    rank = batch + len(_dims(pattern))
    order = list(reversed(range(rank)))
    if len(_dims(pattern)) == 2:
        order[:2] = [rank - 2, rank - 1]
    return f"dense<{order if rank else ''}> : tensor<{rank}xindex>"


def _config(options: Options, allowed: Mapping[str, str]) -> str:
    kinds = {name: "ui8" if characters else "i32" for name, characters in allowed.items()}
    return f"{{{', '.join(f'{name} = {options[name]} : {kinds[name]}' for name in options)}}}"


def _aliases(aliases: Mapping[int, int], results: int) -> str:
    made = (
        f"#stablehlo.output_operand_alias<output_tuple_indices = {[out] if results > 1 else []}, "
        f"operand_index = {operand}, operand_tuple_indices = []>"
        for out, operand in aliases.items()
    )
    return f"[{', '.join(made)}]"


CALLS = {
    f"lapack_{letter}{name}_ffi": functools.partial(_check, routine, letter)
    for name, routines in _ROUTINES.items()
    for routine in routines
    for letter in routine.letters
}
"""Call targets, each with its rule."""
