"""The description of a cluster: nodes and devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml
from pydantic import AliasChoices, Field

from mplang_core.config_model import StrictModel
from mplang_core.device import api
from mplang_core.device.kinds import Device, DeviceKind, device_kinds
from mplang_core.errors import ConfigError
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.suggest import install_hint


class NoConfig(StrictModel):
    """The configuration of a device that takes none."""


class Node(StrictModel):
    """One party's machine.

    Attributes:
        rank: the party's index; by default its place in the list.
        name: as in a device's members; ``node0``, ``node1``, … by default.
        address: where a backend reaches it; also written ``endpoint``.
    """

    rank: int | None = Field(default=None, ge=0)
    name: str = ""
    address: str = Field(default="", validation_alias=AliasChoices("address", "endpoint"))


class DeviceSpec(StrictModel):
    """One logical device.

    Attributes:
        kind: ``PPU``, ``SPU``, or a plugin's.
        members: names or ranks of nodes.
        config: what the kind takes.
    """

    kind: str
    members: tuple[int | str, ...] = Field(min_length=1)
    config: dict[str, Any] = Field(default_factory=dict)


class ClusterSpec(StrictModel):
    """The parties of a program and the devices that they form.

    Args:
        nodes: the parties. Bare nodes get a ``PPU`` each (``P0``, ``P1``, …), and one
            ``SPU`` over all of them (``SP0``) where they are two or more.
        devices: the devices by name, in place of those.

    Raises:
        ConfigError: a field is wrong; names it.

    Example:
        >>> cluster = ClusterSpec.simple(2)
        >>> list(cluster.devices), str(cluster.mask)
        (['P0', 'P1', 'SP0'], '{0, 1}')
    """

    nodes: tuple[Node, ...] = Field(min_length=1)
    devices: dict[str, DeviceSpec]

    def __init__(
        self,
        nodes: Sequence[Node | Mapping[str, Any]] = (),
        devices: Mapping[str, DeviceSpec | Mapping[str, Any]] | None = None,
        **unknown: Any,
    ) -> None:
        bare = devices is None
        if not isinstance(nodes, Sequence):
            raise ConfigError(f"ClusterSpec: field 'nodes': expected a list, got {nodes!r}")
        full = [_numbered(node, i) for i, node in enumerate(nodes)]
        if bare:
            devices = _default_devices(full)
        super().__init__(nodes=full, devices=devices, **unknown)
        self._check_nodes()
        for name, spec in self.devices.items():
            self._members(name, spec)
            if not bare:
                self.device(name)

    @classmethod
    def simple(cls, world_size: int) -> ClusterSpec:
        """Return a cluster of bare nodes."""
        if not isinstance(world_size, int) or world_size < 1:
            raise ConfigError(f"ClusterSpec: a cluster has at least one node, got {world_size}")
        return cls([Node(rank=i) for i in range(world_size)])

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> ClusterSpec:
        """Make a cluster of a description, as it stands in YAML.

        Example:
            >>> cluster = ClusterSpec.from_dict({
            ...     "nodes": [{"name": "alice"}, {"name": "bob"}],
            ...     "devices": {"PA": {"kind": "PPU", "members": ["alice"]}},
            ... })
            >>> print(cluster.device("PA"))
            PA (PPU of {0})
        """
        if not isinstance(description, Mapping):
            raise ConfigError(f"ClusterSpec: expected a mapping, got {type(description).__name__}")
        if not all(isinstance(key, str) for key in description):
            raise ConfigError("ClusterSpec: the fields are strings")
        return cls(**description)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> ClusterSpec:
        """Read a cluster from a YAML file.

        Raises:
            ConfigError: the file cannot be read, is no YAML, or has a wrong field.
        """
        try:
            with open(path, encoding="utf-8") as file:
                description = yaml.safe_load(file)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"ClusterSpec: cannot read {os.fspath(path)}: {error}") from error
        return cls.from_dict(description)

    @property
    def mask(self) -> Mask:
        """All parties."""
        return Mask.all(len(self.nodes))

    @property
    def world_size(self) -> int:
        """How many parties there are."""
        return len(self.nodes)

    def device(self, name: str) -> Device:
        """Return a device.

        Raises:
            ConfigError: there is no such device, its kind is not installed, or its
                configuration is wrong.
        """
        spec = self.devices.get(name)
        if spec is None:
            raise ConfigError(
                f"{at()}no device {name!r}; this cluster has {', '.join(self.devices)}"
            )
        kind = device_kinds.get(spec.kind)
        where = f"ClusterSpec: field 'devices.{name}"
        if kind is None:
            raise ConfigError(
                f"{where}.kind': no device kind {spec.kind!r}; "
                f"{install_hint(spec.kind, device_kinds.names())}"
            )
        mask = self._members(name, spec)
        return Device(name, kind, mask, _configured(where, kind, spec.config, mask))

    def apply(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function on the device of its arguments; an operator on a value comes here."""
        return api.device()(fn)(*args, **kwargs)

    def _members(self, name: str, spec: DeviceSpec) -> Mask:
        by_name = {node.name: node.rank for node in self.nodes}
        ranks = []
        for member in spec.members:
            rank = member if isinstance(member, int) else by_name.get(member)
            if rank is None or not 0 <= rank < len(self.nodes):
                raise ConfigError(
                    f"ClusterSpec: field 'devices.{name}.members': no node {member!r}; the nodes "
                    f"are {', '.join(by_name)}"
                )
            ranks.append(rank)
        if len(set(ranks)) != len(ranks):
            raise ConfigError(f"ClusterSpec: field 'devices.{name}.members': a node stands twice")
        return Mask.from_ranks(ranks)

    def _check_nodes(self) -> None:
        ranks = [node.rank for node in self.nodes]
        if ranks != list(range(len(ranks))):
            raise ConfigError(f"ClusterSpec: field 'nodes': ranks count from 0, got {ranks}")
        names = [node.name for node in self.nodes]
        if len(set(names)) != len(names):
            raise ConfigError(f"ClusterSpec: field 'nodes': names are unique, got {names}")


def _numbered(node: Any, i: int) -> Any:
    if not isinstance(node, Mapping | Node):
        return node
    fields: dict[Any, Any] = dict(node)
    if not all(isinstance(key, str) for key in fields):
        raise ConfigError(f"ClusterSpec: field 'nodes.{i}': the fields are strings, got {fields}")
    if fields.get("rank") is None:
        fields["rank"] = i
    fields["name"] = fields.get("name") or f"node{fields['rank']}"
    return fields


def _default_devices(nodes: Sequence[Any]) -> dict[str, DeviceSpec]:
    devices = {f"P{i}": DeviceSpec(kind="PPU", members=(i,)) for i in range(len(nodes))}
    if len(nodes) >= 2:
        devices["SP0"] = DeviceSpec(kind="SPU", members=tuple(range(len(nodes))))
    return devices


def _configured(where: str, kind: DeviceKind, config: Mapping[str, Any], members: Mask) -> Any:
    refused = kind.refuses(len(members))
    if refused:
        raise ConfigError(f"{where}.members': {refused}")
    try:
        model = NoConfig if kind.config is None else kind.config
        return kind.resolve_config(model(**config), members)
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"{where}.config': {error}") from None
