"""``mplang_hello`` in programs of several parties."""

from __future__ import annotations

import doctest
import pathlib
import re

import mplang_core as mp
import numpy as np
import pytest
from mplang_cli.doctor import plugin_checks

from mplang_hello import (
    Half,
    Rate,
    backend,
    broadcast,
    convert,
    pick,
    standardize,
    summarize,
    types,
)
from mplang_hello.holders import holders

README = pathlib.Path(__file__).parents[1] / "README.md"
CLUSTER = mp.ClusterSpec.from_dict(
    {
        "nodes": [{"name": "alice"}, {"name": "bob"}, {"name": "carol"}],
        "devices": {
            "A": {"kind": "PPU", "members": ["alice"]},
            "C": {"kind": "PPU", "members": ["carol"]},
            "V": {"kind": "VAULT", "members": ["alice", "bob"]},
        },
    }
)


@pytest.fixture(params=["simulator", "inline"])
def host(request):
    with mp.connect(request.param, CLUSTER) as made:
        yield made


@pytest.fixture(params=["standard", "launch"])
def mode(request):
    return request.param


# -- the op among parties


def shout(x):
    return broadcast(x + 1, root=1)


@pytest.fixture(scope="module", params=["simulator", "inline", "http"])
def everywhere(request):
    if request.param != "http":
        with mp.connect(request.param, mp.ClusterSpec.simple(3)) as made:
            yield made
        return
    http = pytest.importorskip("mplang_http")
    with http.LocalCluster(3) as workers, mp.connect("http", workers.spec) as made:
        yield made


def test_a_broadcast_reaches_all_parties(everywhere, mode):
    def program():
        return shout(mp.put("P1", np.arange(3)))

    found = mp.fetch(everywhere, mp.evaluate(everywhere, program, mode=mode))
    np.testing.assert_array_equal(found, [[1, 2, 3]] * 3)


def test_a_broadcast_runs_within_loops_and_with_one_party(mode):
    def program(turns):
        def turn(state):
            i, x = state
            return i + 1, mp.put("P0", broadcast(x, root=0) * 2)

        return mp.while_loop(lambda s: s[0] < turns, turn, (0, mp.put("P0", 1)))[1]

    for parties in (1, 3):
        with mp.Simulator(mp.ClusterSpec.simple(parties)) as sim:
            assert mp.fetch(sim, mp.evaluate(sim, program, 3, mode=mode)) == 8


def traced():
    context = mp.TraceContext(mp.ClusterSpec.simple(3))
    x = mp.MPType(mp.TensorType("i64", (3,)), mp.Mask.of(1))
    return mp.trace(context, lambda x: broadcast(x, root=1), x)


def test_a_broadcast_stands_in_disclosure_costs_and_drawings():
    moves = [row for row in mp.analysis.disclosure(traced()).rows if row.what == "move"]
    assert [(row.sender, row.receiver, row.discloses) for row in moves] == [
        (1, 0, (1,)),
        (1, 2, (1,)),
    ]
    costs = mp.analysis.costs(traced())
    links = [(link.sender, link.receiver, link.messages, link.bytes) for link in costs.links]
    assert links == [(1, 0, 1, 24), (1, 2, 1, 24)]
    assert (costs.rounds, costs.unknown) == (1, ())
    assert "1->0, 1->2 hello.broadcast" in str(mp.analysis.graph(traced()))


def test_what_a_broadcast_cannot_send_is_refused():
    def program():
        return broadcast(mp.put("P1", 7), root=0)

    with pytest.raises(
        mp.errors.TraceError, match=r"test_program.py:\d+: hello.broadcast: the root 0"
    ):
        mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program)


# -- the feops


def test_a_summary_goes_to_another_party(host, mode):
    def program():
        x = mp.put("A", [1, 2, 6])
        return mp.put("C", mp.device("A")(summarize)(x))

    found = mp.evaluate(host, program, mode=mode)
    assert str(found.type) == "hello.summary<i64[3]>@{2}"
    assert mp.fetch(host, found).mean == 3.0


@pytest.mark.parametrize(
    ("x", "options", "reason"),
    [(np.zeros(0), {}, "empty"), ([1j], {}, "complex"), ([1], {"digits": 99}, "digits")],
)
def test_what_makes_no_sense_is_refused(x, options, reason):
    def program():
        return mp.device("A")(summarize)(mp.put("A", x), **options)

    with pytest.raises(mp.errors.TraceError, match=reason):
        mp.trace(mp.TraceContext(CLUSTER), program)


@pytest.mark.parametrize("where", ["P0", "SP0"])
def test_what_is_made_of_jax_runs_in_plain_and_on_shares(where):
    if where == "SP0":
        pytest.importorskip("mplang_spu")
    x = np.float32([1, 2, 3, 6])

    def program():
        return mp.reveal(mp.device(where)(standardize)(mp.put(where, x)))

    with mp.Simulator(mp.ClusterSpec.simple(3)) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, program))[0]
    np.testing.assert_allclose(found, (x - x.mean()) / x.std(), atol=2e-3)


# -- the vault


@pytest.mark.parametrize("holder", ["A", "C"])  # a member, and one who is none
@pytest.mark.parametrize("x", [7, [[True, False], [True, True]], np.zeros((0, 3)), [1j, 2]])
def test_what_goes_into_the_vault_comes_out_again(host, mode, holder, x):
    def program():
        return mp.reveal(mp.seal(mp.put(holder, x)), to="C")

    found = mp.fetch(host, mp.evaluate(host, program, mode=mode))
    np.testing.assert_array_equal(found, x)
    assert found.dtype == np.asarray(x).dtype


def test_members_hold_halves_that_tell_nothing_by_themselves(host):
    with mp.with_ctx(host):
        zeros = mp.put("A", np.zeros(1000, np.uint8))
    sealed = mp.evaluate(host, mp.seal, zeros)
    with pytest.raises(mp.MPLangError, match="reveal"):
        mp.fetch(host, sealed)
    a, b, nothing = sealed.value.values  # a look behind the scenes
    assert nothing is None
    assert isinstance(a, Half)
    assert a.data == b.data  # the halves of zeros are the same pad, …
    assert len(set(a.data)) > 200  # … which is random
    assert b"data" not in repr(a).encode()


def test_a_row_is_picked_without_opening(host, mode):
    def program():
        x = mp.seal(mp.put("C", [[1, 2], [3, 4]]))
        return mp.reveal(mp.device()(pick)(x, row=1), to="C")

    np.testing.assert_array_equal(mp.fetch(host, mp.evaluate(host, program, mode=mode)), [3, 4])
    with pytest.raises(mp.errors.TraceError, match="no row 2"):
        mp.evaluate(host, lambda: mp.device()(pick)(mp.seal([[1], [2]]), row=2))


@pytest.mark.parametrize("fn", [summarize, standardize])
def test_the_vault_says_what_it_does_not_run(host, fn):
    def program():
        return mp.device("V")(fn)(mp.seal(mp.put("A", np.float32([1, 2]))))

    with pytest.raises(
        mp.errors.FeCapabilityError,
        match=r"V \(VAULT of \{0, 1\}\) cannot run hello\.\w+: it works on values of form "
        r"plain, .* Devices here that can: A, C\. mp\.reveal\(x, to='A'\) hands it",
    ):
        mp.evaluate(host, program)
    with pytest.raises(mp.errors.FeCapabilityError, match="VAULT of 2"):
        mp.evaluate(host, lambda: mp.device("V")(lambda x: x + 1)(mp.seal(mp.put("A", 1))))


def test_a_vault_opens_only_where_the_program_says_so(host):
    with pytest.raises(mp.errors.DisclosureError, match=r"mp\.reveal"):
        mp.evaluate(host, lambda: mp.put("C", mp.seal(mp.put("A", 1))))


@pytest.mark.parametrize("members", [["alice"], ["alice", "bob", "carol"]])
def test_a_vault_has_two_members(members):
    with pytest.raises(mp.errors.ConfigError, match="a VAULT has 2 members"):
        mp.ClusterSpec(CLUSTER.nodes, {"V": {"kind": "VAULT", "members": members}}).device("V")


# -- the backend


def test_the_backend_lists_who_sent_what_to_whom():
    with mp.Inline(CLUSTER) as host:
        mp.evaluate(host, lambda: mp.reveal(mp.seal(mp.put("A", [1, 2])), to="C"))
        sent = [(each.sender, each.receiver, each.what) for each in host.sent]
    half = "hello.half<i64[2]>"
    assert sorted(sent) == [(0, 1, half), (0, 2, half), (1, 2, half)]


def test_a_failure_is_told_and_the_backend_goes_on():
    with mp.Inline(CLUSTER, timeout=5) as host:
        with pytest.raises(mp.errors.PartyError, match="does not hold"):
            mp.evaluate(host, lambda: mp.pshfl(mp.constant(1, parties=0), mp.constant(1)))
        assert mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7))) == [7, 7, 7]


# -- what is said of it


def test_values_of_branches_and_loops_are_held_too():
    """A condition or a loop is no way around a check that counts values."""
    kind = mp.MPType(mp.TensorType("i64"), mp.Mask.of(0))

    def ping_pong(x):
        return mp.put("P0", mp.put("P1", x))

    def branch(x):
        return mp.uniform_cond(True, ping_pong, lambda x: mp.put("P0", x), x)

    def loop(x):
        return mp.while_loop(lambda x: mp.constant(False), ping_pong, mp.put("P0", x))

    def count(fn):
        ctx = mp.TraceContext(mp.ClusterSpec.simple(2))
        return holders(mp.trace(ctx, fn, kind).program).counts

    assert count(ping_pong) == (2, 1)
    assert count(branch) == (6, 2)
    assert count(loop) == (6, 2)


def test_the_doctor_has_looked():
    mp.registry.get("hello.summarize")
    told = [check for package, check in plugin_checks() if "hello" in package]
    assert [check.ok for check in told] == [True, True]
    assert "PPU" in told[1].detail


@pytest.mark.parametrize("module", [types, backend])
def test_the_examples_run(module):
    assert doctest.testmod(module).failed == 0


def test_the_readme_runs():
    namespace = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S):
        exec(block, namespace)


@pytest.mark.parametrize(
    ("rate", "reason"),
    [
        (Rate("\ud800", 1, 1), "surrogates not allowed"),
        (Rate("EUR", 10**30, 1), "integers of 64 bits, got"),
        (Rate("EUR", 10**5000, 1), "integers of 64 bits, got"),
    ],
)
def test_an_attribute_that_cannot_be_sent_is_refused_while_tracing(rate, reason):
    with pytest.raises(mp.errors.TraceError, match=r"test_program\.py:\d+: .*" + reason):
        mp.trace(
            mp.TraceContext(mp.ClusterSpec.simple(1)),
            lambda: mp.device("P0")(convert)(mp.put("P0", 1.0), rate=rate),
        )
