"""Functions on an HE device: numbers are right, or refused with the line and what would do."""

from __future__ import annotations

import re

import jax.numpy as jnp
import numpy as np
import pytest
from he_values import cluster
from jax import lax
from mplang_he.parameters import BFV_PRIMES, Parameters

import mplang_core as mp
from mplang_core import errors

X = np.array([[0.5, -1.0, 0.25], [1.0, 0.0, -0.5], [-0.75, 0.125, 1.0], [0.0, 1.0, 1.0]])
W = np.array([[2.0, 0.0], [-1.5, 0.0], [0.25, 0.0]])
N = np.array([[3, -128, 7], [0, 127, -1]], np.int8)


def run(program, *args, config=(), mode="launch"):
    with mp.Simulator(cluster(**dict(config)), mode=mode) as sim:
        return mp.fetch(sim, mp.evaluate(sim, program, *args))


def on_h(fn, *operands, to="C", **named):
    """Run a function of what the clinic has, and the vendor after it."""
    clinic, *vendor = operands
    there = [mp.put("V", each, range=(-2, 2)) for each in vendor]
    x = mp.put("C", clinic, range=(-1, 1)) if clinic.dtype.kind == "f" else mp.put("C", clinic)
    return mp.reveal(mp.device("H")(fn)(x, *there, **named), to=to)


def lax_sum(x, start):
    """Return sums of rows that begin with a number."""
    if isinstance(x, np.ndarray):
        return x.sum(axis=1) + start
    return lax.reduce(x, jnp.asarray(start, x.dtype), lax.add, (1,))


FLOATS = {
    "a network": lambda x, w: (x @ w + 0.5) ** 2 - x[:, :2],
    "a mean of each row": lambda x, w: x.mean(axis=1, keepdims=True) * x,
    "weights that are 0": lambda x, w: x @ (w * 0.0),
    "what is 0": lambda x, w: (x - x, x * 0.0, x[:, :1] - x[:, :1] + 1.0),
    "all of it plain but for a column": lambda x, w: x[:, :1] + w.sum(),
    "transposed": lambda x, w: (w.T @ x.T, x.T * 2.0),
    "reshaped": lambda x, w: x.reshape(4, 1, 3)[:, :, ::-1],
    "concatenated": lambda x, w: jnp.concatenate([x, x * x, jnp.ones((4, 1))], axis=1),
    "numbers for each row": lambda x, w: x * jnp.arange(4.0)[:, None] + x / 4.0,
    "a cube": lambda x, w: x**3 - x * 0.5,
    "a sum that begins with 5": lambda x, w: lax_sum(x, 5.0),
    "products of plain matrices": lambda x, w: x[:, :2] * (w.T @ w)[0] + (w @ w[:2]).sum(),
    "columns of different depth": lambda x, w: jnp.concatenate([x, x**2, x**4], axis=1),
    "in half precision": lambda x, w: x.astype(jnp.float32) * 2,
}


@pytest.mark.parametrize("fn", FLOATS.values(), ids=FLOATS)
def test_floats_are_as_numpy_has_them(fn):
    found, right = run(lambda: on_h(fn, X, W)), fn(X, W)
    many = right if isinstance(right, tuple) else (right,)
    for one, other in zip(found if isinstance(found, tuple) else (found,), many, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=1e-6)


BIG = N.astype(np.int64)
WHOLE = {
    "squares": (lambda n: n.astype(jnp.int32) ** 2 - 7, BIG**2 - 7),
    "products": (lambda n: n[:, 0].astype(jnp.int32) * n[:, 1] * n[:, 2], BIG.prod(axis=1)),
    "sums": (lambda n: n.sum(axis=1, dtype=jnp.int32), BIG.sum(axis=1)),
    "a matrix": (
        lambda n: n.astype(jnp.int64) @ jnp.array([[1], [-1000], [3]]),
        BIG @ [[1], [-1000], [3]],
    ),
    "what is 0": (lambda n: n.astype(jnp.int16) - n, BIG * 0),
}


@pytest.mark.parametrize(("fn", "right"), WHOLE.values(), ids=WHOLE)
def test_integers_are_exact(fn, right):
    assert run(lambda: on_h(fn, N)).tolist() == right.tolist()


@pytest.mark.parametrize(
    ("fn", "right"),
    [
        (lambda n: n * 0.5, BIG * 0.5),
        (lambda n: n + 0.25, BIG + 0.25),
        (lambda n: n.mean(axis=1), BIG.mean(axis=1)),
        (lambda n: n * jnp.arange(2.0)[:, None], BIG * np.arange(2.0)[:, None]),
    ],
)
def test_integers_with_floats_are_floats(fn, right):
    np.testing.assert_allclose(run(lambda: on_h(fn, N)), right, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("end", [0.1, 0.3, 1.1])
def test_numbers_at_the_ends_of_ranges_of_narrow_types(dtype, end):
    x = np.array([[end], [0.0]], dtype)

    def program():
        made = mp.device("H")(lambda x: x * 2)(mp.put("C", x, range=(0, end)))
        return mp.reveal(made, to="C")

    np.testing.assert_allclose(run(program), x * 2, atol=2e-3)


def test_large_integers_beside_floats_are_computed_as_integers():
    a, b = np.array([2**60 + 97, 2**60 + 194]), np.array([2**60, 2**60])

    def program():
        x = mp.put("C", np.ones((1, 2)), range=(0, 2))
        plain = [mp.put("V", each, range=(2**60, 2**60 + 200)) for each in (a, b)]
        return mp.reveal(mp.device("H")(lambda x, a, b: x * (a - b))(x, *plain), to="C")

    np.testing.assert_allclose(run(program), [[97, 194]], atol=1e-2)


def test_a_plain_operand_with_a_number_for_each_row_has_more_noise():
    n, rows = N.astype(np.int16), np.array([[5], [-7]])

    def program():
        there = mp.put("V", rows, range=(-9, 9))
        made = mp.device("H")(lambda n, w: n.astype("int64") * w * w * w)(mp.put("C", n), there)
        return mp.reveal(made, to="C")

    assert run(program).tolist() == (N.astype(int) * rows**3).tolist()


@pytest.mark.parametrize("mode", ["launch", "standard"])
def test_both_modes_give_the_same(mode):
    made = run(lambda: on_h(lambda x, w: x @ w, X, W), mode=mode)
    np.testing.assert_allclose(made, X @ W, atol=1e-6)


def test_rows_beyond_the_slots_go_to_further_ciphertexts():
    x = np.linspace(-1, 1, 9000).reshape(-1, 1)

    def program(x):
        return mp.reveal(mp.device("H")(lambda x: x * x)(mp.put("C", x, range=(-1, 1))), to="C")

    with mp.Simulator(cluster()) as sim:
        with mp.with_ctx(sim):
            there = mp.put("C", x)
        found = mp.fetch(sim, mp.evaluate(sim, program, there))
    np.testing.assert_allclose(found, x * x, atol=1e-6)


def test_who_encrypts_need_be_neither_member():
    def program():
        x, y = mp.put("L", X, range=(-1, 1)), mp.put("C", X, range=(-1, 1))
        return mp.reveal(mp.device("H")(lambda x, y: x * y + 1)(x, y), to="L")

    np.testing.assert_allclose(run(program), X * X + 1, atol=1e-6)


def test_a_function_of_what_another_one_made():
    def program():
        x = mp.seal(mp.put("C", X, range=(-1, 1)), to="H")
        y = mp.device("H")(lambda x: x * x)(x)
        return mp.reveal(mp.device("H")(lambda x, y: y * x)(x, y), to="C")

    np.testing.assert_allclose(run(program, config={"limit": 10, "levels": 2}), X**3, atol=1e-6)


def test_arguments_may_be_nests_and_literals_and_by_name():
    def program():
        x, w = mp.put("C", X, range=(-1, 1)), mp.put("V", W, range=(-2, 2))
        fn = lambda nest, factor: nest["x"] @ nest["w"] * factor  # noqa: E731
        return mp.reveal(mp.device("H")(fn)({"x": x, "w": w}, factor=3.0), to="C")

    np.testing.assert_allclose(run(program), X @ W * 3, atol=1e-6)


def test_arrays_of_the_function_are_its_own():
    made = run(lambda: on_h(lambda x: x @ W + jnp.asarray(W[:1]), X))
    np.testing.assert_allclose(made, X @ W + W[:1], atol=1e-6)


def test_an_operand_of_the_evaluator_is_not_encrypted():
    def program():
        x, w = mp.put("C", X, range=(-1, 1)), mp.put("V", W, range=(-2, 2))
        return mp.device("H")(lambda x, w: x @ w)(x, w)

    made = mp.compile(program, cluster_spec=cluster()).program
    assert [op.opcode for op in made.graph.walk()].count("ckks.encrypt") == 1


def test_keys_are_made_once_and_sent_once():
    def program():
        x = mp.put("C", X, range=(-1, 1))
        return [mp.reveal(mp.device("H")(lambda x: x + 1)(x), to="C") for _ in range(3)]

    made = mp.compile(program, cluster_spec=cluster()).program
    assert [op.opcode for op in made.graph.walk()].count("he.keygen") == 1
    moved = [op for op in made.graph.ops if op.opcode == "simp.shuffle_static"]
    assert sum("relin_key" in str(op.outputs[0].type) for op in moved) == 1


def test_the_type_tells_range_and_error():
    def program():
        return mp.device("H")(lambda x: x * x)(mp.put("C", X, range=(-1, 1)))

    (made,) = mp.compile(program, cluster_spec=cluster()).program.graph.outputs
    kind = made.type
    assert (kind.base.low, kind.base.high, kind.base.left) == (0, 1, 0)
    assert 0 < kind.base.error < 1e-5


# -- what is refused


def refused(fn, *operands, config=(), **named):
    def program():
        return on_h(fn, *operands, **named)

    with pytest.raises(errors.MPLangError) as told:
        assert mp.compile(program, cluster_spec=cluster(**dict(config))).program
    assert "test_functions.py:" in str(told.value)
    return str(told.value)


REFUSED = {
    "compares": (lambda x, w: x > 0.5, "no comparisons"),
    "argmax": (lambda x, w: jnp.argmax(x, axis=1), "no comparisons"),
    "exp": (lambda x, w: jnp.exp(x), "no such function"),
    "a logistic": (lambda x, w: 1 / (1 + jnp.exp(-x)), "no such function"),
    "a quotient of ciphertexts": (lambda x, w: x / x, "cannot be divided by"),
    "a divisor that may be 0": (lambda x, w: x / w[0, 0], "may be 0"),
    "a sum over rows": (lambda x, w: x.sum(axis=0), "adds over rows"),
    "rows by rows": (lambda x, w: x @ x.T, "rows by rows"),
    "some rows": (lambda x, w: x[:2], "some of the rows"),
    "other rows": (lambda x, w: x[::-1], "order of rows"),
    "rows behind rows": (lambda x, w: jnp.concatenate([x, x]), "rows behind rows"),
    "rounding": (lambda x, w: x.astype(jnp.int32), "not rounded"),
    "what is too large": (lambda x, w: x**60 * 1e9, "no modulus of 881 bits has room"),
    "what is too deep": (lambda x, w: x ** (2**20), "no modulus of 881 bits has room"),
    "a result of the evaluator alone": (lambda x, w: (x, w + 1), "does not depend on"),
    "what is larger than a float": (lambda x, w: (x * 1e300) ** 4, "do not fit in f64"),
}


@pytest.mark.parametrize(("fn", "why"), REFUSED.values(), ids=REFUSED)
def test_what_ciphertexts_cannot_do_is_refused(fn, why):
    assert re.search(why, refused(fn, X, W))


def test_integers_that_may_wrap_are_refused():
    assert "do not fit in i8" in refused(lambda n: n * n, N)
    wide = mp.MPType(mp.TensorType("i64", (2, 3)), mp.Mask.of(0))
    with pytest.raises(errors.TraceError, match="do not fit in i64"):
        assert mp.compile(
            lambda x: mp.device("H")(lambda x: x * x)(x), wide, cluster_spec=cluster()
        ).program


def test_devices_that_could_are_named():
    spec = cluster()
    spu = {"kind": "SPU", "members": [0, 1]}
    wide = mp.ClusterSpec(spec.nodes, {**spec.devices, "SP0": spu})

    def program():
        return on_h(lambda x: x > 0, X)

    with pytest.raises(errors.TraceError, match="SP0 could, on shares"):
        assert mp.compile(program, cluster_spec=wide).program


def program_of(fn, config=()):
    with pytest.raises(errors.MPLangError) as told:
        assert mp.compile(fn, cluster_spec=cluster(**dict(config))).program
    return str(told.value)


def test_floats_without_a_range_are_refused():
    x = mp.MPType(mp.TensorType("f64", (4, 3)), mp.Mask.of(0))

    def program(x):
        return mp.device("H")(lambda x: x + 1)(x)

    with pytest.raises(errors.TraceError, match="range="):
        assert mp.compile(program, x, cluster_spec=cluster()).program

    def mended(x):
        return program(mp.put("C", x, range=(-1, 1)))

    assert mp.compile(mended, x, cluster_spec=cluster()).program
    assert mp.compile(program, x, cluster_spec=cluster(limit=3)).program


def test_what_is_sealed_for_no_function_is_refused():
    def program():
        return mp.seal(mp.put("C", X, range=(-1, 1)), to="H")

    assert "say in the configuration of H" in program_of(program)
    np.testing.assert_allclose(run(lambda: on_h(lambda x: x + 1, X)), X + 1, atol=1e-5)
    assert mp.compile(program, cluster_spec=cluster(limit=3)).program


def test_more_products_than_levels_are_refused():
    def program():
        x = mp.seal(mp.put("C", X, range=(-1, 1)), to="H")
        return mp.device("H")(lambda x: x**4)(x)

    assert "one product more" in program_of(program, {"limit": 10, "levels": 1})


def test_a_tensor_without_rows_is_refused():
    assert "by rows" in program_of(lambda: mp.device("H")(lambda x: x + 1)(mp.put("C", 3)))


def test_a_table_is_refused():
    def program():
        t = mp.dataset("C", "people", type={"id": "int64"})
        return mp.device("H")(lambda t: t)(t)

    assert "takes tensors" in program_of(program)


def test_nothing_to_encrypt_is_refused():
    told = program_of(lambda: mp.device("H")(lambda w: w + 1)(mp.put("V", W)))
    assert "nothing to encrypt" in told


def test_what_is_under_two_keys_is_refused():
    spec = cluster()
    other = {"kind": "HE", "members": [1, 2], "config": {"holder": 2}}
    wide = mp.ClusterSpec(spec.nodes, {**spec.devices, "H2": other})

    def program():
        x, y = (mp.put(where, X, range=(-1, 1)) for where in "CL")
        made = mp.device("H")(lambda x: x * 2)(x)
        return mp.device("H2")(lambda a, b: a + b)(made, y)

    with pytest.raises(errors.MPLangError, match="need the same key"):
        assert mp.compile(program, cluster_spec=wide).program


@pytest.mark.parametrize("config", [{"holder": 2}, {"holder": "clinic"}, {"limit": -1}, {"x": 1}])
def test_a_wrong_configuration_is_refused(config):
    with pytest.raises(errors.ConfigError, match="holder|limit|x"):
        cluster(**config)


# -- what only parties can see


def test_a_number_beyond_its_range_is_an_error_at_its_party():
    def program(w):
        x, w = mp.put("C", X, range=(-1, 1)), mp.put("V", w, range=(-2, 2))
        return mp.reveal(mp.device("H")(lambda x, w: x @ w)(x, w), to="C")

    with mp.Simulator(cluster()) as sim:
        with mp.with_ctx(sim):
            w = mp.put("V", W * 2)
        with pytest.raises(errors.PartyError, match="range"):
            mp.fetch(sim, mp.evaluate(sim, program, w))


# -- the simulator's check of numbers


def checked(fn, value):
    """Run a function of what the clinic has, where what the check finds ends the run."""
    with mp.Simulator(cluster(), check_numbers="raise") as sim:
        return mp.fetch(sim, mp.evaluate(sim, lambda: on_h(fn, value)))


@pytest.mark.parametrize("operand", [X, N.astype(np.int16)], ids=["ckks", "bfv"])
def test_a_fault_of_the_arithmetic_is_found(monkeypatch, operand):
    from mplang_he.library.columns import SealColumns

    monkeypatch.setattr(SealColumns, "add", lambda self, x, y: y)
    with pytest.raises(errors.PartyError, match="a number is off by"):
        checked(lambda x: x + x[:, ::-1], operand)


def plant(monkeypatch, parameters):
    """Plant parameters without room, and bounds that say that all fits and nothing is off."""
    from mplang_he import bounds, functions, ops

    def careless(self, *args, **kwargs):
        before(self, *args, **kwargs)
        self.fresh = self.encoding = self.rounding = self.switching = 0.0

    before = bounds.ColumnBounds.__init__
    monkeypatch.setattr(bounds.ColumnBounds, "__init__", careless)
    monkeypatch.setattr(bounds.CkksBounds, "fitted", lambda self, x: x)
    monkeypatch.setattr(bounds.BfvBounds, "fitted", lambda self, x: x)
    monkeypatch.setattr(bounds, "budget_of", lambda noise: 5)
    monkeypatch.setattr(functions, "parameters_for", lambda *_: parameters)
    monkeypatch.setattr(ops, "_check_modulus", lambda made: None)


NO_ROOM = {
    "a scale of 2^30": (Parameters("ckks", 8192, (60, 30, 30, 60), 30), X),
    "a wrap at the last prime": (Parameters("ckks", 8192, (44, 40, 40, 44), 40), X * 0 + 1.0),
    "a wrap at the plain modulus": (Parameters("bfv", 8192, BFV_PRIMES[8192], 20), N),
    "no noise budget": (Parameters("bfv", 4096, BFV_PRIMES[4096], 30), N),
}


@pytest.mark.parametrize(("parameters", "value"), NO_ROOM.values(), ids=NO_ROOM)
def test_parameters_without_room_are_found(monkeypatch, parameters, value):
    plant(monkeypatch, parameters)
    cube, square = lambda n: n.astype(jnp.int32) ** 3, lambda x: (x * 30.0) ** 2
    with pytest.raises(errors.PartyError, match="off by|beyond its type"):
        checked(cube if value is N else square, value)
