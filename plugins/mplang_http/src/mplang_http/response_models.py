"""What a worker answers, for its OpenAPI description."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from pydantic import BaseModel

from mplang_http.requests import JobRequest, SessionRequest

__all__ = [
    "Facts",
    "Health",
    "JobStatus",
    "Jobs",
    "Opened",
    "Put",
    "Refused",
    "Released",
    "Taken",
    "request_schemas",
]


class Health(BaseModel):
    """Whether a worker is up."""

    name: str
    state: Literal["starting", "ready", "ended"]
    silence: float
    restarts: int


class Plugin(BaseModel):
    """A plugin that is installed."""

    name: str
    group: str
    distribution: str | None
    version: str | None


class Facts(BaseModel):
    """What a worker is. ``alike`` is what all parties have in common, or do not fit."""

    name: str
    python: str
    alike: dict[str, Any]
    plugins: list[Plugin]
    dialects: list[str] | None
    insecure: bool
    limits: dict[str, int]
    timeouts: dict[str, float]


class Taken(BaseModel):
    """A program was taken in."""

    digest: str


class Opened(BaseModel):
    """A session is open; it ends when nothing is heard of the coordinator for ``lease`` seconds."""

    generation: int
    lease: float


class Released(BaseModel):
    """How many values were let go of."""

    released: int


class Put(BaseModel):
    """A value was taken in."""

    type: str


class Place(BaseModel):
    """An op, and its line in the coordinator's source."""

    op: str | None
    location: str | None


class Failure(Place):
    """Why a job failed."""

    kind: str
    text: str


class Traffic(BaseModel):
    """What went between this party and another: bytes, and in how many messages."""

    sent: int
    sent_messages: int
    received: int
    received_messages: int


class JobStatus(BaseModel):
    """How a job is. ``held`` says per result whether this party has it; ``links`` is by rank."""

    run: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    held: list[bool]
    error: Failure | None
    program: str | None = None
    at: Place | None = None
    begun: float | None = None
    ended: float | None = None
    now: float | None = None
    links: dict[str, Traffic] = {}


class Jobs(BaseModel):
    """The last jobs of a session, and how many values it holds."""

    jobs: list[JobStatus]
    values: int


class Why(BaseModel):
    """A word for programs, and a text for people."""

    code: str
    text: str


class Refused(BaseModel):
    """It is not done."""

    error: Why


def request_schemas() -> dict[str, Any]:
    """Return the schemas of what a coordinator sends."""
    _, found = msgspec.json.schema_components(
        [SessionRequest, JobRequest], ref_template="#/components/schemas/{name}"
    )
    return found
