"""Which way SPU links its parties: the environment, the configuration, and who disagrees."""

from __future__ import annotations

import threading
import warnings

import pytest
import spu.libspu as libspu
from brpc_processes import in_a_process, needs_an_insecure_worker
from mplang_simulator import ThreadCommunicator
from mplang_spu import SpuConfig, engine_pool, link
from mplang_spu.config import ENV
from mplang_spu.link import choose
from mplang_testing.waiting import DEADLINE
from spu_links import check, cluster

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError
from mplang_core.ext import CommunicatorBase

pytestmark = [
    pytest.mark.once,  # it is about links, some at ports of their own
    pytest.mark.usefixtures("environment"),
]


@pytest.fixture
def no_channels(monkeypatch):
    """Simulate an older build of libspu, before the first warning."""
    monkeypatch.delattr(libspu.link, "create_with_channels")
    monkeypatch.setattr(link, "_not_yet_warned", threading.Lock())


# -- which way


@pytest.mark.parametrize(
    ("env", "config", "way"),
    [
        (None, {}, "channels"),
        ("", {}, "channels"),
        (None, {"brpc_addresses": ["a:1"]}, "channels"),
        (None, {"use_mplang_channel": True}, "channels"),
        (None, {"use_mplang_channel": False}, "memory"),
        (None, {"use_mplang_channel": False, "brpc_addresses": ["a:1"]}, "brpc"),
        ("1", {"use_mplang_channel": False}, "channels"),
        ("Yes", {"use_mplang_channel": False}, "channels"),
        ("0", {}, "memory"),
        ("false", {"use_mplang_channel": True, "brpc_addresses": ["a:1"]}, "brpc"),
    ],
)
def test_the_environment_goes_before_the_configuration(monkeypatch, env, config, way):
    if env is not None:
        monkeypatch.setenv(ENV, env)
    assert choose(config) == way


@pytest.mark.parametrize(
    ("env", "config", "way"),
    [
        ("", {}, "memory"),
        ("", {"brpc_addresses": ["a:1"]}, "memory"),
        ("", {"use_mplang_channel": True}, "channels"),
        ("", {"use_mplang_channel": False, "brpc_addresses": ["a:1"]}, "brpc"),
        ("0", {"brpc_addresses": ["a:1"]}, "brpc"),
        ("1", {}, "channels"),
    ],
)
def test_what_is_asked_for_goes_before_memory_within_a_process(monkeypatch, env, config, way):
    monkeypatch.setenv(ENV, env)
    assert choose(config, in_memory=True) == way


def test_a_wrong_environment_is_refused(monkeypatch):
    monkeypatch.setenv(ENV, "maybe")
    with pytest.raises(ConfigError, match="MPLANG_SPU_USE_CHANNELS is 1 or 0, got 'maybe'"):
        choose({})


def test_without_channels_in_libspu_there_is_one_warning(no_channels):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert choose({"use_mplang_channel": False}) == "memory"
        assert not caught
        assert choose({}) == "memory"
        assert choose({"brpc_addresses": ["a:1"]}) == "brpc"
        assert choose({"use_mplang_channel": True}) == "memory"
    (warning,) = caught
    assert "no channels, so SPU takes memory links; pip install" in str(warning.message)


@pytest.mark.filterwarnings("ignore:this build of libspu")
def test_without_channels_in_libspu_programs_run_as_ever(no_channels):
    with mp.Simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:
        check(sim)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a:1"], "'brpc_addresses': expected one of each of 2 members"),
        (["a:1", "a:1"], "'brpc_addresses': expected one of each"),
        (["a", "b:1"], r"'brpc_addresses\.0'"),
        (["http://a:1", "b:1"], r"'brpc_addresses\.0'"),
    ],
)
def test_wrong_addresses_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        cluster(2, protocol="SEMI2K", brpc_addresses=given)


def test_what_is_not_configured_is_not_in_the_program():
    assert set(SpuConfig(protocol="ABY3").attrs()) == {
        "protocol",
        "field",
        "fxp_fraction_bits",
        "sigmoid_mode",
        "exp_mode",
    }


# -- programs


def test_a_simulator_links_its_parties_in_memory(monkeypatch):
    monkeypatch.setattr(libspu.link, "create_with_channels", None)
    with mp.Simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:
        check(sim)


def test_parties_that_may_be_elsewhere_have_channels(monkeypatch):
    monkeypatch.setattr(ThreadCommunicator, "links_in_memory", CommunicatorBase.links_in_memory)
    monkeypatch.setattr(libspu.link, "create_mem", None)
    with mp.Simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:
        check(sim)


def test_a_recording_has_the_messages_of_spu(monkeypatch):
    """Nobody counts what goes through memory: a recorded run has channels, others have not."""
    with mp.Simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:
        check(sim)
        with monkeypatch.context() as patch, mp.record(sim) as recording:
            patch.setattr(libspu.link, "create_mem", None)
            check(sim)
        monkeypatch.setattr(libspu.link, "create_with_channels", None)
        check(sim)
    keys = [str(span.facts.get("key")) for span in recording.spans if span.kind == "send"]
    assert sum("|" in key for key in keys) > 10


def test_the_environment_decides_what_a_worker_does(monkeypatch):
    monkeypatch.setenv(ENV, "0")
    monkeypatch.setattr(libspu.link, "create_with_channels", None)
    with mp.Simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:
        check(sim)


def test_a_worker_makes_brpc_links_only_if_it_is_insecure():
    in_a_process(needs_an_insecure_worker, ENV)


class PerParty:
    """Value that differs by the party's thread."""

    def __init__(self, *values):
        self.values = values

    def __call__(self, *args):
        return self.values[int(threading.current_thread().name[-1])]

    def __format__(self, spec):
        return self(None)


def test_members_that_take_different_ways_are_told(monkeypatch):
    with mp.Simulator(cluster(3, protocol="ABY3"), timeout=DEADLINE) as sim:
        with monkeypatch.context() as patch:
            patch.setattr(engine_pool, "choose", PerParty("channels", "memory", "channels"))
            with pytest.raises(
                PartyError, match=r"link +channels +memory of process \w+ +channels"
            ):
                check(sim)
        with monkeypatch.context() as patch:
            patch.setenv(ENV, "0")
            patch.setattr(engine_pool, "PROCESS", PerParty("a", "b", "a"))
            with pytest.raises(PartyError, match="link  memory of process a  memory of"):
                check(sim)
        check(sim)


def test_members_that_were_sent_different_settings_are_told(monkeypatch):
    """Each member gets its own settings, which the members compare."""
    settings, bits = engine_pool._settings, PerParty("18", "18", "20")
    with mp.Simulator(cluster(3, protocol="ABY3"), timeout=DEADLINE) as sim:
        with monkeypatch.context() as patch:
            patch.setattr(
                engine_pool,
                "_settings",
                lambda *args: settings(*args) | {"fxp_fraction_bits": bits(None)},
            )
            with pytest.raises(PartyError) as error:
                check(sim)
        lines = [line.split() for line in str(error.value).splitlines()]
        head, row = ["party", "0", "party", "1", "party", "2"], ["fxp_fraction_bits", "18", "18"]
        assert lines[1:] == [head, [*row, "20"]]
        check(sim)
