"""Devices: cluster descriptions, device kinds, execution and transfers."""

from mplang_core.device.api import device as device, put as put, reveal as reveal, seal as seal
from mplang_core.device.capability import route as route
from mplang_core.device.kinds import (
    PARTY as PARTY,
    Device as Device,
    DeviceKind as DeviceKind,
    JointRun as JointRun,
    Lowering as Lowering,
    Transfer as Transfer,
    add_kind as add_kind,
    add_transfer as add_transfer,
    device_kinds as device_kinds,
    joint_runs as joint_runs,
    transfers as transfers,
)
from mplang_core.device.parties import (
    device_of_party as device_of_party,
    devices_of_parties as devices_of_parties,
)
from mplang_core.device.ppu import the_holder as the_holder
