"""``peval``: who runs an op, by the masks of its operands and its rmask; and what is forbidden."""

from __future__ import annotations

import pytest
import toy

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError
from mplang_core.ext import Level, OpDef, op_defs
from mplang_core.feop import PFunction, unflatten

BOTH, P0 = mp.Mask(0b11), mp.Mask(0b01)
CLUSTER = mp.ClusterSpec.simple(2)


def dynamic():
    """A value whose mask is known at run time only; both parties have it."""
    return mp.simp.pcall_dynamic(toy.rank)


def add(x, y, rmask=None):
    pfunc, args, _ = toy.add(x, y)
    return mp.peval(pfunc, args, rmask)[0]


def traced(fn):
    return mp.trace(mp.TraceContext(CLUSTER), fn).out_vars[0].type


def test_row_1_all_known_without_rmask_runs_where_all_args_are():
    assert traced(lambda: add(mp.constant(1), mp.constant(2))).pmask == BOTH
    assert traced(lambda: add(mp.constant(1), mp.constant(2, parties=0))).pmask == P0


def test_row_2_all_known_with_rmask_runs_at_that_subset():
    assert traced(lambda: add(mp.constant(1), mp.constant(2), rmask=P0)).pmask == P0


def test_row_2_an_rmask_outside_of_the_pmask_is_refused():
    with pytest.raises(TraceError, match=r"test_rmask\.py:\d+.*\{1\} run it, but do not hold"):
        traced(lambda: add(mp.constant(1, parties=0), mp.constant(2, parties=0), rmask=BOTH))


def test_row_3_unknown_with_rmask_runs_at_the_rmask():
    assert traced(lambda: add(dynamic(), dynamic(), rmask=P0)).pmask == P0


def test_row_3_is_checked_when_it_runs(simulate, mode):
    def program():
        only_p0 = mp.simp.pcall_dynamic(toy.scale, mp.constant(7, parties=0))
        return add(only_p0, only_p0, rmask=BOTH)

    with pytest.raises(PartyError, match="party 1 .* does not hold operand 0"):
        mp.evaluate(simulate(2), program, mode=mode)


def test_row_4_unknown_without_rmask_is_known_at_run_time(simulate, mode):
    assert traced(lambda: add(dynamic(), dynamic())).pmask is None

    def program():
        only_p0 = mp.simp.pcall_dynamic(toy.scale, mp.constant(7, parties=0))
        return add(only_p0, only_p0)

    sim = simulate(2)
    assert mp.fetch(sim, mp.evaluate(sim, program, mode=mode)) == [28, None]


def test_no_args_means_all_parties():
    assert traced(lambda: mp.peval(toy.rank().pfunc, [])[0]).pmask == BOTH


def test_no_party_with_all_args_is_refused():
    with pytest.raises(TraceError, match="no party holds all of the args"):
        traced(lambda: add(mp.constant(1, parties=0), mp.constant(2, parties=1)))


def test_an_rmask_beyond_the_cluster_is_refused():
    with pytest.raises(TraceError, match=r"\{5\} are not among \{0, 1\}"):
        traced(lambda: mp.peval(toy.rank().pfunc, [], rmask=5)[0])


def test_other_types_than_the_function_expects_are_refused():
    def program():
        pfunc, _, _ = toy.add(mp.constant(1), mp.constant(2))
        return mp.peval(pfunc, [mp.constant(1.0), mp.constant(2.0)])[0]

    with pytest.raises(TraceError, match=r"toy.add expects \(i64\[\], i64\[\]\), got \(f64"):
        traced(program)


def test_peval_wraps_the_op_in_a_pcall_and_gives_values():
    def program(x, y):
        pfunc, args, out_tree = toy.divide(x, y)
        outs = mp.peval(pfunc, args, rmask=mp.Mask(0b01))
        assert [type(out) for out in outs] == [mp.TraceVar] * 2
        return unflatten(out_tree, outs)

    tfn = mp.trace(mp.TraceContext(CLUSTER), program, 7, 2)
    (op,) = tfn.program.graph.ops
    assert (op.opcode, op.attrs["parties"]) == ("simp.pcall_static", mp.Mask(0b01))
    assert [inner.opcode for inner in op.regions["do"].ops] == ["toy.divmod"]
    assert [value.type.pmask for value in tfn.out_vars] == [mp.Mask(0b01)] * 2


def test_peval_at_once(simulate):
    sim = simulate(2)
    with mp.with_ctx(sim):
        pfunc, args, _ = toy.add(mp.constant(1), mp.constant(2))
        (out,) = mp.peval(pfunc, args, rmask=[1])
    assert mp.fetch(sim, out) == [None, 3]


def test_an_unknown_mask_stays_unknown_or_is_named_and_checked(simulate, mode):
    def program():
        x = mp.simp.pcall_dynamic(toy.scale, mp.constant(1, parties=1))
        pfunc, args, _ = toy.add(x, x)
        (anyone,) = mp.peval(pfunc, args)
        (only_1,) = mp.peval(pfunc, args, rmask=mp.Mask(0b10))
        assert (anyone.pmask, only_1.pmask) == (None, mp.Mask(0b10))
        return anyone, only_1

    sim = simulate(2)
    assert mp.fetch(sim, mp.evaluate(sim, program, mode=mode)) == ([None, 4], [None, 4])


# -- an op with regions

op_defs.add(
    "demo.again",
    OpDef("demo.again", lambda op, world: [op.inputs[0].type], regions={"do": Level.LOCAL}),
    provider="tests",
    override=True,
)


@mp.kernel("demo.again")
def again(ctx, x):
    """Run the region, and once more on what it gives."""
    (once,) = ctx.run_region("do", [x])
    (twice,) = ctx.run_region("do", [once], turn=1)
    return twice


def test_an_op_with_a_region_is_applied_like_any_other(simulate, mode):
    def program():
        x = mp.constant(3)
        body = mp.TraceContext(CLUSTER, mp.cur_ctx(), local=True)
        param = body.parameter(x.base_type)
        with mp.with_ctx(body):
            (out,) = mp.peval(toy.add(param, param).pfunc, [param, param])
        body.graph.outputs = [out.value]
        pfunc = PFunction("demo.again", (x.base_type,), (x.base_type,), {}, {"do": body.graph})
        return mp.peval(pfunc, [x], P0)[0]

    sim = simulate(2)
    assert mp.fetch(sim, mp.evaluate(sim, program, mode=mode))[0] == 12
