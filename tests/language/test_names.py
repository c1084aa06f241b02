"""Names of ``mp`` that are completed: all that are for users, and none else."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import mplang_core as mp

PUBLIC = Path(__file__).parents[1] / "architecture/public_api/mplang_core.txt"
PARTS = [name for name in dir(mp) if isinstance(getattr(mp, name, None), ModuleType)]


def test_all_names_for_users_are_completed_and_nothing_private():
    found = set(dir(mp))
    documented = set(re.findall(r"^mp\.([A-Za-z]\w*)\b(?!\.)", PUBLIC.read_text(), re.M))
    assert len(documented) > 50
    assert documented - found == set()
    assert {"ClusterSpec", "DeviceSpec", "Node", "errors", "simp", "ir"} <= found
    assert not [name for name in found if name.startswith("_")]
    for name in ("Any", "TYPE_CHECKING", "driver", "suggest", "tracebacks", "edsl", "printable"):
        assert name not in found


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_mp_completes_what_is_for_users(part):
    module = getattr(mp, part)
    found = dir(module)
    assert found == sorted(found)
    assert {"Any", "annotations", "TYPE_CHECKING"}.isdisjoint(found)
    assert not [name for name in found if name.startswith("_")]
    assert not [name for name in found if isinstance(getattr(module, name), ModuleType)]
    assert set(getattr(module, "__all__", ())) <= set(found)


CLUSTER = mp.ClusterSpec.simple(2)


def test_a_device_that_is_none_is_told_where_it_is_named(simulate):
    def program():
        return mp.device("p0")

    with pytest.raises(mp.errors.ConfigError, match=r"test_names.py:\d+: no device 'p0'; did you"):
        mp.compile(program, cluster_spec=CLUSTER).trace(None)
    with mp.with_ctx(simulate(2)), pytest.raises(mp.errors.ConfigError) as error:
        mp.device("NOPE")
    assert "no device 'NOPE'; this cluster has P0, P1" in str(error.value)


def test_without_a_cluster_a_device_is_any_name():
    assert callable(mp.device("NOPE"))
