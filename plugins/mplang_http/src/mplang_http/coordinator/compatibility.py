"""Whether the parties fit together: versions, settings and plugins, compared in one table."""

from __future__ import annotations

import functools
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

from mplang_analysis import StorageUse, Stored, differences, storage_of
from mplang_analysis.ext import quoted, shortened

from mplang_core import Program
from mplang_core.ext import CORE, SECTIONS, ConfigError, plugin_manager, printable
from mplang_http.base.plugin_versions import OWN, USED, Versions, installed, may_differ, misfits
from mplang_http.wire.versions import own_versions

COORDINATOR = "(coordinator)"  # no worker can have this name
MAX_TEXT, MAX_ROWS = 4000, 1000  # characters and number of what a worker tells
MAX_CELL = 60  # bytes of a text that a table shows; its length and SHA-256 follow if it has more
MAX_SETTINGS = 20  # that there is advice on
NOT_SET = "not set"
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,60}")  # of the environment
PACKAGES = {"wire": (CORE,), "link": OWN}
"""The packages whose versions bring a protocol."""


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """Facts that a worker reports of itself.

    Attributes:
        name: name of the party.
        versions: versions and settings that have to fit together at all parties.
        plugins: version by distribution.
        families: names of the plugins, which are prefixes of the ops that they bring.
        mode: ``production`` or ``development``.
        data: what it tells of the data sets that the coordinator may read, by name.
        stored: what it tells of the values that the coordinator has stored, by name.
    """

    name: str
    versions: Versions
    plugins: Mapping[str, str]
    families: frozenset[str]
    mode: str
    data: Mapping[str, Any]
    stored: Mapping[str, Any]

    @classmethod
    def read(cls, name: str, facts: Mapping[str, Any]) -> WorkerFacts:
        """Read the response of ``/facts``; what is malformed raises a builtin exception."""
        alike, plugins, since = facts["alike"], facts["plugins"], facts.get("compatible", {})
        passes = facts.get("pass_versions", {})
        if max(map(len, (alike, plugins, since, passes))) > MAX_ROWS:
            raise ValueError("too much")
        there = {_cell(key): _cell(value) for key, value in alike.items()}
        oldest = {_cell(key): _cell(value) for key, value in since.items()}
        packages = set(map(itemgetter("distribution", "version"), plugins))
        groups = set(map(itemgetter("group", "distribution"), plugins))
        versions = {_cell(package): _cell(version) for package, version in packages}
        return cls(
            name,
            Versions(
                there,
                oldest,
                may_differ([(str(group), _cell(package)) for group, package in groups]),
                {_cell(key): _cell(value) for key, value in passes.items()},
            ),
            versions,
            frozenset(map(str, map(itemgetter("name"), plugins))),
            str(facts["mode"]),
            facts["data"],
            facts.get("stored", {}),
        )


class DataSection(Protocol):
    """Section ``data`` of a worker's configuration, as a coordinator uses it."""

    def catalogue(self, parties: Mapping[str, tuple[Any, Any]]) -> Any:
        """Return the catalogue of what workers tell of data sets and stored values, by party."""


class StoreSection(Protocol):
    """Section ``sink`` of a worker's configuration, as a coordinator uses it."""

    def labels(
        self,
        loads: Sequence[StorageUse],
        names: Sequence[str],
        stored: Mapping[int, Mapping[str, Any]],
    ) -> Stored:
        """Return the labels of what a program loads, by what workers tell, by rank."""


def known_data(workers: list[WorkerFacts]) -> Any:
    """Return the catalogue that the workers tell; ``None`` where no program can name a data set.

    Raises:
        ConfigError: a worker tells none; names it.
    """
    section: DataSection | None = plugin_manager.entry(SECTIONS, "data")
    if section is None:
        return None
    return section.catalogue({each.name: (each.data, each.stored) for each in workers})


def stored_labels(program: Program, workers: list[WorkerFacts]) -> Stored:
    """Return the labels of what a program loads, as the workers tell; what they do not is left out.

    Args:
        program: the program.
        workers: the workers by rank.
    """
    loads = [use for use in storage_of(program) if use.action == "load"]
    section: StoreSection | None = plugin_manager.entry(SECTIONS, "sink") if loads else None
    if section is None:
        return {}
    names, stored = [each.name for each in workers], [each.stored for each in workers]
    return section.labels(loads, names, dict(enumerate(stored)))


def check_parties(workers: list[WorkerFacts]) -> None:
    """Check that the versions of all parties fit together, and the settings of the workers.

    They are the same, or the newer package declares that the older one fits. What a party does not
    have counts for nothing: it may not need it. Settings are those of kernels, which a coordinator
    does not run.

    Raises:
        ConfigError: they differ; with a table, and what to install where.
    """
    own = own_versions()
    wrong = misfits([own, *(each.versions for each in workers)])
    if not wrong:
        return
    mine, told = own.there, {COORDINATOR: own.there}
    told |= {each.name: each.versions.there for each in workers}
    rows = {
        party: {n: shortened(v, MAX_CELL) for n, v in has.items() if n in wrong}
        for party, has in told.items()
    }
    table = differences(rows)
    wanted = {each for name in wrong for each in PACKAGES.get(name, (name,))}
    others = {
        party: {n: mine[n] for n in sorted(wanted & mine.keys()) if has.get(n, mine[n]) != mine[n]}
        for party, has in told.items()
        if party != COORDINATOR
    }
    advice = [
        *_advice("to have the coordinator's versions", others),
        *_settings_advice(sorted(wrong - mine.keys()), workers),
    ]
    raise ConfigError(
        "\n".join(["the parties do not fit together; make these the same:", table, *advice]),
        code="C009",
    )


def check_plugins(program: Program, workers: list[WorkerFacts]) -> None:
    """Check that each worker has the plugins whose ops a program uses.

    All workers check the whole program, so they need the plugins of one another's ops, too.

    Raises:
        ConfigError: a plugin is missing; with a table, and what to install where.
    """
    used = {op.opcode.partition(".")[0] for op in program.graph.walk()}
    here = installed()
    needed = {
        record.name: record.distribution
        for record in plugin_manager.records()
        if record.name in used and record.group in USED and record.distribution in here
    }
    lacking = {
        worker.name: {name for family, name in needed.items() if family not in worker.families}
        for worker in workers
    }
    missing = sorted(set().union(*lacking.values()))
    if not missing:
        return
    rows = {COORDINATOR: {name: here[name] for name in missing}}
    for party, names in lacking.items():
        rows[party] = {name: "not there" if name in names else here[name] for name in missing}
    wanted = {party: {n: here[n] for n in sorted(names)} for party, names in lacking.items()}
    raise ConfigError(
        "\n".join(
            [
                "all workers check the whole program, and not all of them have its plugins:",
                differences(rows),
                *_advice("name them in the workers' `plugins`, and install them", wanted),
            ]
        ),
        code="C009",
    )


def _advice(what: str, wanted: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield what to install where: packages and versions of this process, not those of others."""
    commands = {
        party: [f"'{n}=={v}'" for n, v in packages.items()] for party, packages in wanted.items()
    }
    if any(commands.values()):
        yield f"{what}:"
    for party, packages in commands.items():
        if packages:
            yield f"  at {party}: pip install {' '.join(packages)}"


def _settings_advice(names: Sequence[str], workers: Sequence[WorkerFacts]) -> Iterator[str]:
    """Yield what to run where for settings that only workers have: what most of them have."""
    for name in names[:MAX_SETTINGS]:
        values = {each.name: each.versions.there.get(name) for each in workers}
        counted = Counter(value for value in values.values() if value is not None)
        most = counted.most_common(1)[0][0]
        for party, value in values.items():
            if value not in (None, most):
                command = _command(name, most)
                yield f"to have {quoted(name)} as most workers have it, at {party}: {command}"


def _command(name: str, value: str) -> str:
    if name == "passes":
        return "mplang plugins, and install or remove what has other passes than at the others"
    if not VARIABLE.fullmatch(name):  # but what a package has built in
        return "mplang doctor, and install the versions of the others"
    command = f"unset {name}" if value == NOT_SET else shlex.join(["export", f"{name}={value}"])
    return f"{command}, and start the worker again"


@functools.lru_cache(maxsize=1024)
def _cell(text: Any) -> str:
    """Return a text that a worker tells, whole: what is cut would be the same as others.

    All workers tell much the same, so it is looked at once.
    """
    shown = printable(str(text))
    if len(shown) > MAX_TEXT:
        raise ValueError("too much")
    return shown
