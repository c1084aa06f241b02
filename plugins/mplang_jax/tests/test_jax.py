"""JAX frontend: same bytes everywhere, no data in the code, nothing narrowed, hostile code."""

from __future__ import annotations

import collections
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_jax import jax_compile, jax_compile_from_data
from mplang_stablehlo import signature_of

import mplang_core as mp
from mplang_core.errors import AdmissionError, PartyError, TraceError, VerifyError
from mplang_core.feop import unflatten
from mplang_core.ir.compressed_text import pack, unpack


def compiled(fn, *types, **kwargs):
    return jax_compile(fn, mp.FeSignature(types, kwargs))


def run(fn, *args, mode="standard"):
    """Run a function at one party, from the bytes of its program."""
    with mp.Simulator(mp.ClusterSpec.simple(2), timeout=20) as sim:
        traced = mp.trace(
            mp.TraceContext(sim.cluster_spec), lambda *a: mp.device("P1")(fn)(*a), *args
        )
        program = mp.ir.from_bytes(mp.ir.to_bytes(traced.program))
        with sim.options(mode=mode):
            results = sim.evaluate(program, [sim.lift(arg) for arg in args])
        return [sim.fetch(result)[1] for result in results]


# -- programs


def test_a_signature_gives_a_program_without_data():
    program = compiled(lambda x, y: x @ y, mp.TensorType("f32", (2, 3)), mp.TensorType("f32", (3,)))
    assert program.pfunc.fn_type == "jax.run"
    assert [str(kind) for kind in program.pfunc.outs_info] == ["f32[2]"]
    text = unpack(program.pfunc.attrs["code"])
    assert "stablehlo.dot_general" in text
    assert "loc(" not in text
    assert __file__ not in text
    assert "jax.result_info" not in text


def test_nests_in_and_out():
    Point = collections.namedtuple("Point", "x y")
    kind = mp.TensorType("f32")
    program = compiled(lambda p: {"sum": p.x + p.y, "both": (p.y, p.x)}, Point(kind, kind))
    assert unflatten(program.out_tree, [1, 2, 3]) == {"both": (1, 2), "sum": 3}


def test_from_data_is_as_from_a_signature():
    one = jax_compile_from_data(jnp.dot, np.ones(3), np.ones(3))
    other = compiled(jnp.dot, mp.TensorType("f64", (3,)), mp.TensorType("f64", (3,)))
    assert one.pfunc == other.pfunc


def test_what_a_function_closes_over_becomes_an_operand():
    secret = np.arange(1000, dtype=np.float32) + 0.123
    program = compiled(lambda x: x + secret, mp.TensorType("f32", (1000,)))
    assert len(program.consts) == 1
    assert len(program.pfunc.attrs["code"]) < 1000
    np.testing.assert_array_equal(program.consts[0], secret)


def test_what_a_jitted_function_inside_closes_over_becomes_an_operand():
    secret = np.arange(1000, dtype=np.float32) + 0.123
    inner = jax.jit(lambda x: jax.jit(lambda y: y * secret)(x) + 1)
    program = compiled(lambda x: jnp.sort(inner(x)), mp.TensorType("f32", (1000,)))
    assert [const.shape for const in program.consts] == [(1000,)]
    assert len(program.pfunc.attrs["code"]) < 1500
    x = np.ones(1000, np.float32)
    np.testing.assert_allclose(run(lambda x: jnp.sort(inner(x)), x)[0], secret + 1)


def test_64_bits_that_a_function_closes_over_stay_64_bits():
    big = np.array([2**40])
    np.testing.assert_array_equal(run(lambda x: x + big, np.int32([1]))[0], big + 1)
    (kind,) = compiled(lambda: big).pfunc.outs_info
    assert str(kind) == "i64[1]"


PROGRAM = """
    import hashlib
    import jax, jax.numpy as jnp
    import mplang_core as mp
    from mplang_jax import jax_compile
    {blank}
    def helper(x):
        return jnp.where(x > 0, jnp.sort(x), jax.scipy.special.erf(x))
    @jax.jit
    def fn(x, y):
        return {{"b": helper(x) @ y, "a": jnp.linalg.cholesky(y @ y.T + jnp.eye(4))}}
    kinds = (mp.TensorType("f32", (4,)), mp.TensorType("f32", (4, 4)))
    program = jax_compile(fn, mp.FeSignature(kinds))
    print(hashlib.sha256(program.pfunc.attrs["code"]).hexdigest())
"""


def test_a_jitted_function_is_traced_once_for_a_signature():
    traces = []

    @jax.jit
    def fn(x, n):
        traces.append(n)
        return x * n

    signature = mp.FeSignature((mp.TensorType("f32", (3,)),), {"n": 2})
    first = jax_compile(fn, signature)
    count = len(traces)
    assert jax_compile(fn, signature) is first
    assert len(traces) == count
    others = [
        mp.FeSignature((mp.TensorType("f32", (4,)),), {"n": 2}),
        mp.FeSignature((mp.TensorType("f64", (3,)),), {"n": 2}),
        mp.FeSignature((mp.TensorType("f32", (3,)),), {"n": 2.0}),
        mp.FeSignature((mp.TensorType("f32", (3,)),), {"n": True}),
        mp.FeSignature((mp.TensorType("f32", (3,)), 2)),
    ]
    codes = [jax_compile(fn, other).pfunc for other in others]
    assert len({repr(pfunc) for pfunc in [first.pfunc, *codes]}) == 5  # 2 by position, or by name


def test_a_function_that_may_have_changed_is_traced_anew():
    factor = 2
    fn = lambda x: x * factor  # noqa: E731
    signature = mp.FeSignature((mp.TensorType("f32", (3,)),))
    first = jax_compile(fn, signature)
    factor = 3
    assert jax_compile(fn, signature).pfunc.attrs["code"] != first.pfunc.attrs["code"]


@pytest.mark.slow("two processes import JAX; the kit asks other processes, too")
def test_the_same_bytes_in_two_processes_from_other_lines_with_other_hash_seeds():
    seen = set()
    for seed, blank in (("0", ""), ("1", "\n\n\n")):
        source = textwrap.dedent(PROGRAM).format(blank=blank)
        out = subprocess.run(
            [sys.executable, "-c", source],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "JAX_PLATFORMS": "cpu", "PATH": ""},
        )
        seen.add(out.stdout.strip())
    assert len(seen) == 1


# -- results


@pytest.mark.parametrize("mode", ["standard", "launch"])
@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (lambda x: x * 2 + 1, (np.arange(6, dtype=np.float32).reshape(2, 3),)),
        (lambda x, y: x @ y, (np.ones((2, 3)), np.arange(3.0))),
        (lambda x: jnp.sort(x)[::-1], (np.array([3, 1, 2], np.int32),)),
        (lambda x: jax.lax.top_k(x, 2)[0], (np.array([3.0, 1.0, 2.0], np.float32),)),
        (lambda x: jax.scipy.special.erf(x), (np.array([0.5], np.float32),)),
        (lambda x: jnp.linalg.cholesky(x), (np.eye(3, dtype=np.float32) * 4,)),
        (lambda x: jnp.fft.fft(x).real, (np.arange(4, dtype=np.float32),)),
        (lambda x: jax.nn.sigmoid(x), (np.linspace(-3, 3, 5).astype(np.float32),)),
        (lambda x: x.sum(), (np.arange(5, dtype=np.int64),)),
        (lambda x: (x > 1, ~x.astype(bool)), (np.arange(3),)),
        (lambda x: jax.random.normal(jax.random.key(0), (3,)) + x, (np.float32(1),)),
        (lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * 2, x), (np.float32(1),)),
        (lambda x: x[:0], (np.zeros(3, np.float32),)),
        (lambda x: jnp.float32(7), (np.zeros(3, np.float32),)),
    ],
)
def test_results_are_those_of_jax(fn, args, mode):
    wide = any(np.asarray(arg).dtype.itemsize == 8 for arg in args)
    with jax.enable_x64(wide):
        expected = jax.tree.leaves(fn(*map(jnp.asarray, args)))
    found = run(fn, *args, mode=mode)
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert isinstance(mine, np.ndarray)
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, np.asarray(theirs), rtol=1e-6)


def test_64_bits_stay_64_bits():
    big = np.array([2**53 + 1, -(2**62)])
    (found,) = run(lambda x: x + 1, big)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, big + 1)
    (real,) = run(lambda x: x / 3, np.array([1.0]))
    assert real.dtype == np.float64
    assert real[0] == 1 / 3


def test_32_bits_stay_32_bits():
    (found,) = run(lambda x: x * 0.5, np.float32([1, 2]))
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (jax.scipy.stats.norm.pdf, "f32"),
        (lambda x: jax.scipy.stats.norm.cdf(x, 0.1, 2.5), "f32"),
        (lambda x: jax.scipy.stats.cauchy.ppf(x), "f32"),
        (lambda x: jax.scipy.stats.truncnorm.pdf(x, x, x), "f32"),
        (lambda x: x * jnp.float64(0.1), "f64"),
    ],
    ids=["pdf", "cdf", "ppf", "truncnorm", "of 64 bits"],
)
def test_bools_in_scipy_have_the_type_that_jax_gives_them(fn, expected):
    program = compiled(fn, mp.TensorType("bool", (3,)))
    assert [str(kind) for kind in program.pfunc.outs_info] == [f"{expected}[3]"]


def test_a_number_is_compiled_in_and_weakly_typed():
    program = compiled(lambda x, by: x * by, mp.TensorType("f32", (3,)), 2.5)
    assert [str(kind) for kind in program.pfunc.ins_info] == ["f32[3]"]
    assert [str(kind) for kind in program.pfunc.outs_info] == ["f32[3]"]


def test_executables_are_kept_in_the_process_state():
    state = jax_compile.__get_state__()
    state.clear()
    for _ in range(2):
        run(lambda x: x + 41, np.float32(1))
    assert len(state) == 2  # the program, and its executable


# -- refusals


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x @ np.ones(7),
        lambda x: x.no_such_thing,
        lambda x: undefined_name,  # noqa: F821
    ],
)
def test_what_jax_cannot_trace_is_a_trace_error_with_the_line(fn):
    with pytest.raises(TraceError, match=r"test_jax.py:\d+: JAX cannot trace <lambda>\(f32\[3\]\)"):
        compiled(fn, mp.TensorType("f32", (3,)))


def test_a_table_is_refused():
    with pytest.raises(TraceError, match="JAX works on tensors"):
        compiled(lambda x: x, mp.TableType((("id", "int64"),)))


def test_a_multi_party_value_closed_over_is_refused():
    def program():
        x = mp.constant(1.0)
        return mp.device("P0")(lambda y: y + np.asarray(x))(mp.put("P0", 1.0))

    with pytest.raises(TraceError, match="needs its data"):
        mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), program)


def test_a_python_callback_is_refused_while_tracing():
    def fn(x):
        return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((), np.float32), x)

    with pytest.raises(TraceError, match="a Python callback cannot run there"):
        run(fn, np.float32(1))


MAIN = """module @main {{
  func.func public @main(%arg0: tensor<f32>) -> {out} {{
    {body}
  }}
}}
"""


def hostile(text: str):
    """Run hand-written code at a party, as a hostile coordinator would send it."""
    attrs = {"code": pack(text), "x64": False, "jax": "0.8.0", "stablehlo": "1.9.0"}
    kind = mp.TensorType("f32")
    pfunc = mp.PFunction("jax.run", (kind,), (kind,), attrs)
    with mp.Simulator(mp.ClusterSpec.simple(1), timeout=20) as sim:
        result = mp.evaluate(sim, lambda x: mp.peval(pfunc, [x])[0], np.float32(1))
        return mp.fetch(sim, result)


CUSTOM_CALL = """%0 = stablehlo.custom_call @evil(%arg0) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>"""
REPLICA = """%0 = stablehlo.replica_id : tensor<ui32>
    return %arg0 : tensor<f32>"""


@pytest.mark.parametrize("body", [CUSTOM_CALL, REPLICA])
def test_an_op_that_is_not_allowed_is_refused(body):
    with pytest.raises(
        PartyError, match=r"jax\.run: XLA cannot run .*(@evil|replica_id): it is not among"
    ) as error:
        hostile(MAIN.format(out="tensor<f32>", body=body))
    assert isinstance(error.value.__cause__, AdmissionError)


IDENTITY = MAIN.format(out="tensor<f32>", body="return %arg0 : tensor<f32>")
RECURSION = MAIN.format(
    out="tensor<f32>",
    body="%0 = call @main(%arg0) : (tensor<f32>) -> tensor<f32>\n    return %0 : tensor<f32>",
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not StableHLO"),
        ("module {", "not StableHLO"),
        ("// " + IDENTITY, "has comments"),
        (IDENTITY.replace("return", '"func\\2Ereturn"'), "has escapes"),
        (IDENTITY + "[" * 200_000, "nests brackets deeper"),
        (
            IDENTITY.replace("tensor<f32>)", "tensor<f32>) -> attributes " * 4000),
            "not a static tensor",
        ),
        (MAIN.format(out="tensor<f32>", body="%t = stablehlo.create_token : !t"), "other dialects"),
        (RECURSION, "call each other"),
        (MAIN.format(out="tensor<?xf32>", body="return"), "not a static tensor"),
        (MAIN.format(out="tensor<f99>", body="return %arg0 : tensor<f32>"), "f99"),
        (MAIN.format(out="tensor<f32>", body="return %arg7 : tensor<f32>"), None),
    ],
)
def test_code_that_is_none_is_refused(text, message):
    with pytest.raises((PartyError, TraceError), match=message):
        hostile(text)


def test_the_code_that_the_refusals_vary_runs():
    assert hostile(IDENTITY)[0] == 1


def test_types_are_inferred_from_the_code_not_believed():
    program = compiled(lambda x: x, mp.TensorType("f32", (3,)))
    text = mp.trace(
        mp.TraceContext(mp.ClusterSpec.simple(1)),
        lambda x: mp.peval(program.pfunc, [x])[0],
        np.zeros(3, np.float32),
    ).compiler_ir()
    forged = mp.parse(
        text.replace(": f32[3] at", ": f32[4] at").replace(": f32[3]@{0} at", ": f32[4]@{0} at")
    )
    with pytest.raises(VerifyError, match="jax.run.*outputs are"):
        mp.verify(forged)


def test_a_bomb_is_not_unpacked():
    import zlib

    with pytest.raises(ValueError, match="larger than"):
        signature_of(zlib.compress(b"\0" * (65 << 20)))
