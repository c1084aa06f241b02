"""Programs of a bank and a shop, and the rules of one of them."""

from __future__ import annotations

from typing import Any

from mplang_policy import Decision, Names, Rules
from mplang_policy.decision import decide_program
from mplang_policy.offline import asked_of, paths_of

import mplang_core as mp

NAMES = ["bank", "shop", "clinic"]
CATALOGUE = {
    "bank": {
        "people": {
            "columns": {"id": "int64", "pay": "float64", "city": "string"},
            "match": ["ssn"],
            "unit": "id",
        }
    },
    "shop": {"sales": {"columns": {"id": "int64", "amount": "float64"}}},
}
BANK = {"name": "bank", "coordinators": ["analyst"], "tls": "bank", "peers": dict.fromkeys(NAMES)}
CLUSTER = mp.ClusterSpec([{"name": name} for name in NAMES])

PERMIT_ALL = "permit (principal, action, resource);"
RUNS = """
permit (principal, action in [Action::"run", Action::"read"], resource);
permit (principal, action == Action::"disclose", resource == Everyone::"everyone");
"""


def data_of_bank() -> dict[str, Any]:
    """Return the data sets of the bank, and who may name them."""
    return {name: {**each, "readers": ["analyst"]} for name, each in CATALOGUE["bank"].items()}


def names_of_bank() -> Names:
    """Return what the rules of the bank may name."""
    return Names.of({**BANK, "data": data_of_bank()})


def rules_of_bank(text: str) -> Rules:
    """Return rules of the bank, in a file ``bank.cedar``."""
    return Rules.of({"bank.cedar": text}, names_of_bank())


def program_of(fn):
    """Return the program of a function without arguments."""
    with mp.catalogue(CATALOGUE):
        return mp.compile(fn, cluster_spec=CLUSTER).trace(None).program


def decided(fn, text: str, party: str = "bank") -> tuple[Decision, str]:
    """Return what rules say to a program, and the text if they refuse it."""
    program = program_of(fn)
    asked = asked_of(program, NAMES, party, "analyst", "production")
    decision = decide_program(rules_of_bank(text), asked)
    return decision, decision.text(party, paths_of(program, decision))


def line_of(fn, offset: int) -> str:
    """Return a line of a function as programs name it."""
    return f"{fn.__code__.co_filename.rpartition('/')[2]}:{fn.__code__.co_firstlineno + offset}"
