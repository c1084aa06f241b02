"""Protocols of sections of a worker's configuration, which packages bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias, runtime_checkable

from mplang_analysis import DataQuestion, RunRequest, StorageUse, Stored

from mplang_worker.base.lineage_protocols import RunLineage
from mplang_worker.base.owner_protocols import OwnerControl, OwnerStops

Ask: TypeAlias = Callable[
    [str, Mapping[str, Any], Sequence[int]], tuple[Mapping[str, Any], Sequence[int]]
]
"""Question of an engine to the front: method, arguments, which are plain data, and descriptors of
sealed memory files; returns fields, and descriptors of open files, which the caller closes. The
fields have a text ``failed`` if the front cannot answer. ``OSError`` is raised if not all files
could be passed on.
"""

Answer: TypeAlias = tuple[dict[str, Any], Sequence[int], Callable[[], None] | None]
"""Answer of the front: fields, which are plain data, descriptors of open files, which are closed
once they were sent, and what is called in a thread afterwards, such as to write into a pipe.
"""


class Asker(NamedTuple):
    """Session whose engine asks the front.

    Attributes:
        coordinator: name of its coordinator.
        session: name of the session, which no other has.
        parties: names of its parties, by rank.
        rank: rank of this party.
    """

    coordinator: str
    session: str
    parties: Sequence[str]
    rank: int


@runtime_checkable
class Section(Protocol):
    """Section of a worker's configuration: an entry point of ``mplang.sections``, named as its key.

    The front, which has keys and files, and the engines, which run what coordinators send, are
    processes apart: :meth:`front` makes what answers, and :meth:`engine` what asks.

    Example:
        >>> class Greeting:
        ...     def read(self, fields, folder):
        ...         return {"text": str(fields["text"])}
        ...     def front(self, fields, worker):
        ...         return Greeter(fields["text"])
        ...     def engine(self, ask):
        ...         return lambda: ask("text", {}, ())[0]["text"]
        >>> class Greeter:
        ...     def __init__(self, text):
        ...         self.text = text
        ...     def answer(self, asker, method, args, files):
        ...         return {"text": f"{self.text}, {asker.coordinator}"}, (), None
        ...     def release(self, session):
        ...         pass
        >>> isinstance(Greeting(), Section), isinstance(Greeter("hello"), Provider)
        (True, True)
    """

    def read(self, fields: Any, folder: str) -> Any:
        """Return the section, validated, as plain data that :meth:`read` takes again.

        Args:
            fields: what the configuration has under the key.
            folder: the folder that its paths are relative to; those that are returned are absolute.

        Raises:
            ConfigError: a field is invalid. The text begins with ``field 'NAME…'``, and has no
                secret in it.
        """

    def front(self, fields: Any, worker: Mapping[str, Any]) -> object:
        """Return what answers engines in the front, a :class:`Provider`.

        Args:
            fields: the section, as :meth:`read` returns it.
            worker: the worker's whole configuration, as plain data.

        Raises:
            ConfigError: the worker cannot start with it.
        """

    def engine(self, ask: Ask) -> object:
        """Return what kernels of an engine reach as ``ctx.interpreter.data.sections[NAME]``.

        Args:
            ask: asks what :meth:`front` returned, and waits.
        """


@runtime_checkable
class Provider(Protocol):
    """Service in the front that answers the engines of a worker's sessions. Safe for threads."""

    def answer(
        self, asker: Asker, method: str, args: Mapping[str, Any], files: Sequence[int]
    ) -> Answer:
        """Return the answer to a question of an engine.

        Args:
            asker: the session of the engine. A coordinator's code may have taken an engine over:
                what it may know is what ``asker.coordinator`` may know.
            method: what is asked for; untrusted.
            args: plain data; untrusted.
            files: descriptors of sealed memory files, which the caller closes.

        Raises:
            Exception: any; the engine is told that it cannot be answered, and no more.
        """

    def release(self, session: str) -> None:
        """Release what a session holds, as it has ended.

        Args:
            session: its name, as in :class:`Asker`.
        """


@runtime_checkable
class Reloadable(Protocol):
    """Provider or gate whose section may change while the worker runs.

    Of another one a changed section counts from a restart only.
    """

    def reload(self, fields: object, worker: Mapping[str, object]) -> Callable[[], None]:
        """Return what makes a changed configuration count; called in a thread.

        It is called whenever something of the configuration changes, also of another section. What
        it returns is called if all sections can take theirs, and may not fail.

        Args:
            fields: the section, as :meth:`Section.read` returns it.
            worker: the worker's whole configuration, as plain data.

        Raises:
            ConfigError: it is wrong, so that what counted before goes on counting.
        """


@runtime_checkable
class Probed(Protocol):
    """Section in the front that can test whether its resources are available."""

    def missing(self) -> Mapping[str, str]:
        """Return what is not there now, and why, for the owner; it is in the worker's log.

        It is called in a thread, every half minute, and reads no data.
        """


@runtime_checkable
class DataProvider(Provider, Protocol):
    """Data sets of a worker, in its front: what the section ``data`` makes there.

    It answers ``read`` with ``name`` and ``type`` of what is read.
    """

    def check(self) -> None:
        """Compare the data sets with their sources, before the worker starts.

        Raises:
            ConfigError: a source is not there, or does not hold what the configuration says.
        """

    def descriptions(self, coordinator: str) -> Mapping[str, Any]:
        """Return what a coordinator may know of the data sets that it may read, by name.

        Args:
            coordinator: its name.
        """

    def question(self, method: str, args: Mapping[str, Any]) -> DataQuestion:
        """Return what an engine asks, as ``mplang_analysis.data_questions`` tells it of programs.

        Args:
            method: what it asks for; untrusted.
            args: arguments of the question; untrusted.
        """


@runtime_checkable
class Store(Provider, Protocol):
    """Storage of a worker, in its front: what the section ``sink`` makes there.

    Each question has the ``name`` of what is stored, or is ``stage``, with an ``entry`` that has
    it, or ``done``: the run has ended.
    """

    def start(self) -> None:
        """Catch up with what an earlier process of the worker has left; called in a thread."""

    def entries(self, coordinator: str) -> Mapping[str, dict[str, Any]]:
        """Return what a coordinator has stored, by name, as plain data.

        Args:
            coordinator: its name.
        """

    def versions(self, asker: Asker, name: str) -> list[Any]:
        """Return the versions of a value that are here, as the party tells them to the others.

        Args:
            asker: the session that may load one of them.
            name: name of the value.
        """


@runtime_checkable
class StoreClient(Protocol):
    """Storage of a party in an engine: what the section ``sink`` makes there."""

    def versions(self, name: str) -> list[Any]:
        """Return the versions of a value that are here, as the party tells them to the others.

        Args:
            name: name of the value.

        Raises:
            AdmissionError: what is stored cannot be read.
        """

    def begin_run(
        self,
        run: str,
        program: str,
        parties: Sequence[str],
        loads: Mapping[StorageUse, str],
        stores: Stored,
    ) -> None:
        """Open the storage for the ops of a run.

        Args:
            run: the name of the run.
            program: the digest of its program.
            parties: names of the parties, by rank.
            loads: the versions that it loads, by the use.
            stores: the labels of what it stores.
        """

    def end_run(self) -> None:
        """Release the versions that the run might have loaded."""


@runtime_checkable
class Gate(Protocol):
    """Gate of a worker: what the section ``gate`` makes in the front. Safe for threads.

    Engines do not know it: the front asks it before an engine may do anything.
    """

    def refuses(self) -> str:
        """Return why nothing may run here now, for the owner; empty if that is not so."""

    def close(self) -> None:
        """Close the log."""

    @property
    def public_key(self) -> str:
        """The public key by which it signs what it tells of its log, in hex."""

    @property
    def lineage(self) -> RunLineage:
        """Lineage of stored values."""

    @property
    def stops(self) -> OwnerStops:
        """Stops by the owner."""

    @property
    def owner(self) -> OwnerControl:
        """Interface for the owner while the worker runs."""

    def seen(self, peers: Sequence[str]) -> Mapping[str, str]:
        """Return by its name what is remembered of each peer's log, as the peer has sealed it.

        Args:
            peers: names of the peers.

        Raises:
            AdmissionError: the log cannot be read.
        """

    def note_configuration(self, fields: Mapping[str, Any]) -> None:
        """Append to the log that the configuration of the worker changes, before it counts.

        Args:
            fields: the worker's configuration, as plain data.

        Raises:
            AdmissionError: it cannot be recorded.
        """

    def note(self, subject: str, about: Mapping[str, Any]) -> None:
        """Append to the log what has changed of the worker, if it has since the last such entry.

        Args:
            subject: what it is about, such as ``certificates``.
            about: plain data.

        Raises:
            AdmissionError: it cannot be recorded.
        """

    def open_approval(self, data: bytes, coordinator: str = "") -> Any:
        """Return an approval, which has an ``id``; ``None`` if it is none of this party.

        Args:
            data: untrusted bytes.
            coordinator: who passes it on.

        Raises:
            AdmissionError: it is not an approval.
        """

    def decide(self, run: RunRequest) -> Any:
        """Return a :class:`Decision` on a run.

        Args:
            run: what it would do.

        Raises:
            AdmissionError: it cannot be decided.
        """

    def uses_up(self, run: RunRequest, decision: Any) -> bool:
        """Return whether a run uses up an approval or a budget, so that it waits for the others.

        Args:
            run: the run.
            decision: that it is allowed.
        """

    def begin(self, run: RunRequest, decision: Any) -> tuple[bytes, str]:
        """Append a run to the log before it begins.

        Args:
            run: the run.
            decision: that it is allowed.

        Returns:
            What the gate has signed of its log, which contains the run, for the peers; and the
            coordinator's receipt, a line of text.

        Raises:
            AdmissionError: it cannot be recorded, so it does not begin.
        """

    def refuse(
        self, run: RunRequest, decision: Any, paths: Sequence[Sequence[str]] = ()
    ) -> NoReturn:
        """Append to the log that a run is refused.

        Args:
            run: the run.
            decision: that it is refused.
            paths: for each of the decision's sources the lines by which it leaves.

        Raises:
            AdmissionError: always; the text tells the coordinator why.
        """

    def put(self, coordinator: str, session: str, name: str, size: int, mode: str) -> None:
        """Decide on a value that a coordinator puts here, and append it to the log.

        Args:
            coordinator: who puts it.
            session: name of its session.
            name: name of the value.
            size: its size in bytes.
            mode: mode of the worker.

        Raises:
            AdmissionError: it may not be put.
        """

    def end(
        self,
        coordinator: str,
        about: Mapping[str, Any],
        run: str,
        heads: Mapping[str, tuple[bytes, str]],
    ) -> None:
        """Append the end of a run to the log, with what its peers told of theirs meanwhile.

        Args:
            coordinator: whose run it is.
            about: plain data; nothing if the end is on record already.
            run: name of the run at all parties.
            heads: by the name of a peer what its gate has signed, untrusted, and the public key of
                that gate.

        Raises:
            AdmissionError: it cannot be recorded.
        """

    def record(self, kind: str, about: Mapping[str, Any]) -> None:
        """Append to the log what was decided before, such as a fetch or a run's end.

        Args:
            kind: what it is.
            about: plain data.

        Raises:
            AdmissionError: it cannot be recorded, so it may not happen.
        """

    def alarms(self) -> Sequence[tuple[str, str, str]]:
        """Return which logs were set back, and that is not cleared up.

        Returns:
            Of each ``peer`` with its name, or ``own`` with who remembers more of it; and the name
            at all parties of the run that has shown it.

        Raises:
            AdmissionError: the log cannot be read.
        """


@runtime_checkable
class Decision(Protocol):
    """Decision of a gate on a run."""

    @property
    def approval_id(self) -> str:
        """Name of the approval that the run rests on; empty if it needs none."""

    @property
    def allowed(self) -> bool:
        """Whether the run may begin."""

    def sources(self) -> Sequence[tuple[str, int, str] | None]:
        """Return for each refusal the line of its row, and party and name of some of its data."""


@runtime_checkable
class DataSection(Section, Protocol):
    """Section ``data``: data sets that programs may name.

    :meth:`Section.engine` returns what has ``read`` and ``query``, as kernels of data sets take it.
    """

    def front(self, fields: Any, worker: Mapping[str, Any]) -> DataProvider:
        """Return the data sets; see :meth:`Section.front`."""


@runtime_checkable
class StoreSection(Section, Protocol):
    """Section ``sink``: where programs leave results that stay."""

    def front(self, fields: Any, worker: Mapping[str, Any]) -> Store:
        """Return the storage; see :meth:`Section.front`."""

    def engine(self, ask: Ask) -> StoreClient:
        """Return the storage of the engine's coordinator; see :meth:`Section.engine`."""

    def resolve(
        self,
        loads: Sequence[StorageUse],
        names: Sequence[str],
        stored: Mapping[int, Mapping[str, Any]],
    ) -> tuple[Mapping[StorageUse, str], Stored]:
        """Return the versions that a run loads, and their labels, the same at all parties.

        Args:
            loads: what it loads.
            names: names of the parties, by rank.
            stored: by rank and name the versions that the parties tell; untrusted.

        Raises:
            AdmissionError: what it loads is not there, or not of one run at all members.
            WireError: what a party tells is malformed.
        """


@runtime_checkable
class GateSection(Section, Protocol):
    """Section ``gate``: how the owner decides what runs."""

    def front(self, fields: Any, worker: Mapping[str, Any]) -> Gate:
        """Return the gate; see :meth:`Section.front`."""
