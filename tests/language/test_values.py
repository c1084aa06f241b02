"""What goes in comes out: nests, devices, operators, and numbers with all their bits."""

from __future__ import annotations

import collections
import dataclasses
import enum
from typing import Any

import numpy as np
import optree
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

CLUSTER = mp.ClusterSpec.simple(2)
HERE = r"test_values\.py:\d+"


def run(sim, program, mode, *args, **kwargs):
    return mp.fetch(sim, mp.evaluate(sim, program, *args, mode=mode, **kwargs))


def trace(program, *args, **kwargs):
    return mp.trace(mp.TraceContext(CLUSTER), program, *args, **kwargs)


# -- nests

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Model:
    weights: Any
    bias: Any = None
    activation: str = dataclasses.field(default="none", metadata={"static": True})


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: Any
    y: Any

    def __post_init__(self):
        if self.x is None:
            raise ValueError("a point has an x")

    @property
    def swapped(self):
        return Point(self.y, self.x)


@dataclasses.dataclass
class Derived(Model):
    extra: Any = 0


@pytest.mark.parametrize(
    "nest",
    [
        lambda x: {"a": x, "b": [x, (x, None)], "c": {}},
        lambda x: Pair(x, Pair(x, ())),
        lambda x: Point(x, [Point(x, 1), None]),
        lambda x: Model(x, {"b": x}, "relu"),
        lambda x: Derived(x, x, "tanh", (x,)),
        lambda x: collections.OrderedDict(z=x, a=x),
        lambda x: [x, x],
        lambda x: (x, 1, 2.5, True),
    ],
)
def test_results_keep_their_nest(simulate, mode, nest):
    found = run(simulate(2), nest, mode, 7)
    expected = optree.tree_map(lambda leaf: [leaf] * 2, nest(7), namespace="mplang")
    assert type(found) is type(nest(7))
    assert repr(found).replace("array(", "").replace(")", "") == repr(expected).replace(")", "")


def test_dataclasses_are_arguments_and_results(simulate, mode):
    def step(model, point, *, rate):
        assert isinstance(model, Model)
        assert isinstance(point, Point)
        assert model.activation == "relu"
        moved = mp.invoke(toy.add, model.weights, point.swapped.x)
        return Model(moved, rate, model.activation), point.swapped

    model, point = run(
        simulate(2), step, mode, Model([1, 2], activation="relu"), Point(3, [10, 20]), rate=0.5
    )
    np.testing.assert_array_equal(model.weights, [[11, 22]] * 2)
    assert (model.bias, model.activation) == ([0.5, 0.5], "relu")
    assert point.y == [3, 3]


def test_dataclasses_through_functions_and_control_flow(simulate, mode):
    @mp.builtin_function
    def swap(point):
        return point.swapped

    def program(flag, n):
        one = mp.constant(1)
        point = mp.uniform_cond(flag, swap, lambda p: p, Point(mp.constant(0), mp.constant(5)))
        return mp.while_loop(
            lambda p: mp.invoke(toy.less, p.x, n),
            lambda p: Point(mp.invoke(toy.add, p.x, one), mp.invoke(toy.scale, p.y)),
            point,
        )

    sim = simulate(2)
    assert run(sim, program, mode, False, 3) == Point([3, 3], [40, 40])
    assert run(sim, program, mode, True, 7) == Point([7, 7], [0, 0])


def test_branches_that_differ_in_a_field_name_it():
    here, there = Point(1, 2), Point(1, 2.5)
    with pytest.raises(TraceError, match=HERE + r".*differ in result\.y"):
        trace(lambda: mp.uniform_cond(True, lambda: _lift(here), lambda: _lift(there)))


def _lift(point):
    return Point(mp.constant(point.x), mp.constant(point.y))


@pytest.mark.needs("jax")
def test_dataclasses_go_to_a_device_and_come_from_it(simulate, mode):
    def program(point):
        here = mp.put("P1", point)
        return mp.device("P1")(lambda p: Model(p.x * 2, [p.swapped], "id"))(here)

    result = mp.evaluate(simulate(2), program, Point(3, 4), mode=mode)
    assert [leaf.device.name for leaf in (result.weights, result.bias[0].x)] == ["P1", "P1"]
    sim = result.weights.ctx
    assert mp.fetch(sim, result) == Model(6, [Point(4, 3)], "id")


def test_a_static_field_is_compiled_in_and_told_apart(simulate):
    traced = []

    def program(model):
        traced.append(model.activation)
        return mp.invoke(toy.scale, model.weights, by=len(model.activation))

    sim = simulate(2)
    compiled = mp.compile(program, cluster_spec=sim.cluster_spec)
    calls = [Model(5, activation=a) for a in ("ab", "abc", "ab")]
    found = [mp.fetch(sim, mp.evaluate(sim, compiled, model))[0] for model in calls]
    assert found == [10, 15, 10]
    assert traced == ["ab", "abc"]


def test_what_is_no_value_and_no_nest_is_compiled_in():
    class Colour(enum.Enum):
        RED = 1

    def program(x, colour, name):
        assert (colour, name) == (Colour.RED, "n")
        return x

    trace(program, 1, Colour.RED, "n")


def test_one_value_twice_an_input_and_literals(simulate, mode):
    def program(x):
        y = mp.invoke(toy.scale, x)
        return {
            "twice": (y, y),
            "input": x,
            "again": [x],
            "literals": (1, 2.5, np.float32(3), True),
        }

    found = run(simulate(2), program, mode, 4)
    assert found["twice"] == ([8, 8], [8, 8])
    assert (found["input"], found["again"]) == ([4, 4], [[4, 4]])
    assert [leaf[0].dtype.name for leaf in found["literals"]] == [
        "int64",
        "float64",
        "float32",
        "bool",
    ]


def test_an_input_that_is_returned_is_the_same_value_at_the_same_parties(simulate, mode):
    sim = simulate(3)
    x = mp.evaluate(sim, lambda: mp.simp.pcall_static((0, 2), toy.rank))
    y = mp.evaluate(sim, lambda v: v, x, mode=mode)
    assert (y.type, mp.fetch(sim, y)) == (x.type, [0, None, 2])


def test_devices_survive_evaluate(simulate, mode):
    def program(flag):
        here, there = mp.put("P0", 1), mp.put("P1", 2)
        carried = mp.builtin_function(lambda v: Point(v, mp.constant(9)))(there)
        chosen = mp.uniform_cond(flag, lambda: here, lambda: mp.put("P0", 5))
        return {"here": here, "again": [here], "point": carried, "chosen": chosen}

    sim = simulate(2)
    first = mp.evaluate(sim, program, True, mode=mode)
    second = mp.evaluate(sim, lambda nest: nest, first, mode=mode)
    for found in (first, second):
        names = optree.tree_map(
            lambda v: getattr(v.device, "name", None), found, namespace="mplang"
        )
        assert names == {"here": "P0", "again": ["P0"], "point": Point("P1", None), "chosen": "P0"}
        assert mp.fetch(sim, found) == {
            "here": 1,
            "again": [1],
            "point": Point(2, [9, 9]),
            "chosen": 1,
        }


# -- operators

needs_jax = pytest.mark.needs("jax")
X = np.array([3, -1, 4, 1])
Y = np.array([2, 7, -1, 8])

OPERATORS = {
    "add": lambda x, y: (x + y, x + 1, 1 + x, x + Y),
    "sub": lambda x, y: (x - y, 1 - x, Y - x),
    "mul": lambda x, y: (x * y, 2 * x),
    "truediv": lambda x, y: (x / y, 1 / x),
    "floordiv": lambda x, y: (x // y, 7 // x),
    "mod": lambda x, y: (x % y, 7 % x),
    "divmod": lambda x, y: (divmod(x, y), divmod(7, x)),
    "pow": lambda x, y: (x**2,),
    "matmul": lambda x, y: (x @ y, Y @ x, x @ Y),
    "bits": lambda x, y: (x & y, x | 1, x ^ y, ~x, x << 2, x >> 1),
    "compare": lambda x, y: (x < y, x <= 3, x > y, Y >= x, x == y, x != y, Y == x),  # noqa: SIM300
    "unary": lambda x, y: (-x, +x, abs(x)),
    "logic": lambda x, y: ((x > 1) & (y > 1), ~(x > 1)),
    "index": lambda x, y: (x[0], x[-1], x[1:3], x[::-1], x[:, None], x[...], x[None, 2]),
    "fancy": lambda x, y: (x[[0, 2]], x[np.array([1, 1])], x[np.array([True, False, True, False])]),
    "dynamic": lambda x, y: (x[y[0]], x[y[:1]]),
    "sequence": lambda x, y: (list(x), sum(x), len(x)),
    "scalars": lambda x, y: (x * np.float64(0.1), np.float64(2) * x, x + np.int64(2**40)),
}


@needs_jax
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("place", ["parties", "P1"])
def test_operators_are_those_of_numpy(simulate, name, place):
    def program(x, y):
        if place != "parties":
            x, y = mp.put(place, x), mp.put(place, y)
        return OPERATORS[name](x, y)

    sim = simulate(2)
    result = mp.evaluate(sim, program, X, Y)
    expected = OPERATORS[name](X, Y)
    leaves, spec = optree.tree_flatten(expected)
    assert optree.tree_structure(result) == spec
    for value, want in zip(optree.tree_leaves(result), leaves, strict=True):
        data = mp.fetch(sim, value)
        for found in data if value.device is None else [data]:
            assert found.dtype == np.asarray(want).dtype
            np.testing.assert_allclose(found, want)


@needs_jax
def test_operators_run_at_once_without_a_context(simulate):
    sim = simulate(2)
    x = mp.evaluate(sim, lambda: mp.put("P1", X))
    assert mp.fetch(sim, (x[1:] * 2)[0]) == -2


@needs_jax
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda x: x[4], "index 4 is out of bounds"),
        (lambda x: x[0, 0], "too many indices"),
        (lambda x: x["a"], "an index of"),
        (lambda x: x[x[1] :], "a slice has ends that are known while tracing"),
        (lambda x: len(x[0]), "is a scalar"),
        (lambda x: list(x[0]), "is a scalar"),
        (lambda x: x + "a", "JAX cannot trace add"),
        (lambda x: x @ np.zeros(3), "JAX cannot trace matmul"),
        (lambda x: 1 in x, "the elements of"),
        (lambda x: np.add(1, x), "needs its data"),
    ],
)
def test_operators_refuse_with_the_line(use, message):
    with pytest.raises(TraceError, match=f"{HERE}.*{message}"):
        trace(use, X)


# -- masks that are known at run time only


def test_pcall_dynamic_with_a_missing_input_gives_no_value_and_no_error(simulate, mode):
    def program():
        x = mp.simp.pcall_dynamic(toy.scale, mp.constant(1, parties=0))
        y = mp.simp.pcall_dynamic(toy.scale, mp.constant(2, parties=(0, 1)))
        both = mp.simp.pcall_dynamic(toy.add, x, y)
        nobody = mp.simp.pcall_dynamic(toy.add, both, mp.constant(1, parties=2))
        quotient = mp.simp.pcall_dynamic(toy.divide, nobody, nobody)
        return x, y, both, nobody, quotient

    found = mp.evaluate(simulate(3), program, mode=mode)
    assert [leaf.pmask for leaf in optree.tree_leaves(found)] == [None] * 6
    x, y, both, nobody, quotient = mp.fetch(found[0].ctx, found)
    assert (x, y, both) == ([2, None, None], [4, 4, None], [6, None, None])
    assert (nobody, quotient) == ([None] * 3, ([None] * 3, [None] * 3))


def test_an_unknown_mask_is_checked_where_it_matters(simulate, mode):
    some = lambda: mp.simp.pcall_dynamic(toy.scale, mp.constant(1, parties=0))  # noqa: E731
    checked = {
        "party 1 is to run a pcall, but does not hold operand 0": lambda: mp.simp.pcall_static(
            (0, 1), toy.scale, some()
        ),
        "party 1 is to send a value that it does not hold": lambda: mp.pshfl_s(some(), 0, 1),
        "their masks overlap": lambda: mp.pconv([some(), some()]),
    }
    sim = simulate(2)
    for message, program in checked.items():
        with pytest.raises(PartyError, match=message) as error:
            mp.evaluate(sim, program, mode=mode)
        assert error.value.location.startswith("test_values.py:")
    assert run(sim, lambda: mp.pshfl_s(some(), 1, 0), mode) == [None, 2]


# -- 64 bits stay 64 bits

BIG = 2**40 + 1
ARRAY, SCALAR, FLOATS = np.array([BIG, 1]), np.array(BIG), np.array([0.1, 0.2])


@pytest.mark.parametrize(
    "literal", [BIG, -(2**63), 2**63 - 1, 2**64 - 1, 0.1, 1e300, 1j, [BIG, 1], [0.1]]
)
def test_literals_keep_all_their_bits(simulate, mode, literal):
    expected = np.asarray(literal)
    for found in run(simulate(2), lambda x: (x, mp.constant(literal)), mode, literal):
        assert found[1].dtype == expected.dtype
        np.testing.assert_array_equal(found[1], expected)


@pytest.mark.parametrize("literal", [2**64, -(2**63) - 1, np.longdouble(1)])
def test_literals_that_no_tensor_holds_are_refused(literal):
    with pytest.raises(TraceError, match=HERE + ": (it is not a|a) literal"):
        trace(lambda: mp.constant(literal))
    with pytest.raises(TraceError, match=HERE + ": (it is not a|a) literal"):
        trace(lambda x: x, literal)


def _jitted(fn):
    import jax

    return jax.jit(fn)


def _scan_of_jitted(v):
    import jax

    plus = jax.jit(lambda s: s + ARRAY)
    return jax.lax.scan(lambda s, _: (s + 1, plus(v)), v, None, length=2)[1][-1]


def _while_of_jitted(v):
    import jax

    big = jax.jit(lambda s: s + (ARRAY > 2**35).astype(s.dtype))
    return jax.lax.while_loop(lambda s: (s < 10).any(), lambda s: big(s) + 1, v)


def _cond_of_jitted(v):
    import jax

    plus = jax.jit(lambda s: s + ARRAY)
    return jax.lax.cond(v[0] > 0, plus, lambda s: s - ARRAY, v)


def _remat_of_jitted(v):
    import jax

    return jax.checkpoint(jax.jit(lambda s: s + ARRAY))(v)


NARROWED = {
    # name: (a function of an i32[2] or f32[2], what it gives)
    "array": (lambda v: v + ARRAY, lambda v: v + ARRAY),
    "scalar of no dimension": (lambda v: v + SCALAR, lambda v: v + SCALAR),
    "NumPy scalar": (lambda v: v * np.float64(0.1), lambda v: v * np.float64(0.1)),
    "NumPy function": (lambda v: v * np.sqrt(2), lambda v: v * np.sqrt(2)),
    "NumPy integer": (lambda v: v + np.int64(BIG), lambda v: v + np.int64(BIG)),
    "returned": (lambda v: np.int64(BIG), lambda v: np.int64(BIG)),
    "returned array": (lambda v: (ARRAY, FLOATS)[0], lambda v: ARRAY),
    "jitted": (lambda v: _jitted(lambda s: s + ARRAY)(v), lambda v: v + ARRAY),
    "jitted scalar": (lambda v: _jitted(lambda s: s + SCALAR)(v), lambda v: v + SCALAR),
    "scan": (_scan_of_jitted, lambda v: v + ARRAY),
    "while": (_while_of_jitted, lambda v: np.int32([17, 10])),
    "cond": (_cond_of_jitted, lambda v: v + ARRAY),
    "remat": (_remat_of_jitted, lambda v: v + ARRAY),
    "asked for": (lambda v: v.astype("float64") + 0.1, lambda v: v.astype("float64") + 0.1),
}


@needs_jax
@pytest.mark.parametrize("name", NARROWED)
def test_64_bits_in_functions_stay_64_bits(simulate, name):
    fn, expected = NARROWED[name]
    x = np.array([1, 2], np.float32 if "NumPy f" in name or "NumPy s" in name else np.int32)
    want = np.asarray(expected(x))
    found = run(simulate(2), lambda v: mp.invoke(fn, v), "standard", x)[1]
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)


@needs_jax
def test_what_loops_close_over_is_no_part_of_the_code():
    from mplang_core.ir.compressed_text import unpack

    for fn in (_scan_of_jitted, _cond_of_jitted, _remat_of_jitted):
        tfn = trace(lambda v, fn=fn: mp.invoke(fn, v), np.int32([1, 2]))
        code = next(op.attrs["code"] for op in tfn.program.graph.walk() if op.opcode == "jax.run")
        assert str(BIG) not in unpack(code)


@needs_jax
@pytest.mark.parametrize(
    "bad", [lambda v: v + BIG, lambda v: mp.invoke(lambda s: s + BIG, v), lambda v: BIG * v]
)
def test_a_python_int_beyond_32_bits_beside_32_bits_is_refused(bad):
    with pytest.raises(TraceError, match=HERE + r".*too large for that; write np\.int64"):
        trace(bad, np.int32([1, 2]))


@needs_jax
@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda v: v + 1, "f32"),
        (lambda v: v * 0.1, "f32"),
        (lambda v: v.mean() + np.pi, "f32"),
        (lambda v: v / v.size, "f32"),
        (lambda v: v * np.float32(0.1), "f32"),
    ],
)
def test_32_bits_stay_32_bits(fn, expected):
    tfn = trace(lambda v: mp.invoke(fn, v), np.float32([1, 2]))
    assert tfn.out_vars[0].type.base.dtype.value == expected
