"""Configuration of an HE device."""

from __future__ import annotations

from pydantic import Field

from mplang_core import Mask
from mplang_core.ext import ConfigError, StrictModel


class HeConfig(StrictModel):
    """Configuration of an HE device.

    Attributes:
        holder: the rank of the member that has the key, and reads results. The other one computes.
        limit: how large numbers are at most, either way, whose range is not known.
        levels: products, one after the other, that what is put on the device has room for. An
            argument of a function, which is not put there before, has as much as it needs.
        precision: error of a result of floats at most, as part of the largest number that its
            range allows; parameters are chosen by it.
        evaluator: the rank of the other one; set by the device.
    """

    holder: int
    limit: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    levels: int = Field(default=1, ge=0, le=12)
    precision: float = Field(default=1e-5, gt=0, le=0.1)
    evaluator: int = -1


def resolve_config(config: HeConfig, members: Mask) -> HeConfig:
    """Return a configuration with the evaluator.

    Raises:
        ConfigError: the holder is not a member.
    """
    if config.holder not in members:
        raise ConfigError(
            f"holder: the rank of the member that has the key, one of {[*members]}, got "
            f"{config.holder}"
        )
    (evaluator,) = members - Mask.of(config.holder)
    return config.model_copy(update={"evaluator": evaluator})
