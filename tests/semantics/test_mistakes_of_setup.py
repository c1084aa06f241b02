"""What users write by mistake around a program; each remedy runs.

Clusters and their devices, data sets and catalogues, what is fetched, matched and asked of several
parties.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import ConfigError, DisclosureError, MPLangError, TraceError

pytestmark = pytest.mark.needs("jax")

LINE = r"test_mistakes_of_setup\.py:\d+: "
X = np.float32([3, 1, 2])
NODES = [{"name": "bank"}, {"name": "shop"}]


def spu(**config):
    devices = {"SP0": {"kind": "SPU", "members": [0, 1], "config": config}}
    return mp.ClusterSpec.from_dict({"nodes": NODES, "devices": devices})


def tee(**config):
    devices = {"T": {"kind": "TEE", "members": [0], "config": config}}
    return mp.ClusterSpec.from_dict({"nodes": NODES, "devices": devices})


CLUSTERS = {
    "a field of the cluster": (
        lambda: mp.ClusterSpec.from_dict({"node": NODES}),
        "did you mean 'nodes'?",
        lambda: mp.ClusterSpec.from_dict({"nodes": NODES}),
    ),
    "a field of a node": (
        lambda: mp.ClusterSpec([{"nmae": "bank"}]),
        "did you mean 'name'?",
        lambda: mp.ClusterSpec([{"name": "bank"}]),
    ),
    "two nodes of one name": (
        lambda: mp.ClusterSpec([{"name": "bank"}, {"name": "bank"}]),
        "names are unique, got ['bank', 'bank']",
        lambda: mp.ClusterSpec(NODES),
    ),
    "a member that is not a node": (
        lambda: mp.ClusterSpec.from_dict(
            {"nodes": NODES, "devices": {"S": {"kind": "PPU", "members": ["banc"]}}}
        ),
        "no node 'banc'; the nodes are bank, shop",
        lambda: mp.ClusterSpec.from_dict(
            {"nodes": NODES, "devices": {"S": {"kind": "PPU", "members": ["bank"]}}}
        ),
    ),
    "a number in place of a cluster": (
        lambda: mp.Simulator(2),
        "as mp.ClusterSpec.simple(2), got 2",
        lambda: mp.Simulator(mp.ClusterSpec.simple(2)),
    ),
}
OF_SPU = {
    "a field of an SPU": (
        lambda: spu(protcol="SEMI2K"),
        "did you mean 'protocol'?",
        lambda: spu(protocol="SEMI2K"),
    ),
    "a kind in small letters": (
        lambda: mp.ClusterSpec.from_dict(
            {"nodes": NODES, "devices": {"S": {"kind": "spu", "members": [0, 1]}}}
        ),
        "no device kind 'spu'; did you mean 'SPU'?",
        lambda: spu(),
    ),
    "a protocol": (
        lambda: spu(protocol="SEMI2"),
        "Input should be 'SEMI2K', 'ABY3' or 'CHEETAH', got 'SEMI2'",
        lambda: spu(protocol="CHEETAH"),
    ),
    "a protocol of three parties": (
        lambda: spu(protocol="ABY3"),
        "ABY3 takes 3 members, got 2",
        lambda: spu(protocol="SEMI2K"),
    ),
}
OF_TEE = {
    "a field of an enclave": (
        lambda: tee(provier="simulated"),
        "did you mean 'provider'?",
        lambda: tee(provider="simulated"),
    ),
    "a provider": (
        lambda: tee(provider="simluated"),
        "config.provider: one of sgx, simulated, tdx, tpm, got 'simluated'",
        lambda: tee(provider="simulated"),
    ),
}


def is_told(mistake, remedy):
    wrong, told, repaired = mistake
    with pytest.raises(ConfigError, match=re.escape(told)) as error:
        wrong()
    assert "default factory" not in str(error.value)
    assert isinstance(repaired(), remedy)


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_mistake_in_a_cluster(name):
    is_told(CLUSTERS[name], (mp.ClusterSpec, mp.Simulator))


@pytest.mark.needs("spu")
@pytest.mark.parametrize("name", OF_SPU)
def test_a_mistake_in_an_spu(name):
    is_told(OF_SPU[name], mp.ClusterSpec)


@pytest.mark.needs("tee")
@pytest.mark.parametrize("name", OF_TEE)
def test_a_mistake_in_an_enclave(name):
    is_told(OF_TEE[name], mp.ClusterSpec)


@pytest.mark.needs("tee")
def test_a_mistake_in_what_an_owner_accepts(tmp_path):
    from mplang_tee.settings import TeeSettings

    def settings(provider, **accepted):
        return TeeSettings(
            enclaves={"cloud": {"files": ["0" * 64], "accepts": {provider: accepted}}}
        )

    with pytest.raises(ConfigError, match=r"'enclaves\.cloud\.accepts\.tpm\.ak': it is missing"):
        settings("tpm", pcrs={0: "0" * 64})
    with pytest.raises(ConfigError, match="no provider of attestation 'simluated'.*simulated"):
        settings("simluated")
    assert settings("simulated").enclaves["cloud"].accepted["simulated"]


@pytest.fixture(scope="module")
def sim():
    pytest.importorskip("mplang_data")
    debts = {"id": ["c1", "c2", "c3"], "city": ["Bern", "Bern", "Chur"], "debt": [100, 250, 40]}
    orders = {"customer": ["c3", "c9", "c1"], "spent": [10, 20, 30], "no": [3, 9, 1]}
    data = {"bank": {"debts": debts}, "shop": {"orders": orders}}
    with mp.Simulator(mp.ClusterSpec(NODES), data=data) as made:
        yield made


def debts(*columns):
    return mp.dataset("bank", "debts", *columns)


def orders(*columns):
    return mp.dataset("shop", "orders", *columns)


def number_of(t):
    return mp.device()(lambda t: t.agg(n=t.count()))(t)


DATA = {
    "a party": (
        lambda: mp.dataset("banc", "debts"),
        "the parties are bank, shop",
        lambda: number_of(mp.dataset("bank", "debts")),
    ),
    "a data set": (
        lambda: mp.dataset("bank", "debt"),
        "you may read debts",
        lambda: number_of(mp.dataset("bank", "debts")),
    ),
    "a column": (
        lambda: debts(["citty"]),
        "offers no column 'citty'; it offers id, city, debt",
        lambda: number_of(debts(["city"])),
    ),
    "a column that is not a list": (
        lambda: debts("city"),
        "columns are a list, such as ['city']",
        lambda: number_of(debts(["city"])),
    ),
}
DATA_OF_TWO = {
    "a table of another party": (
        lambda: mp.device("P0")(lambda a, b: a.join(b, a.id == b.customer))(debts(), orders()),
        "would disclose it. If that is meant, write mp.put('P0', x)",
        lambda: mp.device("P0")(lambda a, b: a.join(b, a.id == b.customer).agg(n=a.id.count()))(
            debts(), mp.put("P0", orders())
        ),
    ),
    "one column of two names": (
        lambda: mp.match(debts(), orders(), on="id"),
        "has no column 'id', but customer, spent, no; columns of different names are a pair",
        lambda: number_of(mp.match(debts(), orders(), on=[("id", "customer")])[0]),
    ),
    "keys of two types": (
        lambda: mp.match(debts(), orders(), on=[("id", "no")]),
        "string does not match int64: no value of one equals a value of the other; cast one",
        lambda: number_of(mp.match(debts(), orders(), on=[("id", "customer")])[0]),
    ),
    "who learns": (
        lambda: mp.match(debts(), orders(), on=[("id", "customer")], learn="banc"),
        "learn is 'both', 'bank' or 'shop', got 'banc'",
        lambda: number_of(mp.match(debts(), orders(), on=[("id", "customer")], learn="bank")),
    ),
    "one table, unpacked": (
        lambda: (lambda a, b: a)(
            *mp.match(debts(), orders(), on=[("id", "customer")], learn="bank")
        ),
        "a table is one value, and not unpacked",
        lambda: number_of(mp.match(debts(), orders(), on=[("id", "customer")], learn="bank")),
    ),
}


def is_told_where(sim, mistake, count):
    wrong, told, repaired = mistake
    with mp.with_ctx(sim):
        with pytest.raises(TraceError, match=LINE + ".*" + re.escape(told)):
            wrong()
        assert mp.fetch(sim, repaired()).to_pydict() == {"n": [count]}


@pytest.mark.needs("data", "ibis", "tables")
@pytest.mark.parametrize("name", DATA)
def test_a_mistake_with_a_data_set(sim, name):
    is_told_where(sim, DATA[name], 3)


@pytest.mark.needs("data", "ibis", "tables", "match")
@pytest.mark.parametrize("name", DATA_OF_TWO)
def test_a_mistake_with_data_of_two_parties(sim, name):
    is_told_where(sim, DATA_OF_TWO[name], 2)


@pytest.mark.needs("data", "ibis", "tables")
def test_a_catalogue_is_read_by_people(sim):
    assert str(sim.catalogue).splitlines() == [
        "bank",
        "  debts: columns={'id': 'string', 'city': 'string', 'debt': 'int64'} rows=3",
        "shop",
        "  orders: columns={'customer': 'string', 'spent': 'int64', 'no': 'int64'} rows=3",
    ]
    with pytest.raises(MPLangError, match=LINE + "no party 'banc'; did you mean 'bank'") as error:
        sim.catalogue["banc"]
    assert isinstance(error.value, KeyError)
    with pytest.raises(MPLangError, match="no data set of bank 'debt'; did you mean 'debts'"):
        sim.catalogue["bank"]["debt"]
    assert sim.catalogue["bank"]["debts"].rows == 3
    assert "banc" not in sim.catalogue
    assert sim.catalogue.get("banc") is None


FILES = {
    "a misspelt source": (
        {"sorce": "csv:debts.csv", "columns": {"debt": "int64"}},
        "did you mean 'source'?",
    ),
    "misspelt columns": (
        {"source": "csv:debts.csv", "colums": {"debt": "int64"}},
        "did you mean 'columns'?",
    ),
    "a misspelt kind": (
        {"source": "cvs:debts.csv", "columns": {"debt": "int64"}},
        "no kind of source 'cvs' is installed; there are arrow, csv",
    ),
    "a misspelt type": (
        {"source": "csv:debts.csv", "columns": {"debt": "int46"}},
        "column 'debt' is of the type 'int46'; expected an Arrow type",
    ),
    "a text where a list belongs": ({"debt": "100"}, "field 'source': it is missing"),
}


@pytest.mark.needs("data", "ibis", "tables")
@pytest.mark.parametrize("name", FILES)
def test_a_mistake_in_what_a_simulator_has(name, tmp_path, monkeypatch):
    wrong, told = FILES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "debts.csv").write_text("debt\n100\n250\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="data set 'debts' of bank: ") as error:
        mp.Simulator(mp.ClusterSpec(NODES), data={"bank": {"debts": wrong}})
    assert told in str(error.value)
    right = {"source": "csv:debts.csv", "columns": {"debt": "int64"}}
    with mp.Simulator(mp.ClusterSpec(NODES), data={"bank": {"debts": right}}) as made:
        found = mp.fetch(made, mp.evaluate(made, lambda: mp.dataset("bank", "debts")))
    assert found.to_pydict() == {"debt": [100, 250]}


@pytest.mark.needs("data", "ibis", "tables")
def test_a_frame_in_place_of_data_sets_is_not_printed():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"debt": [8675309]})
    for data in (frame, {"bank": frame}):
        with pytest.raises(ConfigError, match="got a DataFrame") as error:
            mp.Simulator(mp.ClusterSpec(NODES), data=data)
        assert "8675309" not in str(error.value)


@pytest.mark.needs("spu")
def test_a_secret_is_revealed_before_it_is_fetched(sim):
    with mp.with_ctx(sim):
        secret = mp.seal(mp.put("P0", X))
        with pytest.raises(DisclosureError, match=LINE + r".*Instead, mp\.reveal it"):
            mp.fetch(sim, secret)
        found = mp.fetch(sim, mp.reveal(secret, to="P1"))
    np.testing.assert_allclose(found, X, atol=1e-3)


def test_the_device_of_a_party(sim):
    with mp.with_ctx(sim):
        with pytest.raises(ConfigError, match="no device 'bank'.*the device of party bank is P0"):
            mp.put("bank", X)
        np.testing.assert_allclose(mp.fetch(sim, mp.put("P0", X)), X)


def test_a_run_that_fails_names_the_party(sim):
    def program(x):
        return mp.put("P1", x, range=(0, 2))

    told = r"party shop failed in simp\.bounded at test_mistakes_of_setup\.py:\d+: "
    with pytest.raises(mp.errors.PartyError, match=told) as error:
        mp.evaluate(sim, program, X)
    assert error.value.rank == 1
    with mp.Simulator(mp.ClusterSpec.simple(2)) as unnamed:
        with pytest.raises(mp.errors.PartyError, match=r"party 1 failed in simp\.bounded"):
            mp.evaluate(unnamed, program, X)
        np.testing.assert_allclose(mp.fetch(unnamed, mp.evaluate(unnamed, program, X - 1)), X - 1)
