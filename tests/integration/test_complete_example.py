"""A complete example: defined, traced, compiled, run on a simulator, and printed."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mplang
from mplang_core.simp import constant, reveal, seal

pytestmark = pytest.mark.needs("jax", "spu")


def test_the_complete_example(capsys):
    # 1. define the computation
    @mplang.function
    def secure_sum(x: mplang.MPObject, y: mplang.MPObject) -> mplang.MPObject:
        # Step 1: Seal inputs
        x_sealed = seal(x)
        y_sealed = seal(y)

        # Step 2: Compute on sealed data
        sum_sealed = x_sealed + y_sealed

        # Step 3: Reveal result
        result = reveal(sum_sealed)

        return result  # noqa: RET504

    # 2. describe the cluster
    cluster_spec = mplang.ClusterSpec(
        [mplang.Node(rank=0, address="localhost:501"), mplang.Node(rank=1, address="localhost:502")]
    )

    # 3. Trace
    tracer = mplang.TraceContext(cluster_spec)
    x_var = constant(tracer, [1, 2, 3])
    y_var = constant(tracer, [4, 5, 6])

    with mplang.with_ctx(tracer):
        tfn = mplang.trace(tracer, secure_sum, x_var, y_var)
        print(tfn.compiler_ir())

    # 4. Compile
    compiled_fn = mplang.compile(secure_sum, cluster_spec=cluster_spec, backend="simulation")

    # 5. Execute
    simulator = mplang.Simulator(cluster_spec)
    result = mplang.evaluate(simulator, compiled_fn, [1, 2, 3], [4, 5, 6])
    output = mplang.fetch(simulator, result)

    np.testing.assert_array_equal(output, [[5, 7, 9], [5, 7, 9]])
    simulator.close()

    # and what was printed is the program
    printed = mplang.parse(capsys.readouterr().out)
    mplang.verify(printed)
    assert printed.digest == tfn.program.digest
