"""What a program says of its tables is held against what they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from ibis_programs import KIND, at

import mplang_core as mp
from mplang_core.errors import KernelError, PartyError
from mplang_core.ir.compressed_text import pack


def test_a_literal_of_another_type_than_it_says_is_refused(sim):
    from mplang_ibis import literal

    wrong = {"rows": 1, "data": (b"", b"12345"), "type": KIND}
    with pytest.raises(PartyError, match=r"ibis\.literal: the data is no table"):
        mp.evaluate(sim, lambda: at("P0", literal, **wrong))


def test_an_op_does_not_believe_that_an_operand_is_what_the_program_says(sim):
    """A worker may get any value; here the table has another type than the SQL declares."""
    from mplang_ibis import kernels

    class Ctx:
        class op:
            inputs = (type("Value", (), {"type": KIND}),)

    attrs = {"code": pack("SELECT 1 AS a"), "names": ("x",), "gives": KIND, "ibis": ""}
    for value in (pa.table({"a": ["x"]}), np.ones(3), None):
        with pytest.raises(KernelError, match="is not the table"):
            kernels.run(Ctx, value, **attrs)
        with pytest.raises(KernelError, match="is not the table"):
            kernels.to_tensor(Ctx, value, rows=1)
