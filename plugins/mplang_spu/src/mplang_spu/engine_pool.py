"""Pool of SPU engines, one per job, over links that all members open in the same order."""

from __future__ import annotations

import hashlib
import json
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from mplang_analysis import Network, differences, network_of

from mplang_core import Mask
from mplang_core.ext import AdmissionError, Communicator, RunError
from mplang_spu.config import ENV, admit_protocol
from mplang_spu.engine import Engine
from mplang_spu.link import LinkCommunicator, Mode, choose
from mplang_spu.oblivious_transfer import Way, cheapest_way
from mplang_spu.process_exit import awaited_at_exit
from mplang_spu.public import digest_of

PROCESS = uuid.uuid4().hex  # memory links connect threads of one process only

PUBLIC = "public operands"

MANY = 1e18  # comparisons, beyond what anybody runs

_listening: weakref.WeakValueDictionary[str, Engine] = weakref.WeakValueDictionary()


class Party(Protocol):
    """Party that runs jobs: a worker's interpreter, or the party of a native service."""

    @property
    def rank(self) -> int:
        """This party's rank."""

    @property
    def communicator(self) -> Communicator:
        """The transport to the other members."""

    @property
    def insecure(self) -> bool:
        """Whether protocols and links for debugging are allowed."""

    @property
    def timeout(self) -> float:
        """Seconds that links in memory, and of BRPC, wait."""

    @property
    def resources(self) -> dict[Any, Any]:
        """Where engines are kept between jobs."""


@dataclass(frozen=True, slots=True)
class Job:
    """Op that the members of an SPU run jointly.

    Attributes:
        key: the op's message key, ``run/position``.
        parties: the members.
        config: of the device.
        program: the digest of the code. Like the storages it must be equal at all members: libspu
            ends the process if they run different programs, or shares in different storages.
        storages: the storage of each operand, ``None`` for a public one.
        public: the operands that all members know.
        comparisons: what the code takes as long as, see :func:`comparisons_of`.
    """

    key: str
    parties: Mask
    config: Mapping[str, Any]
    program: str
    storages: Sequence[str | None]
    public: Sequence[np.ndarray[Any, Any]] = ()
    comparisons: float = 0.0

    @property
    def run(self) -> str:
        """The run that the op belongs to."""
        return self.key.partition("/")[0]

    @property
    def content(self) -> dict[str, str]:
        """What must be equal at all members beside the settings, by name."""
        storages = hashlib.sha256(json.dumps(list(self.storages)).encode()).hexdigest()
        public = {PUBLIC: digest_of(self.public)} if self.public else {}
        return {"program": self.program, "storages": storages, **public}


@contextmanager
def acquire_engine(party: Party, job: Job) -> Iterator[Engine]:
    """Acquire a party's engine for one job.

    A link is cheap, but protocols set up state on it (CHEETAH: up to seconds), so engines are
    reused. After a failed job an engine is discarded, maybe at some members only. So before each
    job the members exchange the names of their links, and open a new one unless all names are
    equal, or if CHEETAH is to make its oblivious transfers in another way from now on. What is
    held on the former one stays there. Concurrent jobs use separate engines.

    Args:
        party: this party.
        job: the job.

    Yields:
        The engine. It returns to the pool if the job succeeds.

    Raises:
        RunError: the members' settings or jobs differ.
        AdmissionError: this worker does not allow such links, or the protocol.
    """
    admit_protocol(job.config["protocol"], party.insecure)
    mode = choose(job.config, _in_memory(party, job.run))
    _admit(mode, party.insecure)
    key = "spu", job.parties, mode, json.dumps(dict(job.config), sort_keys=True)
    engine: Engine | None = party.resources.pop(key, None)
    if engine is not None and not engine.acquire(job.key):
        engine = None
    try:
        before = ("", 0.0) if engine is None else (engine.name, engine.compared)
        offer = Offer(before[0], before[1] + job.comparisons, _settings(mode, job))
        same, compared = _agree(party, job, offer)
        ot = _way(job.config, compared, mode, engine if same else None)
        if engine is None or not same or engine.ot != ot:
            if engine is not None:
                _leave(engine, same)
                engine = None
            engine = _create_engine(party, job, mode, ot)
        engine.compared = compared
        with awaited_at_exit(job.key, len(job.parties) if mode == "memory" else None):
            yield engine
    except BaseException:
        if engine is not None:
            engine.close()
        raise
    finally:
        if engine is not None:
            engine.release()
    party.communicator.forget(job.key)
    party.resources[key] = engine


def _in_memory(party: Party, run: str) -> bool:
    """Return whether a party's communicator lets SPU link the members in memory."""
    lets = getattr(party.communicator, "links_in_memory", None)
    return lets is not None and bool(lets(run))


def _admit(mode: Mode, insecure: bool) -> None:
    if mode == "brpc" and not insecure:
        raise AdmissionError(
            "BRPC links are neither encrypted nor authenticated; leave use_mplang_channel and "
            f"{ENV} as they are, or to debug, set insecure: true at every worker",
            code="A007",
        )


def _way(config: Mapping[str, Any], compared: float, mode: Mode, engine: Engine | None) -> Way:
    """Return how CHEETAH makes oblivious transfers from now on: all members find the same."""
    chosen: Way | Literal["auto"] = config.get("ot") or "auto"
    if chosen != "auto":
        return chosen
    if engine is not None and (engine.ot == "ferret" or mode == "brpc"):  # one at an address
        return engine.ot
    link = config.get("link")
    network = network_of(Network(**link) if isinstance(link, Mapping) else link)
    return cheapest_way(network, compared)


def _leave(engine: Engine, holds_shares: bool) -> None:
    """Give an engine up; one that works keeps the shares of this run, and is gone with them."""
    if holds_shares:
        engine.release()
    else:
        engine.close()


def _settings(mode: Mode, job: Job) -> dict[str, str]:
    """Return the settings and contents that must be equal at all members."""
    way = f"memory of process {PROCESS}" if mode == "memory" else mode
    config = {key: str(value) for key, value in sorted(job.config.items())}
    return {"link": way, **config, **job.content}


class Offer(NamedTuple):
    """Message of a member before a job.

    Attributes:
        link: the name of the link that it has; empty if it has none.
        compared: the comparisons of its jobs, this one included.
        settings: what must be equal at all members.
    """

    link: str
    compared: float
    settings: Mapping[str, str]


def _agree(party: Party, job: Job, mine: Offer) -> tuple[bool, float]:
    """Return whether all members hold the link of one name, and the most that one has compared.

    Raises:
        RunError: the members' settings differ.
    """
    # receive from all before raising, so that all members fail for the same reason
    message = json.dumps(mine).encode()
    replies = _exchange(party, job, "link", message)
    if all(isinstance(reply, bytes) and reply == message for reply in replies.values()):
        return mine.link != "", mine.compared
    replies[party.rank] = message  # also what is cut off of long settings
    offers = {rank: _parse_offer(reply) for rank, reply in replies.items()}
    by_rank = {rank: offers[rank].settings for rank in sorted(offers)}
    table = differences({f"party {rank}": each for rank, each in by_rank.items()})
    if table and len({each.get(PUBLIC) for each in by_rank.values()}) > 1:
        raise RunError(
            "the members of this SPU have different values of a public input, so the result would "
            "be wrong; floats that each of them computes may differ in the last bit. Compute it at "
            f"one party, and mp.put it at the others, or mp.seal it:\n{table}",
            code="R015",
        )
    if table:
        raise RunError(
            f"the members of this SPU do not fit together; set {ENV} alike at all workers, and "
            "give brpc_addresses where it is 0; programs and the storages of shares differ where "
            f"a party or the coordinator is dishonest:\n{table}",
            code="R015",
        )
    same = mine.link != "" and all(each.link == mine.link for each in offers.values())
    return same, max(each.compared for each in offers.values())


def _exchange(party: Party, job: Job, topic: str, mine: bytes) -> dict[int, Any]:
    """Send a message to the other members, and return theirs by rank."""
    comm, key = party.communicator, f"{job.key}?{topic}"
    others = [rank for rank in job.parties if rank != comm.rank]
    for rank in others:
        comm.send(rank, key, mine)
    return {rank: comm.recv(rank, key) for rank in others}


def _parse_offer(message: Any) -> Offer:
    try:
        link, compared, settings = json.loads(message)
        texts = {str(key)[:100]: str(value)[:100] for key, value in settings.items()}
        return Offer(str(link), max(0.0, min(float(compared), MANY)), texts)  # 0 for NaN
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return Offer("", 0.0, {"link": "nothing of use"})


def _create_engine(party: Party, job: Job, mode: Mode, ot: Way) -> Engine:
    """Create an engine for this job, on a new link named by the job's key."""
    parties, config = job.parties, job.config
    options: dict[str, Any] = {"name": job.key, "timeout": party.timeout}
    if mode == "channels":
        link = LinkCommunicator(party.rank, comm=party.communicator, spu_mask=parties, **options)
        engine = Engine(link, config, ot)
    else:
        addresses = config.get("brpc_addresses") or [f"P{rank}" for rank in parties]
        mine = parties.global_to_relative_rank(party.rank)
        if mode == "brpc":
            _release_address(addresses[mine], party.timeout)
            _exchange(party, job, "free", b"!")  # connecting earlier would reach the old link
        link = LinkCommunicator(mine, addresses, mem_link=mode == "memory", **options)
        engine = Engine(link, config, ot)
        if mode == "brpc":
            _listening[addresses[mine]] = engine
    engine.acquire(job.key)
    return engine


def _release_address(address: str, timeout: float) -> None:
    """Close the engine of this process that listens at an address, after its job."""
    engine = _listening.pop(address, None)
    if engine is not None and engine.acquire("", timeout):
        engine.close()
