"""Summary of the cluster of a program, without addresses, as plain data."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from mplang_analysis.ext import LONGEST_NAME, is_plain, quoted

from mplang_cli.artifact.data import Data
from mplang_core import ClusterSpec, Mask
from mplang_core.ext import Device, TraceError, at, device_kinds

A_NAME = f"one word of letters, digits, _ . : and -, of at most {LONGEST_NAME} characters"
_ESCAPED = re.compile(r"\\.")


class DeviceSummary(Data, frozen=True):
    """A device.

    Attributes:
        name: as in the cluster.
        kind: its kind.
        members: their ranks.
        config: its configuration as JSON, completed where its kind was installed.
    """

    name: str
    kind: str
    members: tuple[int, ...]
    config: str

    def differs(self, device: Device) -> str | None:
        """Return what is another in a device of a cluster, or ``None``."""
        there = _plain(device.config)
        mine = {"kind": self.kind, "members": list(self.members), **json.loads(self.config)}
        other = {"kind": device.kind.name, "members": list(device.mask), **there}
        for name, value in mine.items():
            if other.get(name) != value:
                return f"{name} is {value!r} in the artifact, {other.get(name)!r} in the cluster"
        return None

    def __str__(self) -> str:
        return f"{quoted(self.name)}: {self.told}"

    @property
    def told(self) -> str:
        """All but its name and what is not set, in words: each text of what is set is in quotes."""
        config = {key: value for key, value in json.loads(self.config).items() if value is not None}
        text = _ESCAPED.sub(_hex, json.dumps(config, sort_keys=True)) if config else ""
        return f"{quoted(self.kind)} of {Mask.from_ranks(self.members)} {text}".rstrip()


class ClusterSummary(Data, frozen=True):
    """A cluster.

    Attributes:
        parties: their names by rank.
        devices: its devices.
    """

    parties: tuple[str, ...]
    devices: tuple[DeviceSummary, ...]

    @classmethod
    def of(cls, cluster: ClusterSpec) -> ClusterSummary:
        """Return what a cluster is, wherever its nodes are."""
        devices = (_summary(cluster, name) for name in sorted(cluster.devices))
        return cls(tuple(node.name for node in cluster.nodes), tuple(devices))

    def spec(self) -> ClusterSpec:
        """Return such a cluster, without addresses and what no plugin here knows."""
        known = (device for device in self.devices if device.kind in device_kinds)
        devices = {
            device.name: {
                "kind": device.kind,
                "members": list(device.members),
                "config": json.loads(device.config),
            }
            for device in known
        }
        return ClusterSpec([{"name": name} for name in self.parties], devices)

    def devices_of(self, cluster: Any, names: Sequence[str | None]) -> list[Device | None]:
        """Return the devices of those names in the cluster of a host.

        Raises:
            TraceError: it has other parties, or a device is another one there.
            ConfigError: there is no such device.
        """
        here = [node.name for node in getattr(cluster, "nodes", ())]
        if here != list(self.parties):
            raise TraceError(
                f"{at()}the artifact is for the parties {', '.join(self.parties)}, in this order, "
                f"but the host has {', '.join(here) or 'none'}; compile it for that cluster",
                code="T005",
            )
        mine = {device.name: device for device in self.devices}
        found = {name: cluster.device(name) for name in dict.fromkeys(names) if name is not None}
        for name, device in found.items():
            other = mine[name].differs(device)
            if other:
                raise TraceError(
                    f"{at()}the device {name} is another: {other}; compile it for that one",
                    code="T005",
                )
        return [None if name is None else found[name] for name in names]

    def check(self) -> None:
        """Check its consistency.

        Raises:
            ValueError: they do not fit.
        """
        names = [device.name for device in self.devices]
        kinds = [device.kind for device in self.devices]
        for what, given in (("party", self.parties), ("device", names), ("kind", kinds)):
            for name in given:
                if not is_plain(name):
                    raise ValueError(f"the {what} {quoted(name)} is not a name: expected {A_NAME}")
        if not self.parties or len(set(self.parties)) != len(self.parties):
            raise ValueError(f"the parties are {self.parties}")
        if len(set(names)) != len(names):
            raise ValueError(f"the devices are {names}")
        for device in self.devices:
            if not all(0 <= rank < len(self.parties) for rank in device.members):
                raise ValueError(f"{device.name} has the members {device.members}")
            if not isinstance(json.loads(device.config), dict) or not device.told:
                raise ValueError(f"{device.name} has the configuration {device.config[:100]!r}")


def _hex(escaped: re.Match[str]) -> str:
    """Return an escaped character of JSON; a quote as its number, so that it closes nothing."""
    return "\\x22" if escaped[0] == '\\"' else escaped[0]


def _summary(cluster: ClusterSpec, name: str) -> DeviceSummary:
    spec = cluster.devices[name]
    if spec.kind in device_kinds:
        device = cluster.device(name)
        members, config = tuple(device.mask), _plain(device.config)
    else:
        ranks = {node.name: rank for rank, node in enumerate(cluster.nodes)}
        members = tuple(sorted(m if isinstance(m, int) else ranks[m] for m in spec.members))
        config = spec.config
    return DeviceSummary(name, spec.kind, members, json.dumps(config, sort_keys=True, default=str))


def _plain(config: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {} if config is None else config.model_dump(mode="json")
    return plain
