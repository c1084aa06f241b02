"""A product that the field does not hold is told, also in a run in which it is right."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from mplang_spu.reference_check.fault_localization import worst_fault
from mplang_spu.reference_check.flat_function import FlatFunction, Op
from mplang_spu.reference_check.tolerance import Difference
from reference_runs import COARSE, FINE, secure

import mplang_core as mp
from mplang_core.errors import PrecisionWarning

LIMITS = {"FM64": (COARSE, 2.0**26), "FM128": (FINE, 2.0**46)}


@pytest.mark.once
@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("field", LIMITS)
def test_a_product_beyond_the_field_is_told_at_its_line(field):
    config, limit = LIMITS[field]

    def fn(x):
        return (x * x)[0]

    x = np.float32([np.sqrt(limit * 1.01), 3])
    (told,) = secure(fn, x, config=config)[1]
    assert told.category is PrecisionWarning
    assert str(told.message).startswith("SPU's multiply")
    assert (told.filename, told.lineno) == (fn.__code__.co_filename, fn.__code__.co_firstlineno + 1)


def test_an_op_that_only_moves_a_wrong_number_is_not_told():
    """Where the run that looks for the op is right by chance, what took an element was told."""
    ops = (
        Op("multiply", "multiply", (0, 0), (1,), 2),
        Op("slice", "slice", (1,), (2,), 1),
        Op("reshape", "reshape", (2,), (3,), 1),
    )
    function = FlatFunction("", 1, ops, (3,), (mp.TensorType("f32", (2,)),) * 4)
    assert worst_fault(function, {3: Difference(9.0)}).op == 0
    assert worst_fault(function, {0: Difference(9.0)}).op is None


@pytest.mark.once
@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x * 0.9) * x,
        lambda x: x.sum() * 2,
        lambda x: jnp.where(x > 100, 0.0, x * x),
        lambda x: jnp.sort(x) / 2,
    ],
)
def test_one_that_fits_or_reaches_no_result_is_not(fn):
    x = np.float32([np.sqrt(2.0**46 * 1.01), 3])
    assert secure(fn, x, config=FINE)[1] == []
