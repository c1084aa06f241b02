"""Approval: what an owner signs, so that one program may run for one coordinator."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from mplang_analysis import WHOLE
from mplang_analysis.ext import quoted
from pydantic import AwareDatetime, Field, ValidationError, model_validator

from mplang_core.ext import ConfigError, StrictModel
from mplang_policy.request import Request, told

Digest: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
SUBSETS = (
    "columns", "data_sets", "others", "aggregates", "grouped", "filtered", "matched", "functions",
    "joined_with",
)  # fmt: skip
MAY_BE_LESS = (*SUBSETS, "discloses", "k", "max_share", "declassifiers")
SENDS = ("disclose", "fetch", "forward")
LEFT_OUT = ("line", "approved")  # lines are signed as a whole
CURRENT: Final = 2
"""The version of approvals that are signed now."""

Number: TypeAlias = bool | int | float


class AllowedInput(StrictModel):
    """Values allowed for a public input of a program.

    Attributes:
        name: its name in the program.
        type: its type.
        low: the smallest number that it may hold.
        high: the largest one.
        values: the numbers that it may hold.
        anything: whether it may be anything.

    Example:
        >>> year = AllowedInput(name="year", type="i64[]", low=2015, high=2025)
        >>> year.refusal((2014,))
        'year is 2014, and may be from 2015 to 2025'
    """

    name: str
    type: str
    low: float | None = None
    high: float | None = None
    values: tuple[Number, ...] = ()
    anything: bool = False

    @model_validator(mode="after")
    def _check(self) -> AllowedInput:
        ranged = self.low is not None and self.high is not None
        if [ranged, bool(self.values), self.anything].count(True) != 1:
            raise ValueError("it has a range, values, or may be anything")
        return self

    @property
    def shown(self) -> str:
        """What it may be, in words."""
        if self.anything:
            return "anything"
        if self.values:
            return " or ".join(f"{each:g}" for each in self.values)
        return f"from {self.low:g} to {self.high:g}"

    def refusal(self, numbers: Sequence[Number] | None) -> str:
        """Return why it may not be some numbers; empty if it may.

        Args:
            numbers: its elements; ``None`` if they are too many to be looked at.
        """
        if self.anything:
            return ""
        if numbers is None:
            return f"{quoted(self.name)} is too large to be looked at, and may be {self.shown}"
        for each in numbers:
            if self.values:
                fits = each in self.values
            else:
                assert self.low is not None
                assert self.high is not None
                fits = self.low <= each <= self.high  # not NaN
            if not fits:
                return f"{quoted(self.name)} is {each:g}, and may be {self.shown}"
        return ""


class Approval(StrictModel):
    """Program that an owner has reviewed and allows.

    Attributes:
        version: version of this format; 1 was for lines by file and number.
        id: what it is called; random.
        party: whose approval it is.
        program: digest of the program.
        name: its name.
        shown: SHA-256 of functions and texts of the lines that were shown; in version 1 of name
            and lines.
        rows: what the program does at the party, as the rules are asked about it.
        parties: names of the parties, by rank.
        coordinators: who may run it.
        data_sets: the data sets that it reads here.
        inputs: what its public inputs may be, by position.
        versions: versions of the packages that run it here.
        uses: how often it may run.
        made: when it was signed first.
        expires: until when it may run.
    """

    version: Literal[1, 2] = CURRENT
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    party: str
    program: Digest
    name: str
    shown: Digest
    rows: tuple[dict[str, Any], ...]
    parties: tuple[str, ...]
    coordinators: tuple[str, ...] = Field(min_length=1)
    data_sets: tuple[str, ...] = ()
    inputs: dict[int, AllowedInput] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    uses: int = Field(gt=0)
    made: AwareDatetime
    expires: AwareDatetime

    def to_bytes(self) -> bytes:
        """Return it as it is signed."""
        fields = self.model_dump(mode="json")
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Approval:
        """Return it from what was signed.

        Raises:
            ConfigError: it is none.
        """
        try:
            return cls.model_validate_json(data, strict=False)
        except ValidationError as error:
            raise ConfigError(
                f"no approval: {error.error_count()} wrong fields", code="C011"
            ) from None


def rows_of(requests: Sequence[Request]) -> tuple[dict[str, Any], ...]:
    """Return what a program does at a party, as an approval has it: each row once.

    Args:
        requests: what the rules of the party are asked.
    """
    found: dict[str, dict[str, Any]] = {}
    for each in requests:
        row = {name: value for name, value in told(each).items() if name not in LEFT_OUT}
        found.setdefault(json.dumps(row, sort_keys=True), row)
    return tuple(found.values())


def uncovered(approved: Sequence[Mapping[str, Any]], requests: Sequence[Request]) -> Request | None:
    """Return what a run does and was not shown when it was approved; ``None`` if there is nothing.

    A run may do less than was shown: fewer columns may flow into a row than seemed possible.

    Args:
        approved: the rows of an approval.
        requests: what the rules are asked about the run.
    """
    shown: dict[str, list[Mapping[str, Any]]] = {}
    for row in approved:
        shown.setdefault(_same(row), []).append(row)
    for request in requests:
        row = told(request)
        if not any(_covers(each, row) for each in shown.get(_same(row), ())):
            return request
    return None


def _same(row: Mapping[str, Any]) -> str:
    """Return the part of a row that has to be as it was shown."""
    kept = {name: value for name, value in row.items() if name not in LEFT_OUT + MAY_BE_LESS}
    if row["action"] in SENDS:
        kept["action"] = SENDS
    return json.dumps(kept, sort_keys=True)


def _covers(shown: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    subsets = all(set(row.get(name, ())) <= set(shown.get(name, ())) for name in SUBSETS)
    return (
        subsets
        and row["action"] in (shown["action"], "forward")  # none of the party's own data
        and row.get("discloses", False) <= shown.get("discloses", False)
        and row.get("k", 0) >= shown.get("k", 0)
        and row.get("max_share", WHOLE) <= shown.get("max_share", WHOLE)
        and set(row.get("declassifiers", ())) >= set(shown.get("declassifiers", ()))
    )
