"""Requests of kernels to the native service of SPU, and answers, as the other side gets them."""

from __future__ import annotations

import functools
import json
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, NonNegativeInt

from mplang_core import Mask, TensorType
from mplang_core.ext import MPLangError, RunError, StrictModel
from mplang_spu.config import SpuConfig, resolve_config
from mplang_spu.share_type import ShareType

Dim: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 62)]
Shape: TypeAlias = Annotated[tuple[Dim, ...], Field(max_length=64)]


class Request(StrictModel):
    """Base class of requests, and of their parts."""

    error: ClassVar[type[MPLangError]] = RunError


class Plain(Request):
    """Type of a tensor.

    Attributes:
        dtype: the short name of the element type, such as ``f32``.
        shape: the sizes.
    """

    dtype: str
    shape: Shape

    def tensor(self) -> TensorType:
        """Return the type.

        Raises:
            RunError: it is none.
        """
        try:
            return TensorType(self.dtype, self.shape)
        except (TypeError, ValueError) as error:
            raise RunError(f"a value is of no type: {error}", code="R015") from error


class Reference(Request):
    """Operand that the service holds: a result or an operand of an earlier request of the run.

    Attributes:
        share: its number.
    """

    form: Literal["reference"] = "reference"
    share: NonNegativeInt


class Data(Plain):
    """Operand whose chunks are the next buffers, and which the service is to hold.

    Attributes:
        share: the number that it gets, which is used once in a run.
        storage: the name of its storage.
        chunks: the number of its chunks.
    """

    form: Literal["data"] = "data"
    share: NonNegativeInt
    storage: str
    chunks: NonNegativeInt


class Public(Plain):
    """Operand that all members know; its elements are the next buffer."""

    form: Literal["public"] = "public"


Operand: TypeAlias = Annotated[Reference | Data | Public, Field(discriminator="form")]


class Result(Plain):
    """Result that the service is to hold.

    Attributes:
        share: the number that it gets, which is used once in a run.
        sent: whether its data is part of the answer.
    """

    share: NonNegativeInt
    sent: bool


class Run(Request):
    """Request to run a compiled program jointly with the other members.

    Attributes:
        key: the op's message key.
        parties: the members, as bits.
        config: of the device.
        code: the SHA-256 of the code, in hexadecimal.
        has_code: whether the code is the first buffer; else the service has it from before.
        operands: the operands.
        results: the results.
        drop: numbers of shares that nobody needs any more.
    """

    key: str
    parties: NonNegativeInt
    config: dict[str, Any]
    code: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    has_code: bool
    operands: tuple[Operand, ...]
    results: tuple[Result, ...]
    drop: tuple[NonNegativeInt, ...]

    @property
    def members(self) -> Mask:
        """The members."""
        return Mask(self.parties)

    def like(self) -> ShareType:
        """Return the type of the shares on the device, of a scalar.

        Raises:
            RunError: there is no such device.
        """
        try:
            return _like(json.dumps(self.config, sort_keys=True), self.members)
        except (TypeError, ValueError) as error:
            raise RunError(f"there is no such SPU: {error}", code="R015") from error


class Made(Request):
    """Answer to :class:`Run`.

    Attributes:
        storages: the storage of each result.
        chunks: how many of the buffers are chunks of it; none if it is not sent.
    """

    storages: tuple[str, ...]
    chunks: tuple[NonNegativeInt, ...]


class Fetch(Request):
    """Request for the data of a share.

    Attributes:
        share: its number.
    """

    share: NonNegativeInt


@functools.lru_cache(maxsize=64)
def _like(config: str, members: Mask) -> ShareType:
    settings = SpuConfig(**json.loads(config))
    return ShareType.of(TensorType("f32"), resolve_config(settings, members))
