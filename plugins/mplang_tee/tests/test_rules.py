"""Rules of owners on what goes into an enclave: the form, the provider, who runs the machine."""

from __future__ import annotations

import pytest
from machines import cluster
from mplang_policy import Names, Rules
from mplang_policy.decision import decide_program
from mplang_policy.offline import asked_of

import mplang_core as mp

pytestmark = pytest.mark.needs("policy", "jax")

NAMES = ["bank", "shop", "cloud"]
OWNER = Names.of({
    "name": "bank", "coordinators": ["analyst"], "tls": "bank", "peers": dict.fromkeys(NAMES),
})  # fmt: skip
RUNS = """
permit (principal, action in [Action::"run", Action::"read"], resource);
permit (principal, action == Action::"disclose", resource == Everyone::"everyone");
permit (principal, action == Action::"fetch", resource);
"""
INSIDE = """
permit (principal, action == Action::"disclose", resource == Party::"cloud")
when { context.form == "handle" && context.protocol == "tdx" && !context.discloses };
"""
X = mp.MPType(mp.TensorType("f64", (3,)), mp.Mask.of(0))


def decided(program, rules, provider="tdx"):
    traced = mp.trace(mp.TraceContext(cluster(provider)), program, X).program
    asked = asked_of(traced, NAMES, "bank", "analyst", "production")
    return not decide_program(Rules.of({"bank.cedar": RUNS + rules}, OWNER), asked).refused


def total(x):
    inside = mp.device("T")(lambda x: x.sum())(mp.put("B", x))
    return mp.reveal(inside, to="B")


def to_the_cloud(x):
    return mp.reveal(mp.seal(mp.put("B", x), to="T"), to="C")


def in_plain(x):
    return mp.put("C", mp.put("B", x))


def test_what_a_rule_does_not_permit_goes_into_no_enclave():
    assert not decided(total, "")
    assert decided(total, INSIDE)


def test_an_enclave_of_another_provider_is_another_thing():
    assert not decided(total, INSIDE, provider="tpm")


@pytest.mark.parametrize("program", [to_the_cloud, in_plain])
def test_who_permits_the_enclave_does_not_permit_its_party(program):
    assert not decided(program, INSIDE)
