"""An owner's side of a worker's configuration, as the commands read it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from mplang_analysis import AdmissionCheck, Label, Stored, admission_checks

from mplang_core.ext import ConfigError
from mplang_policy.gate_config import GateConfig
from mplang_policy.names import Names
from mplang_policy.rules import Rules


@dataclass(frozen=True)
class Owner:
    """Gate settings in a worker's file.

    Attributes:
        party: name of the party.
        coordinators: who may run programs.
        gate: where rules and log are.
        names: what the rules may name.
        fields: the whole file.
        folder: the folder of the file.
    """

    party: str
    coordinators: tuple[str, ...]
    gate: GateConfig
    names: Names
    fields: Mapping[str, Any]
    folder: str

    @classmethod
    def read(cls, path: str) -> Owner:
        """Read a worker's file.

        Raises:
            ConfigError: it cannot be read, or has no gate.
        """
        try:
            fields = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"cannot read {path}: {error}", code="C003") from error
        if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
            raise ConfigError(f"{path} is not a worker's file: it has no name", code="C003")
        if not isinstance(fields.get("gate"), dict):
            raise ConfigError(
                f"{path} has no gate; write `gate: {{policy: policy, log: gate.db}}` into it",
                code="C003",
            )
        try:
            names = Names.of(fields)
        except (AttributeError, TypeError) as error:
            raise ConfigError(f"{path} is not a worker's file: {error}", code="C003") from None
        return cls(
            party=fields["name"],
            coordinators=tuple(sorted(names.known["Coordinator"])),
            gate=GateConfig(**{str(key): each for key, each in fields["gate"].items()}).at(
                str(Path(path).parent)
            ),
            names=names,
            fields=fields,
            folder=str(Path(path).parent),
        )

    def rules(self) -> Rules:
        """Return the rules as they are now.

        Raises:
            ConfigError: they are wrong.
        """
        return Rules.read(self.gate.policy, self.names)

    def checks(self) -> dict[str, AdmissionCheck]:
        """Return the admission checks that the worker asks besides the rules.

        Raises:
            ConfigError: one is wrong, or not installed here.
        """
        sections = self.fields.get("admission") or {}
        if not isinstance(sections, dict):
            raise ConfigError(
                f"field 'admission': expected checks by name, got {sections!r}", code="C003"
            )
        return admission_checks(sections)

    def stored(self, coordinator: str, names: Sequence[str]) -> Stored:
        """Return the labels of what a coordinator has stored here, by name and rank.

        Args:
            coordinator: whose it is.
            names: names of the parties, by rank.
        """
        sink = self.fields.get("sink")
        if sink is None:
            return {}
        from mplang_data.ext import StoreError, entries_in, read_sink, translate_label

        found: dict[str, dict[int, Label]] = {}
        for who, entry in entries_in(Path(read_sink(sink, self.folder).folder)):
            if who != coordinator:
                continue
            with contextlib.suppress(StoreError, ValueError):
                labels = {
                    list(names).index(entry.parties[rank]): translate_label(
                        entry.card().label(rank), entry.parties, names, entry.name
                    )
                    for rank in entry.members
                }
                found[entry.name] = labels
        return found

    def coordinator(self, given: str | None) -> str:
        """Return the coordinator that is meant: the only one if none is given.

        Raises:
            ConfigError: it is not clear, or not one of the worker.
        """
        if given is None and len(self.coordinators) == 1:
            return self.coordinators[0]
        if given not in self.coordinators:
            raise ConfigError(
                f"--coordinator is one of {', '.join(self.coordinators)}, not {given!r}",
                code="C006",
            )
        return given


def from_here(path: Path) -> Path:
    """Return a path as it is named in the working folder, where it lies below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
