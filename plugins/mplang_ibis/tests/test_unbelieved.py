"""What a program says of its tables is held against what they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from ibis_programs import KIND

from mplang_core.errors import KernelError
from mplang_core.ir.compressed_text import pack


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
