"""Cluster descriptions: nodes and devices."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml
from pydantic import AliasChoices, Field

from mplang_core.config_model import StrictModel
from mplang_core.device import api
from mplang_core.device.kinds import Device, DeviceKind, device_kinds
from mplang_core.display import Displayed
from mplang_core.errors import ConfigError
from mplang_core.ir import Program
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.suggest import install_hint, similar
from mplang_core.tracebacks import of_user


class NoConfig(StrictModel):
    """Empty configuration, of device kinds without one."""


class Node(StrictModel):
    """Description of the machine of a party.

    Attributes:
        rank: the party's rank; by default its index in the list of nodes.
        name: the name that devices refer to; ``node0``, ``node1``, … by default.
        address: its address for the backend, usually a URL; alias ``endpoint``.

    Raises:
        ConfigError: a field is invalid or unknown.
    """

    rank: int | None = Field(default=None, ge=0)
    name: str = ""
    address: str = Field(default="", validation_alias=AliasChoices("address", "endpoint"))


class DeviceSpec(StrictModel):
    """Description of a device.

    Attributes:
        kind: the name of its kind: ``PPU``, ``SPU``, or one of a plugin.
        members: the names or ranks of its nodes.
        config: the fields of the kind's configuration model.
        frontends: the families of compilers that it prefers, before those of the cluster.

    Raises:
        ConfigError: a field is invalid or unknown.
    """

    kind: str
    members: tuple[int | str, ...] = Field(min_length=1)
    config: dict[str, Any] = Field(default_factory=dict)
    frontends: tuple[str, ...] = ()


class ClusterSpec(Displayed, StrictModel):
    """Description of a cluster: nodes and devices.

    Args:
        nodes: one node per party, in the order of ranks.
        devices: the devices by name. By default each node has a ``PPU`` (``P0``, ``P1``, …),
            and two or more nodes share an ``SPU`` (``SP0``).
        frontends: the families of compilers that are preferred for plain Python functions, such as
            ``["jax"]``; see :func:`mplang_core.frontend`.

    Raises:
        ConfigError: a field is invalid; the message names it.

    Example:
        >>> cluster = ClusterSpec.simple(2)
        >>> list(cluster.devices), str(cluster.mask)
        (['P0', 'P1', 'SP0'], '{0, 1}')
    """

    nodes: tuple[Node, ...] = Field(min_length=1)
    devices: dict[str, DeviceSpec]
    frontends: tuple[str, ...] = ()

    @of_user
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
    @of_user
    def simple(cls, world_size: int) -> ClusterSpec:
        """Return a cluster of nodes without addresses, with default devices.

        Args:
            world_size: the number of nodes, at least 1.

        Raises:
            ConfigError: the number is not a positive integer.
        """
        if not isinstance(world_size, int) or world_size < 1:
            raise ConfigError(f"ClusterSpec: a cluster has at least one node, got {world_size}")
        return cls([Node(rank=i) for i in range(world_size)])

    @classmethod
    @of_user
    def from_dict(cls, description: Mapping[str, Any]) -> ClusterSpec:
        """Return the cluster of a description with the structure of the YAML file.

        Args:
            description: the fields ``nodes`` and ``devices``.

        Raises:
            ConfigError: a field is invalid or unknown.

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
    @of_user
    def from_yaml(cls, path: str | os.PathLike[str]) -> ClusterSpec:
        """Return the cluster of a YAML file.

        Args:
            path: the file, in UTF-8.

        Raises:
            ConfigError: the file cannot be read, is not YAML, or has an invalid field.
        """
        try:
            with open(path, encoding="utf-8") as file:
                description = yaml.safe_load(file)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"ClusterSpec: cannot read {os.fspath(path)}: {error}") from error
        return cls.from_dict(description)

    def __repr__(self) -> str:
        return (
            f"<ClusterSpec of {', '.join(n.name for n in self.nodes)}; {', '.join(self.devices)}>"
        )

    @property
    def mask(self) -> Mask:
        """The mask of all parties."""
        return Mask.all(len(self.nodes))

    @functools.cached_property
    def _known(self) -> dict[str, Device]:
        return {}

    @property
    def world_size(self) -> int:
        """The number of parties."""
        return len(self.nodes)

    def device(self, name: str) -> Device:
        """Return a device with its kind and its complete configuration.

        Args:
            name: the name of the device.

        Raises:
            ConfigError: there is no such device, its kind is not installed, or its
                configuration is invalid.
        """
        known = self._known.get(name)
        if known is not None and device_kinds.peek(known.kind.name) is known.kind:
            return known
        if (spec := self.devices.get(name)) is None:
            there = f"this cluster has {', '.join(self.devices)}{self._devices_of_party(name)}"
            advice = " ".join(filter(None, (similar(name, self.devices), there)))
            raise ConfigError(f"{at()}no device {name!r}; {advice}", code="T007")
        kind = device_kinds.get(spec.kind)
        where = f"ClusterSpec: field 'devices.{name}"
        if kind is None:
            raise ConfigError(
                f"{where}.kind': no device kind {spec.kind!r}; "
                f"{install_hint(spec.kind, device_kinds.names())}"
            )
        mask = self._members(name, spec)
        frontends = (*spec.frontends, *self.frontends)
        config = _configured(where, kind, spec.config, mask)
        return self._known.setdefault(name, Device(name, kind, mask, config, frontends))

    def apply(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function on the device of its arguments; used by operators of values.

        Args:
            fn: a feop, or a Python function of plain values.
            *args: nests of values and literals.
            **kwargs: attributes of the feop, or literals for the function.

        Returns:
            The result of the function, on the device.

        Raises:
            DisclosureError: see :func:`mplang_core.device`.
        """
        return api.device()(fn)(*args, **kwargs)

    def settle(self, program: Program) -> Program:
        """Return a program after the devices have chosen what they choose for all of it.

        Args:
            program: as it was traced for this cluster.

        Returns:
            A program of the same inputs and results; see :attr:`DeviceKind.settle`.
        """
        used = list(self._known.values())  # a program is of devices that it has looked up
        for kind in {device.kind.name: device.kind for device in used}.values():
            program = kind.settle(program, [device for device in used if device.kind is kind])
        return program

    def _devices_of_party(self, name: str) -> str:
        """Return what to add to an error for a name that is that of a party; empty for others."""
        alone = [[name], *([node.rank] for node in self.nodes if node.name == name)]
        own = [each for each, spec in self.devices.items() if list(spec.members) in alone]
        return f"; the device of party {name} is {' or '.join(own)}" if own else ""

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
            raise ConfigError(f"ClusterSpec: field 'devices.{name}.members': a node is there twice")
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
        # by name, so that no package that is installed besides changes a program of bare nodes
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
