"""Rules of an owner: Cedar statements, validated, and what they say to a request."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cedarpy
from mplang_analysis.ext import guard_functions

from mplang_core.ext import ConfigError
from mplang_policy.ledger import digest_of
from mplang_policy.names import ANY, Names, parts_of
from mplang_policy.request import Request
from mplang_policy.statements import Statement, nodes, read_statements
from mplang_policy.vocabulary import UNLESS_FORBIDDEN, mistakes_of, not_installed, schema_text

CEDAR = ".cedar"
SHOWN_FILES = 3  # whose names stand at a prompt
AT_ONCE = 100  # requests, or columns of them, that Cedar is asked about at once


@functools.cache
def schema() -> cedarpy.Schema:
    """Return the schema, parsed."""
    return cedarpy.Schema.from_str(schema_text())


_NOBODY = cedarpy.Entities.from_json_str("[]")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict of rules on a request.

    Attributes:
        allowed: whether a rule permits it, or it needs none, none forbids it, and all could be
            asked.
        rules: the rules that permit or forbid it.
        errors: why rules could not be asked.
    """

    allowed: bool
    rules: tuple[Statement, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules of an owner, parsed once; two are never equal.

    Attributes:
        statements: the statements by their identity in Cedar.
        names: what they may name.
        files: their texts, by the names of their files.
    """

    statements: Mapping[str, Statement]
    names: Names
    _policies: cedarpy.PolicySet = field(repr=False)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        names = [*self.files][:SHOWN_FILES]
        more = ", …" if len(self.files) > SHOWN_FILES else ""
        return (
            f"<Rules of {', '.join(names) or 'no file'}{more}: {len(self.statements)} statements>"
        )

    @classmethod
    def of(cls, files: Mapping[str, str], names: Names = ANY) -> Rules:
        """Parse and validate rules.

        Args:
            files: texts by the name of their file.
            names: what they may name; anything if it is left out.

        Raises:
            ConfigError: one is not Cedar, does not fit the schema, or names what there is not.

        Example:
            >>> Rules.of({"a.cedar": "permit (principal, action, resource) when { context.x };"})
            Traceback (most recent call last):
            mplang_core.errors.ConfigError: a.cedar:1: ... attribute `x` ... not found
            mplang explain C012
        """
        found = [each for file, text in files.items() for each in read_statements(file, text)]
        statements = {f"rule{i}": each for i, each in enumerate(found)}
        text = json.dumps(
            {
                "staticPolicies": {name: each.body for name, each in statements.items()},
                "templates": {},
                "templateLinks": [],
            }
        )
        wrong = _mistakes(statements, text)
        wrong = wrong or [f"{each.place}: {told}" for each in found for told in mistakes_of(each)]
        wrong = wrong or list(_unknown_names(found, names))
        if wrong:
            raise ConfigError("\n".join(wrong), code="C012")
        return cls(statements, names, cedarpy.PolicySet.from_json_str(text), dict(files))

    @property
    def texts(self) -> list[list[str]]:
        """Names and texts of their files, as plain data."""
        return [[name, text] for name, text in self.files.items()]

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of names and texts of their files, in hex."""
        return digest_of(self.texts)

    @classmethod
    def read(cls, path: str | Path, names: Names = ANY) -> Rules:
        """Read rules from a file, or from all files ``*.cedar`` of a folder.

        Args:
            path: the file or folder.
            names: as in :meth:`of`.

        Raises:
            ConfigError: there are none, or one is wrong.
        """
        try:
            files = cedar_files(path)
            texts = {file.name: file.read_text(encoding="utf-8") for file in files}
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read the policy {path}: {error}", code="C012") from None
        if not texts:
            raise ConfigError(
                f"{path}: there is no rule; mplang policy init writes some", code="C012"
            )
        return cls.of(texts, names)

    def decide(self, requests: Sequence[Request]) -> list[Verdict]:
        """Return what the rules say to each request.

        Anything that is not a clean answer is a refusal: a rule that could not be evaluated may
        have been the one that forbids.

        Args:
            requests: the requests.
        """
        found = ask(self._policies, requests)
        return [self._verdict(*each) for each in zip(requests, found, strict=True)]

    def would_permit(self, request: Request) -> bool:
        """Return whether rules permit a request, if none forbade it."""
        permits = {k: v.body for k, v in self.statements.items() if v.effect == "permit"}
        whole = {"staticPolicies": permits, "templates": {}, "templateLinks": []}
        policies = cedarpy.PolicySet.from_json_str(json.dumps(whole))
        return request.action in UNLESS_FORBIDDEN or ask(policies, [request])[0].allowed

    def _verdict(self, request: Request, found: cedarpy.AuthzResult) -> Verdict:
        told = found.diagnostics
        rules = tuple(self.statements[name] for name in sorted(told.reasons))
        errors = tuple(self._named(error) for error in told.errors)
        silent = not found.allowed and not rules  # neither a permit nor a forbid
        permitted = request.action in UNLESS_FORBIDDEN if silent else found.allowed and bool(rules)
        return Verdict(permitted and not errors, rules, errors)

    def _named(self, error: str) -> str:
        for name, statement in self.statements.items():
            error = error.replace(f"`{name}`", statement.shown)
        return error


def ask(policies: cedarpy.PolicySet, requests: Sequence[Request]) -> Sequence[cedarpy.AuthzResult]:
    """Return what Cedar says to requests."""
    found: list[cedarpy.AuthzResult] = []
    for part in _parts(requests):
        asked = [each.to_cedar() for each in part]
        found += cedarpy.is_authorized_batch(asked, policies, _NOBODY, schema())
    return found


def _parts(requests: Sequence[Request]) -> Iterator[Sequence[Request]]:
    """Yield a few requests at a time: meanwhile no other thread of this process runs."""
    begin, columns = 0, 0
    for i, each in enumerate(requests):
        columns += len(each.context.get("columns", ()))
        if i - begin >= AT_ONCE or columns > AT_ONCE:
            yield requests[begin:i]
            begin, columns = i, 0
    if begin < len(requests):
        yield requests[begin:]


def cedar_files(path: str | Path) -> list[Path]:
    """Return the file, or the files of a folder, in order of their names.

    Raises:
        OSError: it cannot be read.
    """
    given = Path(path)
    if not given.is_dir():
        return [given]
    return sorted(each for each in given.iterdir() if each.suffix == CEDAR)


def _mistakes(statements: Mapping[str, Statement], text: str) -> list[str]:
    """Return what does not fit the schema, per mistake a line."""
    plain = cedarpy.policies_from_json_str(text) if statements else ""
    found = cedarpy.validate_policies(plain, schema_text())
    if found.validation_passed:
        return []
    # as text they are policy0, policy1, … again
    order = {f"policy{i}": each for i, each in enumerate(statements.values())}
    wrong = []
    for each in found.errors:
        statement = order.get(each.policy_id)
        told = each.error.replace(f"for policy `{each.policy_id}`, ", "")
        wrong.append(f"{statement.place}: {told}" if statement is not None else told)
    return wrong or ["the rules do not fit the schema"]


def _unknown_names(statements: Sequence[Statement], names: Names) -> Iterator[str]:
    """Yield which rule names what there is not: a mistyped ``forbid`` forbids nothing."""
    for statement in statements:
        for kind, name in sorted(set(entities(statement.body))):
            if kind == "Aggregate" and parts_of(name)[0] not in guard_functions():
                yield f"{statement.place}: {not_installed(parts_of(name)[0])}"
            elif names.unknown(kind, name):
                there = ", ".join(names.offered(kind)) or "none"
                yield f'{statement.place}: there is no {kind}::"{name}" here, but {there}'


def entities(body: Any) -> Iterator[tuple[str, str]]:
    """Yield type and name of all entities in the JSON form of a statement."""
    for node in nodes(body):
        if node.keys() == {"type", "id"}:
            yield node["type"], node["id"]
