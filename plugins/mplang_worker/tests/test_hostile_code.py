"""Hostile code that targets the engine, on workers with TLS.

Two coordinators share the workers, and one is hostile; see ``unharmed_engines``.
"""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from http_raw import changed, program
from jaxlib import lapack
from mplang_http import LocalCluster
from mplang_spu import ShareType, SpuConfig

import mplang_core as mp
from mplang_core.errors import MPLangError, PartyError
from mplang_core.ext import run_program
from mplang_core.ir.compressed_text import pack

pytestmark = pytest.mark.usefixtures("unharmed_engines")


def refused(host, fn, *args, match: str) -> None:
    with pytest.raises(MPLangError, match=match):
        mp.evaluate(host, fn, *args, mode="launch")


# -- StableHLO on XLA


def module(operands, results, body: str) -> str:
    """Return a module with one function; ``body`` ends with its return."""
    arguments = ", ".join(f"%arg{i}: {kind}" for i, kind in enumerate(operands))
    given = f" -> ({', '.join(results)})" if len(results) > 1 else f" -> {results[0]}"
    return (
        f"module @main {{\n  func.func public @main({arguments}){given} {{\n    {body}\n  }}\n}}\n"
    )


def call(target: str, operands, results, attributes) -> str:
    """Return a module with one custom call, whose results it returns."""
    names = ", ".join(f"%arg{i}" for i in range(len(operands)))
    several = len(results) > 1
    outs = [f"%0#{i}" for i in range(len(results))] if several else ["%0"]
    gives = f"({', '.join(results)})" if several else results[0]
    return module(
        operands,
        results,
        f"%0{f':{len(results)}' * several} = stablehlo.custom_call @{target}({names}) "
        f"{{{', '.join(f'{k} = {v}' for k, v in attributes.items())}}} "
        f": ({', '.join(operands)}) -> {gives}\n"
        f"    return {', '.join(outs)} : {', '.join(results)}",
    )


def some(kind: mp.TensorType):
    numbers = np.random.default_rng(0).normal(size=kind.shape)
    return numbers.astype(kind.dtype.numpy)


def run_on_xla(text: str):
    """Return a program that runs StableHLO text at party 0."""
    from mplang_stablehlo import signature_of

    code = pack(text)
    takes, gives = signature_of(code)
    attrs = {"code": code, "x64": True, "jax": "0.8.0", "stablehlo": "1.9.0"}
    pfunc = mp.PFunction("jax.run", takes, gives, attrs)

    def program():
        values = [mp.constant(some(kind), parties=0) for kind in takes]
        return mp.peval(pfunc, values, rmask=mp.Mask.of(0))[0]

    return program


LAPACK = {
    "trsm": lambda a: jax.lax.linalg.triangular_solve(a, a),
    "getrf": jax.lax.linalg.lu,
    "geqrf": jax.lax.linalg.qr,
    "geqp3": lambda a: jax.lax.linalg.qr(a, pivoting=True),
    "potrf": jax.lax.linalg.cholesky,
    "gesdd": jax.lax.linalg.svd,
    "gesvd": lambda a: jax.lax.linalg.svd(a, algorithm=jax.lax.linalg.SvdAlgorithm.QR),
    "syevd": jax.lax.linalg.eigh,
    "geev": jax.lax.linalg.eig,
    "gees": jax.lax.linalg.schur,
    "sytrd": jax.lax.linalg.tridiagonal,
    "gehrd": jax.lax.linalg.hessenberg,
    "gtsv": lambda a: jax.lax.linalg.tridiagonal_solve(a[0], a[1], a[2], a),
    "orgqr": lambda a: jax.lax.linalg.householder_product(a, a[0]),
}
"""Functions of JAX that call each routine; the Hermitian twins are of the complex types."""

N = 300  # matrices are large enough for a write past a result's end to be seen


ROUTINES = sorted(lapack.batch_partitionable_targets())


@functools.cache
def calls_of_jax(n=N):
    """Return JAX's own calls by routine and type: target, operands, results, attributes."""
    from jaxlib.mlir import ir
    from mplang_stablehlo import module as stablehlo

    found = {}
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        for name, fn in LAPACK.items():
            with jax.enable_x64(True):
                lowered = jax.jit(fn).lower(jax.ShapeDtypeStruct((n, n), dtype))
            for op in stablehlo.walk(
                stablehlo.parse(stablehlo.canonical(lowered.as_text())).operation
            ):
                if op.name == "stablehlo.custom_call":
                    target = ir.StringAttr(op.attributes["call_target_name"]).value
                    attributes = {each.name: str(each.attr) for each in op.attributes}
                    del attributes["call_target_name"]
                    operands = [str(value.type) for value in op.operands]
                    results = [str(value.type) for value in op.results]
                    if name != "orgqr" or "gqr" in target:
                        found.setdefault(target, (operands, results, attributes))
    return found


def wrong_calls(operands, results, attributes):
    """Yield variants of a call: wrong ranks, sizes, types, operands and attributes."""
    bare = {k: v for k, v in attributes.items() if k == "mhlo.backend_config"}
    for i, kind in enumerate(results):
        *dims, element = kind[len("tensor<") : -1].replace("complex", "C").split("x")
        element = element.replace("C", "complex")
        for other in (["1"] * len(dims), ["2", *dims], dims[1:], [*dims, "1"]):
            yield operands, [*results[:i], tensor(other, element), *results[i + 1 :]], bare
        yield operands, [*results[:i], tensor(dims, "i8"), *results[i + 1 :]], bare
    for old, new in ((f"{N}", "7"), (f"{N}x{N}", f"{N}x7"), (f"{N}x{N}", f"3x{N}x{N}")):
        yield [kind.replace(old, new) for kind in operands], results, bare
    yield operands, results[:-1] or results * 2, bare
    yield operands[:-1], results, bare
    for name, old, new in (
        ("operand_layouts", "[0, 1]", "[1, 0]"),
        ("result_layouts", "[0, 1]", "[1, 0]"),
        ("output_operand_aliases", "operand_index = 0", "operand_index = 9"),
        ("mhlo.backend_config", "{", "{more = 1 : i64, "),
        *(("mhlo.backend_config", f"{n} : ui8", "7 : ui8") for n in (65, 76, 78, 82, 85, 86)),
        ("mhlo.backend_config", "ui8", "ui16"),
        ("mhlo.backend_config", f"high = {N}", "high = 9000000"),
        ("mhlo.backend_config", "low = 1", "low = -1"),
    ):
        if old in attributes.get(name, ""):
            yield operands, results, attributes | {name: attributes[name].replace(old, new, 1)}
    for name in attributes:
        yield operands, results, {k: v for k, v in attributes.items() if k != name}
    for more in (
        {"has_side_effect": "true"},
        {"api_version": "2 : i32"},
        {"called_computations": "[@main]"},
        {"mhlo.sharding": '"{replicated}"'},
    ):
        yield operands, results, attributes | more


def tensor(dims, element: str) -> str:
    return f"tensor<{'x'.join([*dims, element])}>"


def different_calls(target):
    good = call(target, *calls_of_jax()[target])
    return [
        text
        for wrong in wrong_calls(*calls_of_jax()[target])
        if (text := call(target, *wrong)) != good
    ]


def test_every_routine_of_lapack_that_jax_calls_is_varied():
    assert sorted(calls_of_jax()) == ROUTINES
    assert all(len(different_calls(target)) > 20 for target in ROUTINES)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(name, marks=[pytest.mark.slow("42 routines more")] * (i % 4 > 0))
        for i, name in enumerate(ROUTINES)
    ],
)
def test_a_routine_of_lapack_gets_what_its_rule_says(tls_host, target):
    """One variant, of the first result's size; the slow test below has all variants."""
    size, *_ = different_calls(target)
    refused(tls_host, run_on_xla(size), match=f"XLA cannot run custom_call @{target}: its results")
    small = call(target, *calls_of_jax(8)[target])  # a large one takes its time
    mp.evaluate(tls_host, run_on_xla(small), mode="launch")


@pytest.mark.slow("22 to 50 wrong calls of each of 56 routines")
@pytest.mark.parametrize("target", ROUTINES)
def test_a_routine_of_lapack_gets_nothing_else(tls_host, target):
    mp.evaluate(tls_host, run_on_xla(call(target, *calls_of_jax()[target])), mode="launch")
    wrong = different_calls(target)
    size, rank, _, _, kind, *_ = wrong
    for text in (size, rank, kind):
        refused(
            tls_host, run_on_xla(text), match=f"XLA cannot run custom_call @{target}: its results"
        )
    for text in wrong:
        refused(
            tls_host, run_on_xla(text), match="XLA cannot run|not StableHLO|not a static tensor"
        )


F32, C64 = "tensor<1000xf32>", "tensor<1000xcomplex<f32>>"


FLAGS = {False: "false", True: "true"}


def sort(comparator: str, *, stable: bool = False) -> str:
    """Return a sort of 1,000 numbers; the comparator computes %c from %x and %y."""
    return module(
        [F32],
        [F32],
        f'%0 = "stablehlo.sort"(%arg0) <{{dimension = 0 : i64, is_stable = {FLAGS[stable]}}}> '
        f"({{\n    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n      {comparator}\n"
        f"      stablehlo.return %c : tensor<i1>\n    }}) : ({F32}) -> {F32}\n"
        f"    return %0 : {F32}",
    )


def compare(direction: str, x: str = "%x", y: str = "%y", out: str = "%c") -> str:
    kinds = "(tensor<f32>, tensor<f32>) -> tensor<i1>"
    return f"{out} = stablehlo.compare {direction}, {x}, {y}, TOTALORDER : {kinds}\n      "


EITHER = compare("LT", out="%a") + compare("EQ", out="%b") + "%c = stablehlo.or %a, %b : tensor<i1>"
WINDOW = """%z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%arg0, %z) <{padding = dense<[[PADDING]]> : tensor<1x2xi64>,
        window_dimensions = array<i64: SIZE>, base_dilations = array<i64: SPREAD>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<1000xf32>, tensor<f32>) -> tensor<WIDTHxf32>
    return %0 : tensor<WIDTHxf32>"""


def window(padding: str, size: int, spread: int, width: int) -> str:
    body = WINDOW.replace("PADDING", padding).replace("SIZE", str(size))
    body = body.replace("SPREAD", str(spread)).replace("WIDTH", str(width))
    return module([F32], [f"tensor<{width}xf32>"], body)


def chain(depth: int, calls: int = 1) -> str:
    """Return functions that each call the next one several times."""
    lines = [f"    %0 = call @f0(%arg0) : ({F32}) -> {F32}\n    return %0 : {F32}\n  }}"]
    for i in range(depth):
        lines.append(f"  func.func private @f{i}(%arg0: {F32}) -> {F32} {{")
        for n in range(calls if i < depth - 1 else 0):
            given = "%arg0" if n == 0 else f"%{n - 1}"
            lines.append(f"    %{n} = call @f{i + 1}({given}) : ({F32}) -> {F32}")
        last = f"%{calls - 1}" if i < depth - 1 else "%arg0"
        lines.append(f"    return {last} : {F32}\n  }}")
    return (
        f"module @main {{\n  func.func public @main(%arg0: {F32}) -> {F32} {{\n"
        + "\n".join(lines)
        + "\n}\n"
    )


SELF = f"%0 = call @main(%arg0) : ({F32}) -> {F32}\n    return %0 : {F32}"

FATAL = {
    "less or equal": (sort(compare("LE")), "not a strict order"),
    "less or equal, stable": (sort(compare("LE"), stable=True), "not a strict order"),
    "not equal": (sort(compare("NE")), "not a strict order"),
    "less or else equal": (sort(EITHER), "not a strict order"),
    "with itself": (sort(compare("LT", "%x", "%x")), "not a strict order"),
    "with a constant": (
        sort("%k = stablehlo.constant dense<0.0> : tensor<f32>\n" + compare("LT", "%x", "%k")),
        "not a strict order",
    ),
    "always": (sort("%c = stablehlo.constant dense<true> : tensor<i1>"), "not a strict order"),
    "less than nothing": (window("-600, -600", 1, 1, 0), "-200 wide"),
    "spread far": (window("0, 0", 1, 1 << 40, 999 * (1 << 40) + 1), "too large|at most"),
    "calls in circles": (module([F32], [F32], SELF), "'main'.* call each other"),
    "calls in circles, quoted": (
        module([F32], [F32], SELF.replace("@main", '@"main"')),
        "'main'.* call each other",
    ),
    "calls in a chain": (chain(1200), "deeper than 100"),
    "calls that double": (chain(40, 2), "over 100000 ops"),
    "a loop of nothing": (
        module(
            [F32],
            [F32],
            "stablehlo.while() : ()\n cond {\n %t = stablehlo.constant dense<true> : tensor<i1>\n"
            f" stablehlo.return %t : tensor<i1>\n }} do {{\n stablehlo.return\n }}\n"
            f" return %arg0 : {F32}",
        ),
        "never ends|not StableHLO",
    ),
    "too large": (
        module(
            [F32],
            ["tensor<f32>"],
            "%0 = stablehlo.constant dense<1.0> : tensor<9000000x9000000xf32>\n"
            "%1 = stablehlo.slice %0 [0:1, 0:1] "
            ": (tensor<9000000x9000000xf32>) -> tensor<1x1xf32>\n"
            "%2 = stablehlo.reshape %1 : (tensor<1x1xf32>) -> tensor<f32>\n"
            "    return %2 : tensor<f32>",
        ),
        "is too large",
    ),
    "an attribute of XLA": (
        module(
            [F32], [F32],
            f'%0 = stablehlo.abs %arg0 {{mhlo.frontend_attributes = {{a = "b"}}}} : {F32}\n'
            f"    return %0 : {F32}",
        ),
        "mhlo.frontend_attributes",
    ),
    "an encoding": (
        module(
            [F32], [F32],
            f'%0 = stablehlo.convert %arg0 : ({F32}) -> tensor<1000xf32, "x">\n'
            f'    %1 = stablehlo.convert %0 : (tensor<1000xf32, "x">) -> {F32}\n'
            f"    return %1 : {F32}",
        ),
        "an encoding|not StableHLO",
    ),
    "lengths of a transform": (
        module(
            [F32], [F32],
            f"%0 = stablehlo.convert %arg0 : ({F32}) -> {C64}\n"
            f"    %1 = stablehlo.fft %0, type = FFT, length = [5] : ({C64}) -> {C64}\n"
            f"    %2 = stablehlo.real %1 : ({C64}) -> {F32}\n    return %2 : {F32}",
        ),
        "its lengths are|no Fourier",
    ),
}  # fmt: skip
"""Text that ended XLA's or libspu's process, or read what was not its own; what is said of it."""


@pytest.mark.parametrize(("text", "match"), FATAL.values(), ids=list(FATAL))
def test_xla_does_not_see_what_would_end_it(tls_host, text, match):
    refused(tls_host, run_on_xla(text), match=match)


@pytest.mark.parametrize(("text", "match"), FATAL.values(), ids=list(FATAL))
def test_libspu_does_not_see_what_would_end_it(tls_host, text, match):
    refused(tls_host, run_on_spu(text), match=match)


def run_on_spu(text: str, protocol: str = "ABY3", parties: int = 3):
    """Return a program that runs StableHLO text on shares."""
    from mplang_stablehlo import signature_of

    code = pack(text)
    takes, gives = signature_of(code)
    mask = mp.Mask.all(parties)
    config = SpuConfig(protocol=protocol, parties=tuple(mask))
    inner = {"code": code, "x64": False, "jax": "0.8.0", "stablehlo": "1.9.0"}
    attrs = {"program": inner, "parties": mask, "config": config.attrs()}

    def program():
        values = [mp.constant(np.zeros(k.shape, k.dtype.numpy)) for k in takes]
        outs = tuple(ShareType.of(kind, config) for kind in gives)
        return mp.peval(mp.PFunction("spu.run_jax", takes, outs, attrs), values, rmask=mask)[0]

    return program


# -- what libspu's compiler fails at: it undoes its work, and frees what secrets still use


def run_on_shares(text: str):
    """Return a program that runs StableHLO text on secret zeros, sent as a hostile coordinator."""
    from mplang_spu.ops import make_shares
    from mplang_stablehlo import signature_of

    code, mask = pack(text), mp.Mask.all(3)
    takes, gives = signature_of(code)
    config = SpuConfig(protocol="ABY3", parties=tuple(mask))
    inner = {"code": code, "x64": False, "jax": "0.8.0", "stablehlo": "1.9.0"}
    attrs = {"program": inner, "parties": mask, "config": config.attrs()}
    ins, outs = (tuple(ShareType.of(kind, config) for kind in kinds) for kinds in (takes, gives))

    def shared(kind: ShareType):
        x = mp.constant(np.zeros(kind.plain.shape, kind.plain.dtype.numpy), parties=0)
        mine, *others = run_program(make_shares(x, share=kind), mp.Mask.of(0))
        return mp.pconv([mine, *(mp.pshfl_s(each, i + 1, [0]) for i, each in enumerate(others))])

    def program():
        values = [shared(kind) for kind in ins]
        return mp.peval(mp.PFunction("spu.run_jax", ins, outs, attrs), values, rmask=mask)[0]

    return program


S32 = "tensor<f32>"
SUM = (
    "%z = stablehlo.constant dense<0.0> : tensor<f32>\n    "
    '%0 = "stablehlo.reduce"(%arg0, %z) <{dimensions = array<i64: 0>}> ({\n'
    "    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n      %s = stablehlo.OP : tensor<f32>\n"
    f"      stablehlo.return %s : {S32}\n    }}) : ({F32}, {S32}) -> {S32}\n    return %0 : {S32}"
)
COMBINER = """%i = stablehlo.iota dim = 0 : tensor<1000x1xi32>
    %0 = "stablehlo.scatter"(%arg0, %i, %arg0) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %a = stablehlo.add %x, %y : tensor<f32>
      %s = stablehlo.sine %a : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<1000xf32>, tensor<1000x1xi32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>"""

HEAP = {
    "precision": (
        module(
            [F32], [F32],
            f"%c = stablehlo.sine %arg0 : {F32}\n    %0 = stablehlo.reduce_precision %c, "
            f"format = e5m10 : {F32}\n    return %0 : {F32}",
        ),
        "reduce_precision",
    ),
    "a tangent in a reducer": (module([F32], [S32], SUM.replace("OP", "tan %x")), "tan"),
    "a cube root in a reducer": (module([F32], [S32], SUM.replace("OP", "cbrt %x")), "cbrt"),
    "precision in a function": (
        module([F32], [F32], f"%0 = call @f(%arg0) : ({F32}) -> {F32}\n    return %0 : {F32}")
        .replace(
            "\n}\n",
            f"\n  func.func private @f(%arg0: {F32}) -> {F32} {{\n    %0 = "
            f"stablehlo.reduce_precision %arg0, format = e5m10 : {F32}\n"
            f"    return %0 : {F32}\n  }}\n}}\n",
        ),
        "reduce_precision",
    ),
    "two ops to combine": (module([F32], [F32], COMBINER), "scatter"),
}  # fmt: skip
"""Valid code on which libspu's compiler broke the heap of its process; the op that it lacks."""


@pytest.fixture(scope="module")
def production():
    """Return the host of three workers as an owner runs them."""
    with LocalCluster(3, mode="production") as cluster, mp.connect("http", cluster.spec) as made:
        yield made


@pytest.mark.parametrize(("text", "op"), HEAP.values(), ids=list(HEAP))
@pytest.mark.parametrize("mode", ["development", "production"])
def test_libspu_does_not_see_what_would_break_its_heap(request, mode, text, op):
    """Several times: the first failure leaves the heap broken, a later one ends the engine."""
    host = request.getfixturevalue("tls_host" if mode == "development" else "production")
    for _ in range(3):
        refused(host, run_on_shares(text), match=f"SPU cannot run (stablehlo.)?{op}")


# -- text


def deep(opening: str, closing: str, size: int, core: str = "") -> str:
    n = size // (len(opening) + len(closing))
    return opening * n + core + closing * n


def texts(size: int):
    """Yield nested and repeated text of about ``size`` bytes."""
    body = f"return %arg0 : {F32}"
    yield module([F32], [F32], deep("(", ")", size))
    yield module([F32], [F32], deep("({", "})", size))
    yield module([F32], [F32], f"%0 = stablehlo.abs %arg0 {{a = {deep('[', ']', size)}}} : {F32}")
    yield module([F32], [F32], f"%c = stablehlo.constant dense<{deep('[', ']', size)}> : {F32}")
    yield module([F32], [F32], deep("tensor<", ">", size))
    yield module([F32], [F32], '"]"[' * (size // 4))
    yield "module{" * (size // 7)
    yield module([F32], [F32], "stablehlo.bitcast_convert " * (size // 26))
    yield module([F32], [F32], "custom_call @ " * (size // 14))
    yield module([F32], [F32], "- " * (size // 2))
    yield module([F32], [F32], f"%c = stablehlo.constant dense<{'9' * size}.0> : {F32}")
    yield module([F32], [F32], f"%c = stablehlo.constant dense<{'9' * size}> : tensor<i32>")
    yield module([F32], [F32], f"call @{'f' * size}() : () -> ()")
    yield module([F32], [F32], "\n".join(["%c = stablehlo.abs %c : tensor<f32>"] * (size // 36)))
    yield module([F32], [F32], '"' + "[" * size + '"')
    yield module([F32], [F32], '"' + "[" * size)
    yield module([F32] * (size // 24), [F32], body)
    yield module([F32], [F32], body) + "#a = [" * (size // 6)
    yield module([F32], [F32], body) + "module @b {}\n" * (size // 13)
    yield module([F32], [F32], body) + "func.func @f() { return }\n" * (size // 26)
    aliases = "".join(f"#a{i + 1} = [#a{i}, #a{i}]\n" for i in range(size // 25))
    using = "module @y { func.func @g(%a: tensor<?xf32, #a60>) { return } }\n"
    yield module([F32], [F32], body) + "#a0 = []\n" + aliases + using
    yield module([F32], [F32], body).replace(F32, "tensor<" + "1x" * (size // 2) + "f32>")
    yield "\0" * size
    yield "x" * size


SIZES = [
    10_000,
    pytest.param(300_000, marks=pytest.mark.slow("24 texts of 300 KB")),
    pytest.param(10_000_000, marks=pytest.mark.slow("24 texts of 10 MB")),
]


IDENTITY = module([F32], [F32], f"return %arg0 : {F32}")
RUNS = {"jax.run": run_on_xla, "spu.run_jax": run_on_spu}


def with_code(opcode: str, code: bytes) -> bytes:
    """Return a program whose code is replaced by other code."""

    def change(envelope) -> None:
        envelope[6][envelope[6].index(pack(IDENTITY))] = code

    return changed(program(RUNS[opcode](IDENTITY), parties=3), change)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.long("24 texts, each an upload or a run")
@pytest.mark.parametrize("opcode", RUNS)
def test_nested_and_repeated_text(raw_workers, tls_host, opcode, size):
    """Rejected with a short error, on upload or when it runs."""
    assert raw_workers[0].put_program(with_code(opcode, pack(IDENTITY))).status == 200
    for text in texts(size):
        put = raw_workers[0].put_program(with_code(opcode, pack(text)))
        if put.status == 200:
            with pytest.raises(PartyError) as error:
                mp.evaluate(tls_host, RUNS[opcode](text), mode="launch")
            told = str(error.value)
        else:
            assert put.error == (422, "VerifyError"), text[:300]
            told = put.text
        assert opcode in told, told[:300]
        assert len(told) < 4000, told[:300]
