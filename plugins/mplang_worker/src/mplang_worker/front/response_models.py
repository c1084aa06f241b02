"""Responses of a worker's HTTP API, for its OpenAPI description.

The names of the classes are those of the components in ``/openapi.json``.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from mplang_core.ext import Refusal
from mplang_worker.base.config import WorkerMode

WorkerState: TypeAlias = Literal["starting", "ready", "draining", "ended"]


class FailedRuns(Struct):
    """Failed runs of the coordinator that asks, and how many it may have."""

    used: int
    limit: int


class LogAlarm(Struct):
    """Log that was set back: of a ``peer``, or the worker's ``own``.

    ``party`` is the peer, or who remembers more of the worker's. ``run`` has shown it; it is empty
    for other coordinators.
    """

    log: Literal["own", "peer"]
    party: str
    run: str


class Health(Struct):
    """State of a worker: ``ready`` if sessions can be opened, ``draining`` after SIGTERM.

    ``sessions`` are open, ``crashes`` ended unexpectedly or passed a limit. ``native`` are the
    native services of the client's sessions. ``failures`` is ``null`` if the client is no
    coordinator. ``expires`` is when the worker's certificate does; ``null`` without TLS. ``gate``
    is ``shut`` while the owner has to mend rules or log. ``configuration`` is ``refused`` while its
    file was changed and is wrong, so that the one before counts. ``missing`` are the sections that
    lack something: a source of ``data``, a disk of ``gate`` or ``sink``. ``logs`` are those that
    were set back, for coordinators.
    """

    name: str
    mode: WorkerMode
    state: WorkerState
    sessions: int
    crashes: int
    native: list[str]
    failures: FailedRuns | None
    expires: str | None
    gate: Literal["none", "open", "shut"]
    configuration: Literal["current", "refused"]
    missing: list[str]
    logs: list[LogAlarm]


class OpenJob(Struct):
    """Job that has not ended."""

    run: str
    session: str
    state: str


class OpenJobs(Struct):
    """Jobs of a coordinator that have not ended."""

    jobs: list[OpenJob]


class Ready(Struct):
    """State of a worker, for probes: ``lacking`` while what its sections need is not there.

    ``logs`` has ``peer`` if a peer's log was set back, and ``own`` if this worker's was.
    """

    state: Literal["starting", "ready", "lacking", "draining", "ended"]
    logs: list[Literal["own", "peer"]] = []


class Plugin(Struct):
    """An installed plugin."""

    name: str
    group: str
    distribution: str | None
    version: str | None


class Facts(Struct):
    """Description of a worker. ``alike`` has to be the same at all parties.

    ``compatible`` has the oldest versions that its packages declare to fit, ``pass_versions`` the
    numbers of their passes.
    """

    name: str
    python: str
    alike: dict[str, Any]
    compatible: dict[str, str]
    pass_versions: dict[str, str]
    plugins: list[Plugin]
    native: list[str]
    dialects: list[str] | None
    insecure: bool
    mode: WorkerMode
    limits: dict[str, int | None]
    timeouts: dict[str, float]
    data: dict[str, Any]
    stored: dict[str, Any]


class Taken(Struct):
    """Acknowledgement of a program."""

    digest: str


class Counts(Struct):
    """Whether an approval is one of this party, signed by enough."""

    counts: bool


class OpenedCredential(Struct):
    """Credential of a session's key: the name of its end of the links, and certificates in PEM.

    ``gate`` is the public key of the party's gate in hex, empty without one.
    """

    link: str
    certificates: list[str]
    gate: str


class Opened(Struct):
    """An open session, which is to be linked to those of all parties.

    ``credential`` is that of its engine, ``native`` of its MPC processes that have links, by native
    service.
    """

    credential: OpenedCredential
    native: dict[str, OpenedCredential]


class Alive(Struct):
    """An open session; ``busy`` if its process has yet to answer a request."""

    busy: bool


class Joined(Struct):
    """A session that is linked. It ends after ``lease`` seconds without a request."""

    generation: int
    lease: float


class Released(Struct):
    """Number of values that were released, and whether the processes of the session are linked."""

    released: int
    linked: bool


class Put(Struct):
    """Type of a value that was stored."""

    type: str


class Place(Struct):
    """Location of an op: its name, and its line in the coordinator's source."""

    op: str | None
    location: str | None


class Failure(Place):
    """Error of a job, with the op that raised it, or what the owner's rules refuse of it."""

    kind: str
    text: str
    refusals: list[Refusal] = []


class Traffic(Struct):
    """Traffic between this party and a peer: bytes and messages."""

    sent: int
    sent_messages: int
    received: int
    received_messages: int


class JobStatus(Struct):
    """Status of a job.

    ``held`` says per result whether this party has it, ``receipt`` what the gate has signed of its
    log once the run is on record there. Only a worker that is ``observable`` tells the rest:
    ``at``, the op under way, ``links``, the traffic by the peer's rank, and ``begun``, ``ended``
    and ``now``, seconds of its clock.
    """

    run: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    held: list[bool]
    error: Failure | None
    observable: bool
    receipt: str = ""
    program: str | None = None
    at: Place | None = None
    begun: float | None = None
    ended: float | None = None
    now: float | None = None
    links: dict[str, Traffic] = {}


class Jobs(Struct):
    """The last jobs of a session, and the number of its values."""

    jobs: list[JobStatus]
    values: int


class Why(Struct):
    """Error code for programs, a text for people, and what the owner's rules refuse."""

    code: str
    text: str
    refusals: list[Refusal] = []


class Refused(Struct):
    """Error response."""

    error: Why
