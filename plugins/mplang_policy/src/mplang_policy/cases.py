"""Cases of an owner: what the rules are to permit and to refuse, in YAML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from mplang_analysis import What, When
from pydantic import Field, model_validator

import mplang_core as mp
from mplang_core.ext import ConfigError, StrictModel
from mplang_policy.decision import Decision, decide, decide_program
from mplang_policy.guarded import told_of_guards
from mplang_policy.offline import asked_of, paths_of
from mplang_policy.owner import Owner
from mplang_policy.request import EVERYONE, Entity, Request
from mplang_policy.rules import Rules
from mplang_policy.vocabulary import actions, instead_of

SETS = {
    "columns": "Column",
    "data_sets": "DataSet",
    "others": "Party",
    "parties": "Party",
    "aggregates": "Aggregate",
    "grouped": "Column",
    "filtered": "Column",
    "matched": "Column",
    "joined_with": "Party",
}
ANY_PROGRAM = Entity("Program", "0" * 64)


class Case(StrictModel):
    """A case: a request, or a whole program.

    Attributes:
        name: what it shows.
        expect: ``permit`` or ``refuse``.
        by: part of the text of the refusal, such as the ``@id`` of a rule.
        coordinator: who asks; the only one by default.
        program: an artifact, relative to the file of the cases.
        action: ``run``, ``read``, ``disclose``, ``forward``, ``fetch``, ``store``, ``put`` or
            ``rely``.
        to: a data set to read, or a party to disclose to, to store at, or to rely on; ``everyone``.
        context: fields of the context that differ from those of a plain value.
    """

    name: str
    expect: Literal["permit", "refuse"]
    by: str = ""
    coordinator: str | None = None
    program: str | None = None
    action: (
        Literal["run", "read", "disclose", "forward", "fetch", "store", "put", "rely"] | None
    ) = None
    to: str | None = None
    context: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Case:
        if (self.program is None) == (self.action is None):
            raise ValueError("a case has a program or an action")
        if self.action in ("read", "disclose", "forward", "store", "rely") and self.to is None:
            raise ValueError(f"{self.action} needs `to`")
        return self

    def decide(self, owner: Owner, rules: Rules, folder: Path) -> tuple[Decision, str]:
        """Return what the rules say to it, and the text if they refuse it."""
        coordinator = owner.coordinator(self.coordinator)
        if self.program is None:
            found = decide(rules, [self._request(owner, coordinator)])
            for each in found.refused:
                if any("request" in error for error in each.verdict.errors):
                    raise ConfigError(f"case {self.name!r}: {each.verdict.errors[0]}", code="C012")
            return found, found.text(owner.party)
        packed = mp.artifact.load(folder / self.program)
        mode = str(owner.fields.get("mode", "production"))
        names = packed.cluster.parties
        asked = asked_of(packed.program, names, owner.party, coordinator, mode)
        found = decide_program(rules, asked)
        return found, found.text(owner.party, paths_of(packed.program, found))

    def _request(self, owner: Owner, coordinator: str) -> Request:
        self._check_words(owner)
        party = Entity("Party", owner.party)
        resource = {
            "run": ANY_PROGRAM,
            "read": Entity("DataSet", self.to or ""),
            "fetch": Entity("Host", coordinator),
            "put": party,
        }.get(self.action or "")
        if resource is None:
            resource = EVERYONE if self.to == "everyone" else Entity("Party", self.to or "")
        return Request(coordinator, self.action or "", resource, self._context(party))

    def _check_words(self, owner: Owner) -> None:
        """Refuse a case that speaks of what there is not: it would be refused for that only.

        Raises:
            ConfigError: it does.
        """
        action, wrong = self.action or "", []
        for name, value in self.context.items():
            if name not in actions()[action].fields:
                wrong.append(f"{action} has no {name}")
                continue
            for each in value if isinstance(value, list) else [value]:
                kind = SETS.get(name, "")
                if kind and (not isinstance(each, str) or owner.names.unknown(kind, each)):
                    wrong.append(f"{name}: there is no {kind} {each!r}")
                others = instead_of(name, each, [action])
                if others:
                    wrong.append(f"{name} is never {each!r}, but {', '.join(others)}")
            if name in SETS and not isinstance(value, list):
                wrong.append(f"{name} is a list")
        if wrong:
            raise ConfigError(f"case {self.name!r}: {'; '.join(wrong)}", code="C012")

    def _context(self, party: Entity) -> dict[str, Any]:
        given = {
            name: tuple(Entity(SETS[name], each) for each in value)
            if name in SETS
            else tuple(value)
            if isinstance(value, list)
            else value
            for name, value in self.context.items()
        }
        if "columns" in given:
            sets = sorted({each.id.partition(".")[0] for each in given["columns"]})
            given.setdefault("data_sets", tuple(Entity("DataSet", name) for name in sets))
        run = {"mode": "production", "parties": (party,), "approved": False}
        if self.action == "put":
            return {"mode": "production", **given}
        if self.action == "run":
            return {"name": "program", "epsilon": 0, **run, **given}
        read = {"program": ANY_PROGRAM, "columns": (), "parties": (party,), "approved": False}
        if self.action == "read":
            given.pop("data_sets", None)
            return {**read, **given}
        flow = {
            "what": str(What.CHANGE if self.action == "rely" else What.RESULT),
            "form": "plain",
            "type": "f64[]",
            "protocol": "",
            "discloses": True,
            "data_sets": (),
            "others": (),
            **told_of_guards((), 0, (), {}),
            "times": (str(When.ONCE),),
        }
        return {**flow, **read, **run, **given}


def read_cases(path: str) -> Sequence[Case]:
    """Read cases.

    Raises:
        ConfigError: the file cannot be read, or a case is wrong.
    """
    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read {path}: {error}", code="C012") from error
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ConfigError(f"{path}: expected a list of cases", code="C012")
    return [Case(**{str(name): value for name, value in each.items()}) for each in found]
