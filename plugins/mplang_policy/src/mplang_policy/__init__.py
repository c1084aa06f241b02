"""The owner's gate: what is allowed, and what is on record.

Example:
    >>> from mplang_policy import Names, Rules
    >>> rules = Rules.of({"all.cedar": "permit (principal, action, resource);"})
    >>> [each.effect for each in rules.statements.values()]
    ['permit']
"""

from mplang_policy.approval import AllowedInput, Approval
from mplang_policy.budgets import Amount, Budget, over_budget
from mplang_policy.decision import Decision, RefusedRequest, decide, decide_program
from mplang_policy.envelope import Signed
from mplang_policy.gate import Gate
from mplang_policy.gate_config import GateConfig
from mplang_policy.ledger import Entry, Head, Ledger, LedgerError
from mplang_policy.names import Names
from mplang_policy.offline import asked_of
from mplang_policy.package_versions import Packages
from mplang_policy.request import Entity, Request
from mplang_policy.requests import requests_of
from mplang_policy.rules import Rules

__all__ = [
    "AllowedInput",
    "Amount",
    "Approval",
    "Budget",
    "Decision",
    "Entity",
    "Entry",
    "Gate",
    "GateConfig",
    "Head",
    "Ledger",
    "LedgerError",
    "Names",
    "Packages",
    "RefusedRequest",
    "Request",
    "Rules",
    "Signed",
    "asked_of",
    "decide",
    "decide_program",
    "over_budget",
    "requests_of",
]
