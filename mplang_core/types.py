"""What a value is: its base type, and for a multi-party value also who holds it.

A base type says what one party holds (a tensor, a table, a share of a tensor). An
:class:`MPType` adds the mask of the parties that hold it. Plugins bring base types of their
own by subclassing :class:`BaseType`; the text form of each is ``name<parameters>``, except
for tensors, which are written as ``f32[2, 3]``.
"""

from __future__ import annotations

import enum
import json
import math
import operator
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from mplang_core.mask import Mask
from mplang_core.namespace import Namespace

TypeParam: TypeAlias = "bool | int | str | Mask | BaseType | tuple[TypeParam, ...] | None"
"""A parameter of a type, written between ``<`` and ``>``."""

MAX_RANK = 64


class Form(enum.Enum):
    """How a value may be read by the one who holds it."""

    PLAIN = "plain"
    SHARE = "share"
    CIPHERTEXT = "ciphertext"
    KEY = "key"
    HANDLE = "handle"


class DType(enum.Enum):
    """The element type of a tensor. The value is its short name, as in ``f32[3]``."""

    BOOL = "bool"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    C64 = "c64"
    C128 = "c128"

    @classmethod
    def of(cls, dtype: Any) -> DType:
        """Return the member for a NumPy dtype, a short name or a member.

        Raises:
            TypeError: NumPy knows it, but a tensor cannot hold it (``object``, dates, …).

        Example:
            >>> DType.of("float32"), DType.of(np.int64), DType.of("bf16")
            (<DType.F32: 'f32'>, <DType.I64: 'i64'>, <DType.BF16: 'bf16'>)
        """
        if isinstance(dtype, DType):
            return dtype
        if isinstance(dtype, np.dtype) and dtype in _SEEN:
            return _SEEN[dtype]
        if dtype is None:
            raise TypeError("None is no element type")
        if isinstance(dtype, str) and dtype in cls._value2member_map_:
            return cls(dtype)
        try:
            name = "bfloat16" if str(dtype) == "bfloat16" else np.dtype(dtype).name
            found = _FROM_NUMPY[name]
        except (KeyError, TypeError, ValueError, SyntaxError):  # NumPy parses some strings
            raise TypeError(
                f"a tensor cannot hold elements of type {str(dtype)[:40]!r}; expected one of "
                f"{', '.join(_FROM_NUMPY)}"
            ) from None
        if isinstance(dtype, np.dtype):
            _SEEN[dtype] = found  # a few: NumPy takes long to tell the name
        return found

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; bfloat16 is the one of ``ml_dtypes``."""
        if self is DType.BF16:
            import ml_dtypes

            bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return bfloat16
        return np.dtype(_TO_NUMPY[self])

    @property
    def is_64bit(self) -> bool:
        """Whether an element, or a part of a complex one, has 64 bits."""
        return self in (DType.I64, DType.U64, DType.F64, DType.C128)

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer."""
        return self.value[0] in "iu"


_SEEN: dict[np.dtype[Any], DType] = {}
_FROM_NUMPY: Mapping[str, DType] = {
    "bool": DType.BOOL,
    **{f"int{n}": DType(f"i{n}") for n in (8, 16, 32, 64)},
    **{f"uint{n}": DType(f"u{n}") for n in (8, 16, 32, 64)},
    "float16": DType.F16,
    "bfloat16": DType.BF16,
    "float32": DType.F32,
    "float64": DType.F64,
    "complex64": DType.C64,
    "complex128": DType.C128,
}
_TO_NUMPY: Mapping[DType, str] = {d: n for n, d in _FROM_NUMPY.items()}


class BaseType(ABC):
    """What one party holds. Subclasses are frozen dataclasses.

    A plugin's type gives a ``name``, a ``form``, and its parameters; see ``spu.share``.
    """

    name: ClassVar[str]
    form: ClassVar[Form] = Form.PLAIN

    @abstractmethod
    def params(self) -> tuple[TypeParam, ...]:
        """Return the parameters that stand between ``<`` and ``>``."""

    @classmethod
    @abstractmethod
    def from_params(cls, params: Sequence[object]) -> Self:
        """Make the type of its parameters.

        Args:
            params: as a peer wrote them, so of any number and kind.

        Raises:
            ValueError or TypeError: the parameters do not fit.
        """

    def mismatch(self, value: Any) -> str | None:
        """Return why a run-time value is not of this type, or ``None`` where it is."""
        return None

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(_param_text, self.params()))}>"


def _param_text(param: object) -> str:
    if isinstance(param, tuple):
        return f"[{', '.join(map(_param_text, param))}]"
    if isinstance(param, str):
        return json.dumps(param)
    if param is None or isinstance(param, bool):
        return {None: "none", True: "true", False: "false"}[param]
    return str(param)


@dataclass(frozen=True, slots=True)
class TensorType(BaseType):
    """A dense array.

    Args:
        dtype: element type; anything that :meth:`DType.of` takes.
        shape: a non-negative size per dimension.

    Example:
        >>> print(TensorType("float32", (2, 3)), TensorType(np.int64, ()))
        f32[2, 3] i64[]
    """

    name: ClassVar[str] = "tensor"

    dtype: DType
    shape: tuple[int, ...] = ()

    def __init__(self, dtype: Any, shape: Sequence[int] = ()) -> None:
        dims = tuple(operator.index(d) for d in shape)
        if len(dims) > MAX_RANK or any(d < 0 for d in dims):
            raise ValueError(f"no tensor has the shape {dims}")
        object.__setattr__(self, "dtype", DType.of(dtype))
        object.__setattr__(self, "shape", dims)

    @classmethod
    def of(cls, value: Any) -> TensorType:
        """Return the type of an array, or of what NumPy makes an array of."""
        if not (hasattr(value, "dtype") and hasattr(value, "shape")):
            value = array_of(value)
        return cls(value.dtype, value.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def params(self) -> tuple[TypeParam, ...]:
        """Return the element type's short name and the sizes."""
        return (self.dtype.value, *self.shape)

    @classmethod
    def from_params(cls, params: Sequence[object]) -> TensorType:
        """Make the type of what :meth:`params` gives."""
        sizes = [size for size in params[1:] if type(size) is int]
        if not params or len(sizes) != len(params) - 1:
            raise ValueError("a tensor has an element type and sizes")
        return cls(DType(params[0]), sizes)

    def mismatch(self, value: Any) -> str | None:
        """Compare element type and shape."""
        try:
            dtype, shape = DType.of(value.dtype), value.shape
            if dtype is self.dtype and shape == self.shape:
                return None
            found = TensorType(dtype, shape)
        except (AttributeError, TypeError):
            return f"expected {self}, got {type(value).__name__}"
        return None if found == self else f"expected {self}, got {found}"

    def __str__(self) -> str:
        return f"{self.dtype.value}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class TableType(BaseType):
    """A table: columns in order, each with a name and the name of its Arrow type.

    Example:
        >>> print(TableType((("id", "int64"), ("name", "string"))))
        table<["id", "int64"], ["name", "string"]>
    """

    name: ClassVar[str] = "table"

    columns: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        counts = Counter(name for name, _ in self.columns)
        twice = {name for name, count in counts.items() if count > 1}
        if twice:
            raise ValueError(f"a table names each column once, got {sorted(twice)} twice")

    def params(self) -> tuple[TypeParam, ...]:
        """Return the columns."""
        return self.columns

    @classmethod
    def from_params(cls, params: Sequence[object]) -> TableType:
        """Make the type of its columns."""
        columns: list[tuple[str, str]] = []
        for column in params:
            if not (
                isinstance(column, tuple)
                and len(column) == 2
                and all(isinstance(part, str) for part in column)
            ):
                raise ValueError(f"a column is [name, type], got {_param_text(column)}")
            columns.append(column)
        return cls(tuple(columns))

    def mismatch(self, value: Any) -> str | None:
        """Compare the columns, as the schema of an Arrow table tells them."""
        try:
            found = TableType(tuple((field.name, str(field.type)) for field in value.schema))
        except (AttributeError, TypeError, ValueError):
            return f"expected {self}, got {type(value).__name__}"
        return None if found == self else f"expected {self}, got {found}"


@dataclass(frozen=True, slots=True)
class MPType:
    """A multi-party type: what is held, and by whom.

    Args:
        base: what each holder has.
        pmask: who holds it; ``None`` where that is known only at run time.

    Example:
        >>> print(MPType(TensorType("f32", (3,)), Mask(0b11)))
        f32[3]@{0, 1}
    """

    base: BaseType
    pmask: Mask | None

    def __str__(self) -> str:
        return f"{self.base}@{'?' if self.pmask is None else self.pmask}"


def array_of(value: Any) -> np.ndarray[Any, Any]:
    """Make a NumPy array of a literal, refusing what is no tensor.

    Raises:
        TypeError: ragged lists, strings, objects, tables.
    """
    if hasattr(value, "schema") or hasattr(value, "columns"):
        raise TypeError(
            f"a {type(value).__name__} is a table, and no tensor; give its columns as arrays, or "
            "make a value of it with mplang_ibis.table"
        )
    try:
        array = np.asarray(value)
        DType.of(array.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{type(value).__name__} is no tensor: {error}") from None
    return array


def array_from(data: Any, kind: TensorType) -> np.ndarray[Any, Any]:
    """Return the array that some bytes are, without a copy.

    Args:
        data: bytes, or an array of them.
        kind: its type.

    Raises:
        ValueError: they have another size, or are bools that are neither 0 nor 1.
    """
    dtype = kind.dtype.numpy
    flat = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    if kind.size * dtype.itemsize != flat.nbytes:
        raise ValueError(f"a {kind} does not have {flat.nbytes} bytes")
    if kind.dtype is DType.BOOL and flat.max(initial=0) > 1:
        raise ValueError("a bool is 0 or 1")
    try:
        array: np.ndarray[Any, Any] = flat.view(dtype).reshape(kind.shape)
    except OverflowError as error:  # f32[0, 9223372036854775808], say
        raise ValueError(f"no array is a {kind}: {error}") from None
    return array if array.flags.aligned else array.copy()  # kernels count on it


def frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array in C order and native bytes, such that nobody can change it any more.

    It is copied unless neither it nor what it is a view of can be written.
    """
    dtype = DType.of(array.dtype).numpy
    base: Any = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    if (
        (base is None or isinstance(base, bytes))
        and array.dtype == dtype
        and array.flags.c_contiguous
    ):
        return array
    array = np.array(array, dtype=dtype, order="C")
    array.flags.writeable = False
    return array


type_classes: Namespace[type[BaseType]] = Namespace("type")
"""All base types by name, for the parser."""

type_classes.add("tensor", TensorType, provider="mplang-core")
type_classes.add("table", TableType, provider="mplang-core")
