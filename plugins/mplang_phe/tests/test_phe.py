"""Encrypted sums and products are exact, or refused before anything runs, or an error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mplang_phe import (
    PheCiphertextType,
    PhePrivateKeyType,
    PhePublicKeyType,
    add,
    compute,
    decrypt,
    encrypt,
    keygen,
    matmul_plain,
    multiply_plain,
    segment_sum,
    sub,
    sum as phe_sum,
)
from mplang_phe.ops import PLAIN_BITS, plain_bits
from phe_keys import BITS, decrypted, encrypted, key_pair

import mplang_core as mp
from mplang_core import TensorType
from mplang_core.errors import PartyError, TraceError
from mplang_core.ext import OPTIONAL


def run(program, parties=2):
    with mp.Simulator(mp.ClusterSpec.simple(parties)) as sim:
        return mp.fetch(sim, mp.evaluate(sim, program))


def test_a_score_of_what_the_other_one_cannot_read():
    """A clinic's rows, a vendor's weights: fixed point on both sides, right to the grid."""
    rng = np.random.default_rng(1)
    x, w, b = rng.uniform(-4, 4, (3, 5)), rng.uniform(-1, 1, (5, 2)), rng.uniform(-1, 1, (3, 2))

    def program():
        private, public = mp.device("P0")(keygen)(bits=BITS)
        rows = mp.put("P1", mp.device("P0")(encrypt)(mp.put("P0", x), public, limit=4.0, scale=30))
        there = mp.put("P1", public)
        score = mp.device("P1")(matmul_plain)(rows, mp.put("P1", w), there, limit=1.0, scale=30)
        bias = mp.device("P1")(encrypt)(mp.put("P1", b), there, limit=1.0, scale=60)
        score = mp.device("P1")(add)(score, bias, there)
        return mp.device("P0")(decrypt)(mp.put("P0", score), private)

    np.testing.assert_allclose(run(program), x @ w + b, atol=5 * 5 * 2**-30)


operands = st.one_of(
    st.sampled_from([0, 1, -1, 2**PLAIN_BITS - 1, 1 - 2**PLAIN_BITS]),
    st.integers(1 - 2**PLAIN_BITS, 2**PLAIN_BITS - 1),
)


@settings(max_examples=25)
@given(st.lists(st.tuples(operands, operands, operands), min_size=1, max_size=4), st.data())
def test_any_numbers_are_added_and_multiplied_right(rows, data):
    """Integers at the ends of their ranges, of any depth of sums and products."""
    x, y, plain = (np.array(each, object) for each in zip(*rows, strict=True))
    _, public = key_pair()
    key = [public.modulus, public.base]
    a, b = (encrypted(each.astype(np.int64)).data for each in (x, y))
    numbers = plain.astype("<i8").tobytes()
    (total,) = compute.run("add", {}, [*key, a, b])
    (less,) = compute.run("sub", {}, [*key, total, b])
    (product,) = compute.run("multiply_plain", {}, [*key, total, numbers])
    (once,) = compute.run("sum", {"columns": 1}, [*key, product])
    assert (decrypted(less, x.shape) == x).all()
    assert decrypted(once, ()) == sum((x + y) * plain)
    segments = data.draw(st.lists(st.integers(0, 2), min_size=len(x), max_size=len(x)))
    places = np.array(segments, "<i8").tobytes()
    (parts,) = compute.run("segment_sum", {"columns": 1, "count": 3}, [*key, product, places])
    right = [sum(n for n, s in zip((x + y) * plain, segments, strict=True) if s == i)
             for i in range(3)]  # fmt: skip
    assert decrypted(parts, (3,)).tolist() == right


def test_the_same_numbers_are_other_ciphertexts_each_time():
    """Who has the operands learns nothing of a result by which ciphertext it is."""
    _, public = key_pair()
    key = [public.modulus, public.base]
    x = encrypted([0, 7])
    ways = {
        "add": [x.data, x.data], "sub": [x.data, x.data],
        "multiply_plain": [x.data, bytes(16)], "sum": [x.data],
        "segment_sum": [x.data, bytes(16)], "matmul_plain": [x.data, bytes(16)],
    }  # fmt: skip
    sizes = {
        "sum": {"columns": 1},
        "segment_sum": {"columns": 1, "count": 1},
        "matmul_plain": {"rows": 1, "inner": 2, "columns": 1},
    }
    for method, buffers in ways.items():
        numbers = sizes.get(method, {})
        first, second = (compute.run(method, numbers, [*key, *buffers])[0] for _ in range(2))
        assert first != second, method


KIND = PheCiphertextType(TensorType("i64", (2,)), BITS, 40, 0)
KEY = PhePublicKeyType(BITS)


@pytest.mark.parametrize(
    ("made", "bits", "scale"),
    [
        (lambda: encrypt.__wrapped__(TensorType("i8", (2,)), KEY), 8, 0),
        (lambda: encrypt.__wrapped__(TensorType("u16", (2,)), KEY), 16, 0),
        (lambda: encrypt.__wrapped__(TensorType("bool", (2,)), KEY), 1, 0),
        (lambda: encrypt.__wrapped__(TensorType("f32", (2,)), KEY, limit=1.0, scale=20), 21, 20),
        (lambda: add.__wrapped__(KIND, KIND, KEY), 41, 0),
        (lambda: phe_sum.__wrapped__(KIND, KEY), 41, 0),
        (
            lambda: multiply_plain.__wrapped__(KIND, TensorType("f64"), KEY, limit=3.0, scale=10),
            52,
            10,
        ),
    ],
)
def test_types_say_how_large_numbers_are(made, bits, scale):
    kind = made()
    assert (kind.bits, kind.scale) == (bits, scale)


@pytest.mark.parametrize(
    ("kind", "limit", "scale", "why"),
    [
        ("i64", OPTIONAL, 0, "62 bits at most"),
        ("u64", OPTIONAL, 0, "62 bits at most"),
        ("f32", OPTIONAL, 20, "in fixed point"),
        ("f64", 1.0, 0, "in fixed point"),
        ("f64", 1e30, 20, "62 bits at most"),
        ("f64", math.inf, 20, "limit is how large"),
        ("i32", OPTIONAL, 3, "no fraction, so"),
        ("i32", -5, 0, "limit is how large"),
        ("i32", True, 0, "limit is how large"),
        ("f64", 1.0, -1, "scale is a number of bits"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(kind, limit, scale, why):
    with pytest.raises((TypeError, ValueError), match=why):
        plain_bits(TensorType(kind), limit, scale)


def of(fn):
    """Return a program of one party that has a key, and two numbers encrypted under it."""

    def program():
        private, public = mp.device("P0")(keygen)(bits=BITS)
        x = mp.device("P0")(encrypt)(mp.put("P0", [3, -4]), public, limit=100)
        return fn(x, private, public)

    return program


def refused(fn, why):
    with pytest.raises(TraceError, match=why):
        assert mp.compile(of(fn), cluster_spec=mp.ClusterSpec.simple(1)).program


def test_what_may_not_fit_in_64_bits_is_refused_with_the_line():
    def deep(x, private, public):
        for _ in range(9):
            x = mp.device("P0")(multiply_plain)(x, mp.put("P0", 99), public, limit=100)
        return mp.device("P0")(decrypt)(x, private)

    refused(deep, r"test_phe.py:\d+: phe.decrypt: integers of 70 bits do not fit in i64")


def test_a_key_that_numbers_outgrow_is_refused_with_the_line():
    def deeper(x, private, public):
        for _ in range(40):
            y = mp.put("P0", 2**60)
            x = mp.device("P0")(multiply_plain)(x, y, public, limit=2**61)
        return x

    refused(deeper, r"test_phe.py:\d+: phe.multiply_plain: numbers of \d+ bits do not fit under")


def test_operands_that_do_not_fit_are_refused():
    y = mp.put
    refused(
        lambda x, sk, pk: mp.device("P0")(matmul_plain)(x, y("P0", [[1]]), pk, limit=1),
        "multiplies",
    )
    refused(
        lambda x, sk, pk: mp.device("P0")(segment_sum)(x, y("P0", [1]), pk, count=2), "segments are"
    )
    refused(
        lambda x, sk, pk: mp.device("P0")(multiply_plain)(x, y("P0", [1]), pk, limit=1),
        "have the shape",
    )
    refused(lambda x, sk, pk: mp.device("P0")(phe_sum)(mp.device("P0")(phe_sum)(x, pk), pk), "none")
    refused(
        lambda x, sk, pk: mp.device("P0")(sub)(x, mp.device("P0")(phe_sum)(x, pk), pk), "one shape"
    )
    refused(lambda x, sk, pk: mp.device("P0")(keygen)(bits=1024), "2048, 3072, 4096 bits")
    refused(
        lambda x, sk, pk: mp.device("P0")(add)(x, x, mp.device("P0")(keygen)()[1]),
        "under a key of 2048 bits",
    )


def test_a_private_key_does_not_leave_its_party():
    made = mp.compile(
        lambda: mp.put("P1", mp.device("P0")(keygen)()[0]), cluster_spec=mp.ClusterSpec.simple(2)
    )
    with pytest.raises(TraceError, match="a key stays with its party"):
        assert made.program


def test_floats_that_no_float_holds_are_refused():
    kind = PheCiphertextType(TensorType("f64"), BITS, 1100, 20)
    with pytest.raises(ValueError, match="1080 bits before the point do not fit in f64"):
        decrypt.__wrapped__(kind, PhePrivateKeyType(BITS))


@pytest.mark.parametrize(
    ("numbers", "limit"),
    [
        ([101, 0], 100),
        ([2**53 + 1, 0], 2**53),
        ([-(2**63), 0], 2**61),
        ([1.0, math.nan], 100.0),
        ([-math.inf, 0.0], 100.0),
    ],
)
def test_a_number_above_the_limit_is_an_error(numbers, limit):
    def program():
        _, public = mp.device("P0")(keygen)(bits=BITS)
        scale = 20 if isinstance(limit, float) else 0
        return mp.device("P0")(encrypt)(mp.put("P0", numbers), public, limit=limit, scale=scale)

    with pytest.raises(PartyError, match="a number is larger than limit="):
        run(program, 1)


def test_segments_that_are_not_there_are_an_error():
    program = of(
        lambda x, sk, pk: mp.device("P0")(segment_sum)(x, mp.put("P0", [0, 2]), pk, count=2)
    )
    with pytest.raises(PartyError, match="numbers from 0 to 1"):
        run(program, 1)


def test_another_key_is_an_error_and_no_number():
    def program(x, private, public):
        other, _ = mp.device("P0")(keygen)(bits=BITS)
        return mp.device("P0")(decrypt)(x, other)

    with pytest.raises(PartyError, match="larger than its type says|below the square"):
        run(of(program), 1)


def test_the_holder_of_the_key_learns_what_comes_back_and_the_other_one_nothing():
    def program():
        private, public = mp.device("P0")(keygen)(bits=BITS)
        x = mp.device("P0")(encrypt)(
            mp.dataset("P0", "x", type=TensorType("i64", (2,))), public, limit=9
        )
        there = mp.put("P1", public)
        w = mp.dataset("P1", "w", type=TensorType("i64", (2,)))
        y = mp.device("P1")(multiply_plain)(mp.put("P1", x), w, there, limit=9)
        y = mp.device("P1")(phe_sum)(y, there)
        return mp.device("P0")(decrypt)(mp.put("P0", y), private)

    made = mp.compile(program, cluster_spec=mp.ClusterSpec.simple(2)).program
    moves = {
        (row.sender, row.receiver): bool(row.discloses)
        for row in mp.analysis.disclosure(made).rows
        if row.what == "move" and row.form == "ciphertext"
    }
    assert moves == {(0, 1): False, (1, 0): True}
