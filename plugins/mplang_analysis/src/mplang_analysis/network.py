"""Networks between parties, as users describe them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import Field

from mplang_core.ext import ConfigError, StrictModel


class Network(StrictModel):
    """Network between two parties.

    Attributes:
        rtt: milliseconds that a message and its answer take at least.
        rate: millions of bits a second, each way.

    Example:
        >>> Network(rtt=40, rate=100).seconds(messages=10, size=1_000_000)
        0.28
    """

    rtt: float = Field(ge=0, le=60_000)
    rate: float = Field(gt=0, le=10_000_000)

    def seconds(self, messages: float, size: float) -> float:
        """Return how long messages that wait for each other take.

        Args:
            messages: how many, one after the other.
            size: bytes of all of them.
        """
        return messages * self.rtt / 2000 + size * 8 / (self.rate * 1e6)


NETWORKS = {"lan": Network(rtt=0.2, rate=1000), "wan": Network(rtt=40, rate=100)}

Link: TypeAlias = Literal["lan", "wan"] | Network
"""Network by a name of :data:`NETWORKS`, or by its figures."""


def network_of(link: Link | None) -> Network:
    """Return the network that a user describes; ``lan`` if nobody does.

    Example:
        >>> network_of("wan").rtt
        40.0
    """
    return link if isinstance(link, Network) else NETWORKS[link or "lan"]


def described(link: Link | str | Mapping[str, float]) -> Network:
    """Return the network that a user describes in Python.

    Args:
        link: a name, or what :class:`Network` takes.

    Raises:
        ConfigError: there is no such network.

    Example:
        >>> described({"rtt": 5, "rate": 50}).rate
        50.0
    """
    network = Network(**link) if isinstance(link, Mapping) else link
    if isinstance(network, Network):
        return network
    if network in NETWORKS:
        return NETWORKS[network]
    expected = "'lan', 'wan' or {'rtt': 40, 'rate': 100}"
    raise ConfigError(f"link: expected {expected}, got {link!r}", code="C006")


def network_named(text: str) -> Network:
    """Return the network that a user names at a terminal.

    Args:
        text: ``lan``, ``wan``, or milliseconds and megabits a second: ``40,100``.

    Raises:
        ConfigError: there is no such network.

    Example:
        >>> network_named("20,200").rtt
        20.0
    """
    rtt, comma, rate = text.partition(",")
    try:
        return described({"rtt": float(rtt), "rate": float(rate)} if comma else text)
    except ValueError:
        raise ConfigError(
            f"link: expected lan, wan or 40,100 (ms, Mbit/s), got {text!r}", code="C006"
        ) from None
