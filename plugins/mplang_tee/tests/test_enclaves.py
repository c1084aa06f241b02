"""Programs with enclaves on a simulator: what they run, refuse and tell."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from machines import cluster
from mplang_tee.ops import check_inside
from mplang_tee.sessions import STATE
from mplang_tee.types import EnclaveValue, TeeSealedType, TeeSessionKeyType, TeeValueType

import mplang_core as mp
from mplang_core.errors import ConfigError, DisclosureError, MPLangError, TraceError, WireError
from mplang_core.ext import (
    Effects,
    FeMeta,
    ObservedWorker,
    OpDef,
    Operation,
    Value,
    encode,
    meta_of,
    route,
)

CLUSTER = cluster()
F64 = mp.TensorType("f64", (3,))
PEOPLE = pa.table({"id": list(range(40)), "pay": [float(i) for i in range(40)]})
X, Y = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])


@pytest.fixture(params=["standard", "launch"])
def sim(request):
    with mp.Simulator(CLUSTER, mode=request.param, data={"bank": {"people": PEOPLE}}) as made:
        yield made


def run(sim, program):
    return mp.fetch(sim, mp.evaluate(sim, program))


def traced(program, *types):
    return mp.trace(mp.TraceContext(CLUSTER), program, *types)


def opcodes(program):
    return [op.opcode for op in program.graph.walk()]


def at(party):
    return mp.MPType(F64, mp.Mask.of(party))


@pytest.mark.needs("jax")
def test_a_function_of_two_owners_values(sim):
    def program():
        x, y = mp.put("B", X), mp.put("S", Y)
        z = mp.device("T")(lambda a, b, scale: (a * b).sum() * scale)(x, y, 2.0)
        return mp.reveal(z, to="B"), mp.reveal(z)

    one, every = run(sim, program)
    assert float(one) == 280.0
    assert [float(each) for each in every] == [280.0] * 3


@pytest.mark.needs("jax")
def test_what_all_know_and_what_its_party_has_is_not_sealed(sim):
    def program():
        own, public = mp.put("C", X), mp.constant(Y)
        z = mp.device("T")(lambda a, b: a + b)(own, public)
        return mp.reveal(z, to="C")

    assert run(sim, program).tolist() == [11.0, 22.0, 33.0]
    found = opcodes(traced(program).program)
    assert "tee.attest" not in found
    assert found.count("tee.hold") == 1


@pytest.mark.needs("jax")
def test_one_by_one_each_value_has_a_session_of_its_own(sim):
    with mp.with_ctx(sim):
        inside = mp.seal(mp.put("B", X), to="T")
        doubled = mp.device("T")(lambda a: a * 2)(inside)
        assert mp.fetch(sim, mp.reveal(doubled, to="B")).tolist() == [2.0, 4.0, 6.0]
    assert STATE not in sim.fe_state


@pytest.mark.needs("jax")
def test_a_program_has_one_session_for_each_owner(sim):
    """They are in the state of its context (seed 002), and do not change what it computes."""
    seen = {}

    def program():
        x, y = mp.put("B", X), mp.put("S", Y)
        z = mp.device("T")(lambda a, b, c: a + b + c)(x, y, mp.put("B", Y))
        seen.update(mp.cur_ctx().fe_state[("tee", "sessions")])
        return mp.reveal(z, to="B")

    assert run(sim, program).tolist() == [21.0, 42.0, 63.0]
    assert seen.keys() == {("T", 0), ("T", 1)}
    assert all(isinstance(each.key, mp.MPObject) for each in seen.values())
    assert opcodes(traced(program).program).count("tee.attest") == 2


@pytest.mark.needs("jax")
def test_sessions_go_into_branches_and_loops(sim):
    def program():
        x = mp.seal(mp.put("B", X), to="T")
        one = mp.constant(1)

        def body(state):
            i, total = state
            more = mp.seal(mp.put("B", Y), to="T")
            return mp.invoke(lambda i: i + 1, i), mp.device("T")(lambda a, b: a + b)(total, more)

        _, total = mp.while_loop(lambda s: mp.invoke(lambda i: i < 4, s[0]), body, (one, x))
        chosen = mp.uniform_cond(
            mp.constant(True),
            lambda: mp.reveal(mp.device("T")(lambda a: a + 1)(total), to="B"),
            lambda: mp.reveal(total, to="B"),
        )
        return chosen, mp.reveal(total, to="B")

    chosen, total = run(sim, program)
    assert total.tolist() == [31.0, 62.0, 93.0]
    assert chosen.tolist() == [32.0, 63.0, 94.0]


def slots_of(program):
    """Return what is authenticated beside the type and the place around, of each seal."""
    seals = [op for op in program.graph.walk() if op.opcode in ("tee.seal", "tee.reseal")]
    return [op.attrs["slot"] for op in seals]


@pytest.mark.needs("jax")
def test_no_two_values_of_a_program_are_sealed_alike():
    """In loops and branches after each other, too: nobody can put one in place of another."""

    def program():
        x = mp.seal(mp.put("B", X), to="T")

        def body(state):
            i, total = state
            more = mp.seal(mp.put("B", Y), to="T")
            return mp.invoke(lambda i: i + 1, i), mp.device("T")(lambda a, b: a + b)(total, more)

        for _ in range(2):
            start = (mp.constant(1), x)
            _, x = mp.while_loop(lambda s: mp.invoke(lambda i: i < 4, s[0]), body, start)
            x = mp.uniform_cond(
                mp.constant(True), lambda x=x: mp.seal(mp.put("B", Y), to="T"), lambda x=x: x
            )
        return mp.reveal(x, to="B")

    found = slots_of(traced(program).program)
    assert len(found) == len(set(found)) == 6


@pytest.mark.needs("jax")
def test_values_of_two_calls_of_one_function_are_told_apart(monkeypatch):
    """The function is one graph that two ops call: what differs is which one does."""
    from mplang_tee import sealing

    seen, associated = [], sealing._associated

    def noted(*args):
        seen.append(associated(*args))
        return seen[-1]

    @mp.function
    def inside(x):
        return mp.seal(x, to="T")

    def program():
        one, two = (inside(mp.put("B", x)) for x in (X, Y))
        return mp.reveal(mp.device("T")(lambda a, b: a - b)(one, two), to="B")

    monkeypatch.setattr(sealing, "_associated", noted)
    with mp.Simulator(CLUSTER, mode="launch") as sim:
        assert run(sim, program).tolist() == (X - Y).tolist()
    assert sorted(map(seen.count, set(seen))) == [
        2,
        2,
        2,
    ]  # of each one who seals and one who opens


@pytest.mark.needs("ibis", "guard", "data")
def test_a_guard_counts_inside_of_an_enclave(sim):
    def program():
        people = mp.seal(mp.dataset("bank", "people"), to="T")
        rich = mp.device("T")(lambda t: t.filter(t.pay > 9))(people)
        return mp.reveal(mp.guard.aggregate(rich, k=20, unit="id", mean=("pay", "mean")), to="S")

    assert run(sim, program).to_pylist() == [{"mean": 24.5}]
    rows = mp.analysis.disclosure(mp.compile(program, cluster_spec=CLUSTER).trace(sim)).rows
    (reveal,) = (row for row in rows if row.what == "reveal")
    assert reveal.receiver == 1
    assert reveal.guards == ("guard k=20",)


@pytest.mark.needs("jax")
def test_what_is_inside_stays_for_the_next_program_of_the_session(sim):
    def first():
        return mp.seal(mp.put("B", X), to="T")

    def second(inside):
        return mp.reveal(mp.device("T")(lambda a: a * 3)(inside), to="S")

    inside = mp.evaluate(sim, first)
    assert mp.fetch(sim, mp.evaluate(sim, second, inside)).tolist() == [3.0, 6.0, 9.0]


# -- what is refused


@pytest.mark.needs("spu")
def test_shares_do_not_become_plain_in_an_enclave_without_a_word():
    devices = CLUSTER.model_dump()["devices"] | {"P": {"kind": "SPU", "members": [0, 1]}}
    spec = mp.ClusterSpec(CLUSTER.nodes, devices)
    with mp.Simulator(spec) as sim, mp.with_ctx(sim):
        shared = mp.seal(mp.put("B", X), to="P")
        for move in (lambda: mp.seal(shared, to="T"), lambda: mp.device("T")(abs)(shared)):
            with pytest.raises(TraceError, match=r"no way from P \(SPU.*\) to T \(TEE.*\)"):
                move()
        with pytest.raises(TraceError, match="no plain values"):
            mp.reveal(shared, to="T")
        inside = mp.seal(mp.put("B", X), to="T")
        with pytest.raises(TraceError, match=r"no way from T .* to P .* discloses nothing"):
            mp.seal(inside, to="P")


def test_what_is_inside_is_neither_fetched_nor_put_elsewhere(sim):
    with mp.with_ctx(sim):
        inside = mp.seal(mp.put("B", X), to="T")
        with pytest.raises(DisclosureError):
            mp.fetch(sim, inside)
        for place in ("B", "C"):
            with pytest.raises(DisclosureError, match=rf"mp\.reveal\(x, to='{place}'\)"):
                mp.put(place, inside)

    kind = TeeValueType(F64, "tdx")
    with pytest.raises(WireError, match=r"tee\.value"):  # on a link to another party
        encode(kind, EnclaveValue(kind, X))


@pytest.mark.needs("data")
def test_what_is_inside_is_not_stored(tmp_path):
    with mp.Simulator(CLUSTER, sink=str(tmp_path)) as sim, mp.with_ctx(sim):
        inside = mp.seal(mp.put("B", X), to="T")
        with pytest.raises(MPLangError, match=r"tee\.value"):
            mp.store("mine", inside)


@pytest.mark.needs("data")
def test_what_reads_at_its_party_does_not_run_inside():
    text = """
    program "reads" on {0, 1, 2} () {
      %1 = simp.pcall_static() {parties = {2}} do () {
        %2 = tee.run() {provider = "tdx"} do () {
          %3 = data.read() {name = "people", ranges = [], type = table<["id", "int64"]>} : \
table<["id", "int64"]>
          return %3
        } : tee.value<table<["id", "int64"]>, "tdx">
        return %2
      } : tee.value<table<["id", "int64"]>, "tdx">@{2}
      return %1
    }"""
    with pytest.raises(MPLangError, match=r"data\.read does not run in an enclave: it may read"):
        mp.verify(mp.parse(text))


PLAIN, INSIDE = Value(F64), Value(TeeValueType(F64, "tdx"))
QUIET = {"effects": Effects.NONE, "reads": ()}
OPS = {  # each with what it declares, takes and gives
    "prints": ({"reads": ()}, PLAIN, PLAIN),
    "reads": ({"effects": Effects.NONE}, PLAIN, PLAIN),
    "sinks": (QUIET, PLAIN, None),
    "wraps": (QUIET, PLAIN, INSIDE),
    "unwraps": (QUIET, INSIDE, PLAIN),
    "computes": (QUIET, PLAIN, PLAIN),
}


@pytest.mark.parametrize("name", OPS)
def test_what_may_write_or_gives_no_plain_value_does_not_run_inside(name, monkeypatch):
    about, takes, gives = OPS[name]
    declared = OpDef(f"enclaves.{name}", lambda op, world: [F64], **about)
    monkeypatch.setattr("mplang_tee.ops.op_defs", {declared.name: declared})
    op = Operation(f"enclaves.{name}", (takes,), () if gives is None else (gives,), {})
    if name == "computes":
        check_inside(op)
        return
    with pytest.raises(TypeError, match=f"{op.opcode} does not run in an enclave"):
        check_inside(op)


@pytest.mark.parametrize(
    ("inner", "match"),
    [
        ("f64[2]", r"the function takes \(f64\[2\]\), got \(f64\[3\]\)"),
        ('tee.value<f64[3], "tdx">', "what is in an enclave is plain there"),
    ],
)
def test_a_function_of_other_types_is_refused(inner, match):
    text = f"""
    program "wrong" on {{0, 1, 2}} (%0: tee.value<f64[3], "tdx">@{{2}}) {{
      %1 = simp.pcall_static(%0) {{parties = {{2}}}} do (%2: tee.value<f64[3], "tdx">) {{
        %3 = tee.run(%2) {{provider = "tdx"}} do (%4: {inner}) {{
          return %4
        }} : tee.value<{inner}, "tdx">
        return %3
      }} : tee.value<{inner}, "tdx">@{{2}}
      return %1
    }}"""
    with pytest.raises(MPLangError, match=match):
        mp.verify(mp.parse(text))


def test_a_sealed_value_is_opened_where_it_was_sealed_for(sim):
    """A program that swaps two of a session, or sends one back, ends in an error."""
    from mplang_tee import ops

    from mplang_core.ext import run_program

    def program(open_slot, way="in"):
        ctx = mp.cur_ctx()
        attrs = {"owner": 0, "enclave": 2, "provider": "tdx"}
        key, inside = ctx.emit("tee.attest", [], attrs)
        x = mp.put("B", X)
        sealed = run_program(ops.seal(x, key, slot=1), mp.Mask.of(0))
        there = mp.pshfl_s(sealed, 2, [0])
        if way == "out":
            return run_program(ops.unseal(sealed, key, slot=1), mp.Mask.of(0))
        opened = run_program(ops.open(there, inside, slot=open_slot), mp.Mask.of(2))
        return run_program(ops.release(opened), mp.Mask.of(2))

    assert run(sim, lambda: program(1))[2].tolist() == X.tolist()
    with pytest.raises(MPLangError, match="not authentic"):
        run(sim, lambda: program(2))
    with pytest.raises(TraceError, match="sealed on its way out"):
        run(sim, lambda: program(1, "out"))


def test_who_has_it_must_be_known():
    """Nobody could verify the enclave for a value whose owner is known only when it runs."""
    kind = mp.MPType(F64, None)
    with pytest.raises(TraceError, match="known only at run time, so no party can verify"):
        traced(lambda x: mp.seal(x, to="T"), kind)


@pytest.mark.needs("jax")
def test_two_devices_at_one_party_are_two_enclaves():
    devices = CLUSTER.model_dump()["devices"]
    spec = mp.ClusterSpec(CLUSTER.nodes, devices | {"U": devices["T"]})
    with mp.Simulator(spec) as sim, mp.with_ctx(sim):
        inside = mp.seal(mp.put("B", X), to="T")
        with pytest.raises(TraceError, match="no way from T .* to U"):
            mp.seal(inside, to="U")


@pytest.mark.parametrize(
    ("provider", "match"),
    [("tdx", "this worker is not an enclave"), ("simulated", "proves nothing")],
)
def test_only_who_is_insecure_takes_a_simulated_enclave(provider, match, monkeypatch):
    """A backend without native processes is not a simulator for that."""

    class Careful(ObservedWorker):
        def __init__(self, *args, **options):
            super().__init__(*args, **{**options, "insecure": False})

    monkeypatch.setattr("mplang_simulator.host.ObservedWorker", Careful)
    with mp.Simulator(cluster(provider)) as sim, pytest.raises(MPLangError, match=match):
        mp.evaluate(sim, lambda: mp.seal(mp.put("B", X), to="T"))


def test_a_provider_that_is_not_installed():
    with pytest.raises(ConfigError, match=r"config\.provider: one of sgx, simulated, tdx, tpm"):
        cluster("moon")


def test_an_enclave_is_of_one_party():
    nodes = CLUSTER.nodes
    device = {"kind": "TEE", "members": [0, 1], "config": {"provider": "tdx"}}
    with pytest.raises(ConfigError, match="a TEE has 1 members, got 2"):
        mp.ClusterSpec(nodes, {"T": device})


# -- capabilities (seed 002)


@pytest.mark.needs("jax", "ibis")
@pytest.mark.parametrize("family", ["jax", "ibis"])
def test_devices_of_kind_tee_take_the_families_jax_and_ibis(family):
    (compiler,) = (each for each in mp.registry.list_ops(family) if each.op_kind == "compiler")
    assert route(compiler, CLUSTER.device("T"), 3).fits


@pytest.mark.parametrize(
    ("members", "fits"), [("=1", True), (">=1", True), (">=2", False), ("=2", False)]
)
def test_what_a_feop_requires_of_devices(members, fits):
    need = {"members": members}
    meta = FeMeta(
        name="demo.op", execution_model="single_rank", capabilities={"requires_device": need}
    )
    assert route(meta, CLUSTER.device("T"), 3).fits is fits


def test_targets_name_the_form_of_what_is_inside():
    from mplang_tee import ops

    assert [form.value for form in meta_of(ops.release).targets] == ["handle"]
    assert route(meta_of(ops.release), CLUSTER.device("T")).fits
    assert not route(meta_of(ops.release), CLUSTER.device("B")).fits


def test_a_feop_of_several_parties_does_not_run_inside():
    meta = FeMeta(name="demo.op", execution_model="multi_party")
    assert not route(meta, CLUSTER.device("T")).fits


# -- what is told


@pytest.mark.needs("jax")
def test_ranges_go_through_an_enclave():
    def program(x):
        inside = mp.seal(mp.put("B", x, range=(-1, 2)), to="T")
        return mp.reveal(mp.device("T")(lambda a: a * 3)(inside), to="B")

    rows = mp.analysis.ranges(traced(program, at(0)).program).rows
    (result,) = (row for row in rows if row.what == "result")
    assert (result.interval.low, result.interval.high) == pytest.approx((-3, 6))


@pytest.mark.needs("jax")
def test_rows_name_the_enclave_as_the_reader():
    def program(x, y):
        z = mp.device("T")(lambda a, b: (a * b).sum())(mp.put("B", x), mp.put("S", y))
        return mp.reveal(z, to="B")

    told = mp.analysis.disclosure(traced(program, at(0), at(1)))
    moves = [row for row in told.rows if row.form == "handle"]
    assert [(row.sender, row.receiver, row.protocol) for row in moves] == [
        (0, 2, "tdx"), (1, 2, "tdx"), (2, 0, "tdx"),
    ]  # fmt: skip
    assert not any(row.discloses for row in moves)
    assert [row.texts()[2] for row in moves] == ["the enclave of 2 (tdx)"] * 2 + ["0"]
    first, second, *rest = told.sentences()
    assert first.startswith("The enclave of cloud (tdx) reads: 3 numbers made of bank's data (")
    assert first.endswith("; cloud does not.")
    assert "made of shop's data" in second
    assert any(
        text.startswith("shop and cloud learn nothing of anyone else's data") for text in rest
    )
    assert "3 numbers, sealed for the enclave of" in str(told)


@pytest.mark.needs("ibis", "data")
def test_sizes_of_tables_are_told_to_the_party_and_rows_to_the_enclave(sim):
    """The party carries what is sealed, in and out: a size may tell how many rows are left."""

    def program():
        people = mp.seal(mp.dataset("bank", "people"), to="T")
        return mp.reveal(mp.device("T")(lambda t: t.filter(t.pay > 9))(people), to="B")

    told = mp.analysis.disclosure(mp.compile(program, cluster_spec=CLUSTER).trace(sim))
    sizes = [row for row in told.rows if row.what == "size" and row.discloses]
    assert [(row.sender, row.receiver) for row in sizes] == [(0, 2), (None, 2)]
    assert [row.texts()[2] for row in sizes] == ["2", "2"]
    first, *rest = told.sentences()
    assert first.startswith("The enclave of cloud (tdx) reads: a table of columns id, pay made of")
    assert any(
        "cloud learns: the number and sizes of messages, which depends on bank's data" in text
        for text in rest
    )


@pytest.mark.needs("jax")
def test_where_nobody_else_learns_the_enclave_is_told_all_the_same():
    told = mp.analysis.disclosure(traced(lambda x: mp.seal(mp.put("B", x), to="T"), at(0)))
    first, second = told.sentences()
    assert first.startswith("The enclave of cloud (tdx) reads: 3 numbers made of bank's data")
    assert second == "No party learns anything of anyone else's data."


def test_what_its_own_party_gets_is_a_reveal():
    def program(x):
        return mp.reveal(mp.seal(mp.put("B", x), to="T"), to="C")

    with pytest.raises(DisclosureError):
        traced(lambda x: mp.put("C", mp.seal(mp.put("B", x), to="T")), at(0))
    told = mp.analysis.disclosure(traced(program, at(0)))
    (reveal,) = (row for row in told.rows if row.what == "reveal")
    assert (reveal.receiver, reveal.discloses) == (2, (0,))


def test_types_say_what_they_are():
    assert TeeValueType(F64, "tdx").form.value == "handle"
    assert TeeSessionKeyType("tdx").form.value == "key"
    sealed = TeeSealedType(F64, "tdx", "in")
    assert sealed.reader("cloud") == "the enclave of cloud (tdx)"
    assert TeeSealedType(F64, "tdx", "out").reader("bank") == "bank"
    with pytest.raises(ValueError, match="plain there"):
        TeeValueType(sealed, "tdx")
    with pytest.raises(ValueError, match="in or out"):
        TeeSealedType(F64, "tdx", "up")
