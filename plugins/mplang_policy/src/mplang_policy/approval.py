"""Approval: what an owner signs, so that one program may run for one coordinator."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AwareDatetime, Field, ValidationError, model_validator

from mplang_core.ext import ConfigError, StrictModel
from mplang_policy.request import Request, told

Digest: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Number: TypeAlias = bool | int | float


class AllowedInput(StrictModel):
    """What a public input of a program may be.

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
            return f"{self.name} is too large to be looked at, and may be {self.shown}"
        for each in numbers:
            if self.values:
                fits = each in self.values
            else:
                assert self.low is not None
                assert self.high is not None
                fits = self.low <= each <= self.high  # not NaN
            if not fits:
                return f"{self.name} is {each:g}, and may be {self.shown}"
        return ""


class Approval(StrictModel):
    """What an owner has reviewed and allows.

    Attributes:
        version: version of this format.
        id: what it is called; random.
        party: whose approval it is.
        program: digest of the program.
        name: its name.
        shown: SHA-256 of the names and lines that were shown.
        rows: SHA-256 of what the program does at the party, as the rules are asked about it.
        parties: names of the parties, by rank.
        coordinators: who may run it.
        data_sets: the data sets that it reads here.
        inputs: what its public inputs may be, by position.
        versions: versions of the packages that run it here.
        uses: how often it may run.
        made: when it was signed first.
        expires: until when it may run.
    """

    version: Literal[1] = 1
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    party: str
    program: Digest
    name: str
    shown: Digest
    rows: Digest
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
            raise ConfigError(f"no approval: {error.error_count()} wrong fields") from None


def rows_of(requests: Sequence[Request]) -> str:
    """Return the SHA-256 of what a program does at a party, in hex.

    Args:
        requests: what the rules of the party are asked.
    """
    rows = []
    for each in requests:
        row = told(each)
        rows.append(
            {name: value for name, value in row.items() if name not in ("line", "approved")}
        )
    return _sha256(rows)


def _sha256(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def differences(
    approval: Approval, versions: Mapping[str, str], now: datetime.datetime
) -> list[str]:
    """Return why an approval does not count here and now, whatever the program.

    Args:
        approval: the approval.
        versions: versions of the packages that run programs here.
        now: the time.
    """
    wrong = []
    if approval.expires <= now:
        wrong.append(f"it expired on {approval.expires:%Y-%m-%d %H:%M} UTC")
    for name, version in approval.versions.items():
        if versions.get(name) != version:
            here = versions.get(name, "not installed")
            wrong.append(f"it was made for {name} {version}, here is {here}")
    return wrong
