"""Costs that are told before a run: what libspu sends, by the user's lines."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import jax
import jax.numpy as jnp
import mplang_spu.costs.apart as apart
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mplang_analysis import network_of
from mplang_spu import engine
from mplang_spu.costs.counted import CountRequest
from mplang_spu.costs.counting import count
from mplang_spu.costs.members import Members
from mplang_spu.costs.multipliers import PreparedProducts
from mplang_spu.costs.pphlo import read_pphlo
from mplang_spu.costs.program import turns_of
from mplang_spu.lowering import Target, lower
from mplang_stablehlo import read

import mplang_core as mp
from mplang_core import FeSignature, TensorType, registry
from mplang_core.ext import ConfigError, RunError

MEMBERS = {"SEMI2K": 2, "ABY3": 3, "CHEETAH": 2}


def rows(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def config_of(protocol: str, field: str = "FM64") -> dict:
    fxp = {"FM64": 18, "FM128": 40}[field]
    return {"protocol": protocol, "field": field, "fxp_fraction_bits": fxp}


def traced(config, fn, args):
    with engine.spu_tracing(Target.of(config)):
        return registry.get("jax.compile")(fn, FeSignature(tuple(map(TensorType.of, args))))


def told(config, fn, args):
    """Return the costs that are told."""
    made = traced(config, fn, args)
    shares = (*[True] * len(args), *[False] * len(made.consts))
    code = made.pfunc.attrs["code"].hex()
    members = MEMBERS[config["protocol"]]
    return count(
        CountRequest(
            code=code, shares=shares, config=config, members=members, network=network_of("lan")
        )
    )


def ran(config, fn, args):
    """Return the messages and bytes of a session's first run, as its channels count them."""
    made = traced(config, fn, args)
    secret = [True] * len(args) + [False] * len(made.consts)
    code = engine.build(lower(read(made.pfunc.attrs["code"]), Target.of(config)), secret)
    members = Members(MEMBERS[config["protocol"]], config, "softspoken")
    operands = [*args, *made.consts, *code.operands]
    for i, array in enumerate(operands):
        members.put(f"in{i}", array, i < len(args))
    outs = [f"out{i}" for i in range(len(made.pfunc.outs_info))]
    found = members.run(code.code.decode(), [f"in{i}" for i in range(len(operands))], outs)
    return len(found.sent), sum(each.size for each in found.sent)


def totals(counted):
    """Return messages and bytes of steps, and of what is set up for them."""
    steps = [*counted.steps, *(each for each in counted.set_up if each.name != "the link")]
    return sum(each.messages for each in steps), sum(each.size for each in steps)


def logistic(x, w):
    for _ in range(2):
        w = w - 0.1 * x.T @ jax.nn.sigmoid(x @ w)
    return w


def network(x, a, b):
    return jnp.argmax(jax.nn.relu(x @ a) @ b, axis=1)


def statistics(x):
    return x.mean(0), x.std(0), jnp.max(x, 0), jnp.where(x > 0, x, -x).sum()


def loop(x, w):
    return jax.lax.fori_loop(0, 5, lambda i, s: s * x[i] + w, w)


def carried_bits(x):
    def turn(i, state):
        low, bits = state
        return jnp.minimum(low, x[i]), bits ^ (x[i] > low).astype("i4")

    return jax.lax.fori_loop(0, 4, turn, (x[0], jnp.zeros(x.shape[1], "i4")))


PROGRAMS = {
    "logistic": (logistic, (rows(40, 5), rows(5))),
    "network": (network, (rows(20, 8), rows(8, 6), rows(6, 4))),
    "statistics": (statistics, (rows(30, 3),)),
    "loop": (loop, (rows(5, 7), rows(7))),
    "carried bits": (carried_bits, (rows(5, 7),)),
    "solve": (lambda a, b: jnp.linalg.solve(a.T @ a, b), (rows(6, 4), rows(4))),
    "concatenated": (lambda x, y: jnp.concatenate([x < y, x > 1]) * 3, (rows(9), rows(9, seed=1))),
}


@pytest.mark.parametrize("field", ["FM64", "FM128"])
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "solve"])
def test_what_is_told_is_what_is_sent(name, field):
    fn, args = PROGRAMS[name]
    config = config_of("ABY3", field)
    assert totals(told(config, fn, args)) == ran(config, fn, args)


def test_what_a_solver_sends_is_told():
    fn, args = PROGRAMS["solve"]
    config = config_of("ABY3", "FM128")
    assert totals(told(config, fn, args)) == ran(config, fn, args)


@pytest.mark.parametrize("name", ["logistic", "network", "statistics", "carried bits"])
def test_batches_and_set_up_of_cheetah_are_told(name):
    fn, args = PROGRAMS[name]
    config = config_of("CHEETAH")
    messages, size = totals(told(config, fn, args))
    sent, bytes_sent = ran(config, fn, args)
    assert messages == sent
    assert size == pytest.approx(bytes_sent, rel=1e-3)  # ciphertexts are compressed


def test_an_op_of_many_elements_follows_from_two_others():
    config = config_of("SEMI2K")
    args = (rows(20_000), rows(20_000, seed=1))
    assert totals(told(config, lambda x, y: x * y < 1, args)) == ran(
        config, lambda x, y: x * y < 1, args
    )


@pytest.mark.slow("sorts a dozen times: 10 s")
def test_sorts_of_cheetah_stay_within_the_range_that_is_told():
    config = config_of("CHEETAH")
    counted = told(config, jnp.sort, (rows(100),))
    (sort,) = (each for each in counted.steps if each.spread)
    messages, size = totals(counted)
    inside = 0
    for seed in range(10):
        sent, of = ran(config, jnp.sort, (rows(100, seed=seed),))
        inside += abs(sent - messages) <= sort.spread * messages
        inside += abs(of - size) <= sort.spread * size
    assert not sort.exact
    assert inside >= 19


OPS = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "less": lambda x, y: jnp.where(x < y, x, y),
    "both": lambda x, y: ((x < y) & (y < 1)).astype(x.dtype),
    "equal": lambda x, y: jnp.where(x == y, x, -y),
    "abs": lambda x, y: jnp.abs(x) - y,
    "floor": lambda x, y: jnp.floor(x * y),
    "largest": lambda x, y: x - jnp.max(y),
    "public": lambda x, y: x * 0.5 + y * 3.0,
}


@settings(max_examples=12, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(OPS)), min_size=1, max_size=6),
    size=st.integers(1, 40),
    protocol=st.sampled_from(["SEMI2K", "ABY3"]),
)
def test_programs_of_any_ops_send_what_is_told(names, size, protocol):
    def program(x, y):
        for name in names:
            x, y = OPS[name](x, y), x
        return x, y

    args = (rows(size), rows(size, seed=1))
    config = config_of(protocol)
    assert totals(told(config, program, args)) == ran(config, program, args)


def test_turns_of_loops_that_are_not_known():
    def program(x, n):
        return jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x), (0, x))

    config = config_of("SEMI2K")
    made = traced(config, program, (rows(3), np.int64(4)))
    secret = [True, False] + [False] * len(made.consts)
    code = engine.build(lower(read(made.pfunc.attrs["code"]), Target.of(config)), secret)
    function = read_pphlo(code.code.decode())
    (found,) = (op for op in function.body.ops if op.name == "while")
    assert turns_of(found, {}) is None
    request = CountRequest(
        code=made.pfunc.attrs["code"].hex(),
        shares=tuple(secret),
        config=config,
        members=2,
        network=network_of("lan"),
    )
    (step,) = (each for each in count(request).steps if each.name == "multiply")
    assert (step.times, step.turns_known) == (1, False)


def test_ops_that_are_too_large_to_be_tried_are_unknown():
    def program(x, y):
        return jnp.outer(x, y).max() + jnp.sort(jnp.outer(x, y), axis=0)[0, 0]

    counted = told(config_of("ABY3"), program, (rows(2000), rows(2000)))
    names = {each.name: each.known for each in counted.steps}
    assert names["multiply"]
    assert not names["reduce"]
    assert not any(known for name, known in names.items() if "sort" in name)


def test_prepared_products_are_kept_for_later_ops():
    prepared = PreparedProducts()
    assert [prepared.take([n]) for n in (4000, 96, 1, 4096)] == [1, 0, 1, 1]


# -- through mp.analysis.costs, in a process apart


def compiled():
    def fit(x, w):
        z = x @ w
        return z * z

    spec = mp.ClusterSpec.from_dict(
        {
            "nodes": [{"name": "a"}, {"name": "b"}],
            "devices": {
                "P0": {"kind": "PPU", "members": ["a"]},
                "SP0": {
                    "kind": "SPU",
                    "members": ["a", "b"],
                    "config": {"protocol": "SEMI2K", "field": "FM64"},
                },
            },
        }
    )
    kinds = [mp.MPType(TensorType("f32", shape), mp.Mask.of(0)) for shape in ((6, 3), (3,))]
    return mp.compile(
        lambda x, w: mp.reveal(mp.device("SP0")(fit)(x, w)), *kinds, cluster_spec=spec
    )


def test_lines_seconds_and_links_are_told():
    program = compiled()
    near = mp.analysis.costs(program, link="lan")
    far = mp.analysis.costs(program, link={"rtt": 100, "rate": 10})
    assert not near.unknown
    assert [op.op for op in mp.analysis.costs(program).unknown] == ["spu.run_jax"]
    by_step = {row.steps: row for row in near.lines}
    dot, times = by_step["dot",], by_step["multiply",]
    line = int(times.line.rpartition(":")[2])
    assert Path(__file__).read_text().splitlines()[line - 1].strip() == "return z * z"
    assert int(dot.line.rpartition(":")[2]) == line - 1
    assert times.messages == 4
    assert times.bytes > 0
    assert [row.bytes for row in near.lines] == [row.bytes for row in far.lines]
    assert far.seconds > near.seconds + 0.1
    assert "What protocols take, line by line" in str(near)
    assert "About" in str(near)


def test_networks_that_are_none():
    with pytest.raises(ConfigError, match=r"expected 'lan', 'wan' or .* got 'moon'"):
        mp.analysis.costs(compiled(), link="moon")
    with pytest.raises(ConfigError, match="rate"):
        mp.analysis.costs(compiled(), link={"rtt": 1})


def test_the_process_that_counts_has_given_up_what_it_does_not_need():
    mp.analysis.costs(compiled(), link="lan")
    status = Path(f"/proc/{apart._process().pid}/status").read_text()
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["NoNewPrivs"] == "1"
    assert facts["Seccomp"] == "2"
    assert int(facts["CapEff"], 16) == 0


def test_a_process_that_ends_leaves_the_costs_unknown_and_the_next_counts():
    apart.counted.cache_clear()
    os.kill(apart._process().pid, signal.SIGKILL)
    assert [op.op for op in mp.analysis.costs(compiled(), link="lan").unknown] == ["spu.run_jax"]
    assert not mp.analysis.costs(compiled(), link="lan").unknown


def test_counting_that_takes_too_long_leaves_the_costs_unknown(monkeypatch):
    apart.counted.cache_clear()
    process = apart._process()
    os.kill(process.pid, signal.SIGSTOP)
    monkeypatch.setattr(apart, "SECONDS", 0.1)
    with pytest.raises(RunError, match=r"takes more than 0\.1 s"):
        process.ask("{}")
    assert process.has_ended


def test_a_request_that_is_none_is_answered_with_the_reason():
    with pytest.raises(RunError, match="SPU's costs are not known"):
        apart.counted('{"code": "00"}')
