"""Types of values: base types, and multi-party types, which add a mask of holders.

A base type is the type of what one party holds: a tensor, a table, a share of a tensor. An
:class:`MPType` adds the mask of the parties that hold it. Plugins add base types as subclasses
of :class:`BaseType`. The text form of a type is ``name<parameters>``; tensors are written as
``f32[2, 3]``.
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

TypeParam: TypeAlias = "bool | int | str | Mask | Attribute | tuple[TypeParam, ...] | None"
"""A parameter of an attribute or a type, written between ``<`` and ``>``."""

MAX_RANK = 64


class Form(enum.Enum):
    """Form of a value at its holder: plain, or protected from it in some way."""

    PLAIN = "plain"
    SHARE = "share"
    CIPHERTEXT = "ciphertext"
    KEY = "key"
    HANDLE = "handle"

    __hash__ = object.__hash__  # members are single; hashes of their names are made in Python


class DType(enum.Enum):
    """Element type of a tensor. The member's value is its short name, as in ``f32[3]``."""

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

    __hash__ = object.__hash__  # as of Form

    @classmethod
    def of(cls, dtype: Any) -> DType:
        """Return the member of a dtype.

        Args:
            dtype: a NumPy dtype or what NumPy converts to one, a short name, or a member.

        Raises:
            TypeError: it is not a dtype, or one that tensors do not support (``object``,
                dates, …).

        Example:
            >>> DType.of("float32"), DType.of(np.int64), DType.of("bf16")
            (<DType.F32: 'f32'>, <DType.I64: 'i64'>, <DType.BF16: 'bf16'>)
        """
        if isinstance(dtype, (DType, np.dtype)) and dtype in _SEEN:
            return _SEEN[dtype]
        if isinstance(dtype, str) and dtype in cls._value2member_map_:
            return cls(dtype)
        try:
            name = "bfloat16" if str(dtype) == "bfloat16" else np.dtype(dtype or "").name
            found = _FROM_NUMPY[name]
        except (KeyError, TypeError, ValueError, SyntaxError):  # NumPy parses some strings
            raise TypeError(
                f"a tensor cannot hold elements of type {str(dtype)[:40]!r}; expected one of "
                f"{', '.join(_FROM_NUMPY)}"
            ) from None
        if isinstance(dtype, np.dtype):
            _SEEN[dtype] = found  # bounded by the number of dtypes; dtype.name is slow
        return found

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; that of bfloat16 comes from ``ml_dtypes``."""
        if self is DType.BF16:
            import ml_dtypes

            bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return bfloat16
        return np.dtype(_TO_NUMPY[self])

    @property
    def is_64bit(self) -> bool:
        """Whether an element, or each part of a complex element, has 64 bits."""
        return self in (DType.I64, DType.U64, DType.F64, DType.C128)

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer."""
        return self.value[0] in "iu"


_SEEN: dict[DType | np.dtype[Any], DType] = {each: each for each in DType}
_LONG = str.maketrans({"i": "int", "u": "uint", "f": "float", "c": "complex"})
_TO_NUMPY: Mapping[DType, str] = {each: each.value.translate(_LONG) for each in DType}
_FROM_NUMPY: Mapping[str, DType] = {name: each for each, name in _TO_NUMPY.items()}


class Attribute(ABC):
    """Attribute value of a kind that a plugin adds. Subclasses are frozen dataclasses.

    Attributes:
        name: the name in text and on the wire, ``dialect.name``; each subclass sets it.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Money(Attribute):
        ...     name = "demo.money"
        ...     cents: int
        ...     currency: str
        ...     def params(self):
        ...         return (self.cents, self.currency)
        ...     @classmethod
        ...     def from_params(cls, params):
        ...         cents, currency = params
        ...         if type(cents) is not int or type(currency) is not str:
        ...             raise TypeError("expected cents and a currency")
        ...         return cls(cents, currency)
        >>> print(Money(250, "EUR"))
        demo.money<250, "EUR">
    """

    name: ClassVar[str]

    @abstractmethod
    def params(self) -> tuple[TypeParam, ...]:
        """Return the parameters, which text shows between ``<`` and ``>``."""

    @classmethod
    @abstractmethod
    def from_params(cls, params: Sequence[object]) -> Self:
        """Return what has certain parameters; the inverse of :meth:`params`.

        Args:
            params: untrusted: from a peer, of any number and kind.

        Raises:
            ValueError: the parameters are invalid.
            TypeError: the parameters are invalid.
        """

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(param_text, self.params()))}>"


class BaseType(Attribute):
    """Type of what one party holds. Subclasses are frozen dataclasses.

    Attributes:
        name: see :class:`Attribute`.
        form: the form of its values at their holder; plain by default.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Key(BaseType):
        ...     name = "demo.key"
        ...     form = Form.KEY
        ...     bits: int
        ...     def params(self):
        ...         return (self.bits,)
        ...     @classmethod
        ...     def from_params(cls, params):
        ...         (bits,) = params
        ...         return cls(int(bits))
        >>> print(Key(128))
        demo.key<128>
    """

    form: ClassVar[Form] = Form.PLAIN

    def mismatch(self, value: Any) -> str | None:
        """Return why a run-time value is not of this type.

        Args:
            value: any object.

        Returns:
            The reason, or ``None`` if the value is of this type. By default every value is.
        """
        return None


def param_text(param: object) -> str:
    """Return the text of a parameter, as types and programs show it."""
    if isinstance(param, tuple):
        return f"[{', '.join(map(param_text, param))}]"
    if isinstance(param, str):
        return json.dumps(param)
    if param is None or isinstance(param, bool):
        return {None: "none", True: "true", False: "false"}[param]
    return str(param)


@dataclass(frozen=True, slots=True)
class TensorType(BaseType):
    """Type of a dense array.

    Args:
        dtype: the element type; any argument of :meth:`DType.of`.
        shape: the size of each dimension, not negative; at most 64 dimensions.

    Raises:
        TypeError: the element type is not supported, or a size is not an integer.
        ValueError: the shape is invalid.

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
        """Return the type of an array, or of what NumPy converts to one.

        Raises:
            TypeError: the value is not a tensor.
        """
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
        """Return the type with the parameters of :meth:`params`.

        Raises:
            ValueError: the parameters are invalid.
            TypeError: the parameters are invalid.
        """
        sizes = [size for size in params[1:] if type(size) is int]
        if not params or len(sizes) != len(params) - 1:
            raise ValueError("a tensor has an element type and sizes")
        return cls(DType(params[0]), sizes)

    def mismatch(self, value: Any) -> str | None:
        """Return how the element type or shape of a value differs, or ``None``."""
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
    """Type of a table.

    Args:
        columns: the columns in order, each with its name and the name of its Arrow type.

    Raises:
        ValueError: two columns have the same name.

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
        """Return the type with certain columns.

        Raises:
            ValueError: a parameter is not a column.
        """
        columns: list[tuple[str, str]] = []
        for column in params:
            match column:
                case tuple((str(name), str(kind))):
                    columns.append((name, kind))
                case _:
                    raise ValueError(f"a column is [name, type], got {param_text(column)}")
        return cls(tuple(columns))

    def mismatch(self, value: Any) -> str | None:
        """Return how the schema of an Arrow table differs, or ``None``."""
        try:
            found = TableType(tuple((field.name, str(field.type)) for field in value.schema))
        except (AttributeError, TypeError, ValueError):
            return f"expected {self}, got {type(value).__name__}"
        return None if found == self else f"expected {self}, got {found}"


@dataclass(frozen=True, slots=True)
class MPType:
    """Multi-party type: a base type and the parties that hold a value of it.

    Args:
        base: the type of the value at each holder.
        pmask: the holders; ``None`` if they are known only at run time.

    Example:
        >>> print(MPType(TensorType("f32", (3,)), Mask(0b11)))
        f32[3]@{0, 1}
    """

    base: BaseType
    pmask: Mask | None

    def mismatch(self, value: Any) -> str | None:
        """Return why a party's value is not of the base type; ``None`` is where it holds none."""
        return None if value is None else self.base.mismatch(value)

    def __str__(self) -> str:
        return f"{self.base}@{'?' if self.pmask is None else self.pmask}"


_PLAIN = (None, np.ndarray.__array_finalize__, np.memmap.__array_finalize__)


def check_whole(value: Any) -> None:
    """Check that an array of a literal's elements is all of it.

    Raises:
        TypeError: something would be lost; says what to write.

    Example:
        >>> check_whole(np.ma.array([30.0, -999.0], mask=[False, True]))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        TypeError: a tensor of a MaskedArray has no mask, ...
    """
    if isinstance(value, list | tuple) and not {int, float}.issuperset(map(type, value)):
        any(map(check_whole, value))
    missing = getattr(value, "null_count", 0)  # of Arrow; polars has a method
    if hasattr(value, "isna") and not isinstance(value.dtype, np.dtype):  # of pandas, not NaN
        missing = value.isna().any()
    special = getattr(type(value), "__array_finalize__", None) not in _PLAIN  # it keeps something
    if special or (missing() if callable(missing) else missing):
        raise TypeError(
            f"a tensor of a {type(value).__name__} has no mask, missing values, unit or operators; "
            "fill or drop what is missing (x.filled(0), x.fillna(0)), then write np.asarray(x)"
        )


def array_of(value: Any) -> np.ndarray[Any, Any]:
    """Return a literal as a NumPy array.

    Args:
        value: an array, a number, or nested lists of numbers.

    Returns:
        The array. Python ints become int64, floats become float64.

    Raises:
        TypeError: the literal is not a tensor: a ragged list, string, object or table.

    Example:
        >>> array_of([[1.0, 2.0]]).shape
        (1, 2)
    """
    if is_table(value):
        raise TypeError(table_advice(value))
    check_whole(value)
    try:
        array = np.asarray(value)
        array = array.astype(DType.of(array.dtype).numpy, copy=False)  # in this order of bytes
    except (TypeError, ValueError) as error:
        name = type(value).__name__
        reasons = (why for kind, why in _NO_TENSORS.items() if name.endswith(kind))
        reason = next(reasons, f"{error}; {_TABLES_ADVICE}")
        raise TypeError(f"{name} is not a tensor: {reason}") from None
    listed = isinstance(value, list | tuple) and array.dtype.kind == "f" and array.size > 0
    if listed and {int}.issuperset(map(type, np.asarray(value, object).flat)):
        raise TypeError("no type holds all of these integers; write floats, or np.uint64([...])")
    return array


_TABLES_ADVICE = (
    "strings and dates are columns of tables, None is a gap of one; these, and plugins' values, "
    'are put outside of the function: mp.put("P0", pyarrow.table({"name": ["a", "b"]}))'
)
_NO_TENSORS = {  # by the end of a class's name
    "Tracer": "it leaked out of the function that it was traced in, which has ended; return it "
    "from that function, and use what the call gives",
    "LazyFrame": 'it has no rows yet; outside of the function: mp.put("P0", frame.collect())',
    "int": "it has more than 64 bits; write it as a float, which rounds it, as in float(2**64)",
}


_BYTES = (bytes, bytearray)  # a constant: size_of runs for each message


def size_of(data: Any) -> int:
    """Return the size of a value in bytes; 0 if it has neither a length in bytes nor ``nbytes``.

    Example:
        >>> size_of(b"abc"), size_of("abc")
        (3, 0)
    """
    if isinstance(data, _BYTES):
        return len(data)
    size = getattr(data, "nbytes", 0)
    return size if isinstance(size, int) else 0


def is_table(value: Any) -> bool:
    """Return whether an object is a table, as those of Arrow, pandas and polars are."""
    exports = hasattr(value, "__arrow_c_stream__") and not isinstance(value, type)
    return exports and (hasattr(value, "columns") or hasattr(value, "schema"))


def table_advice(value: Any) -> str:
    """Return how a table gets to a party, where it is given as a literal of a program."""
    return (
        f"a {type(value).__name__} is a table, and stands in no program, which all parties can "
        "read; mp.put it at its party outside of the function, in `with mp.with_ctx(host):`, and "
        "pass the value as an argument"
    )


def array_from(data: Any, kind: TensorType) -> np.ndarray[Any, Any]:
    """Return the array of a type in a buffer, without a copy if the buffer is aligned.

    Args:
        data: bytes, or a uint8 array; elements in C order and native byte order.
        kind: the type of the array.

    Returns:
        An array of the shape and dtype of ``kind``; read-only if ``data`` is.

    Raises:
        ValueError: the size does not fit the type, or a bool is neither 0 nor 1.

    Example:
        >>> array_from(bytes([1, 0]), TensorType("bool", (2,)))
        array([ True, False])
    """
    dtype = kind.dtype.numpy
    flat = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    if kind.size * dtype.itemsize != flat.nbytes:
        raise ValueError(f"a {kind} does not have {flat.nbytes} bytes")
    if kind.dtype is DType.BOOL and flat.max(initial=0) > 1:
        raise ValueError("a bool is 0 or 1")
    try:
        array: np.ndarray[Any, Any] = flat.view(dtype).reshape(kind.shape)
    except OverflowError as error:  # for example f32[0, 9223372036854775808]
        raise ValueError(f"no array is a {kind}: {error}") from None
    return array if array.flags.aligned else array.copy()  # kernels rely on aligned data


def frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an immutable array with the same elements, in C order and native byte order.

    Args:
        array: an array of a supported dtype.

    Returns:
        The array itself if its memory cannot be written through any view, else a copy.

    Raises:
        TypeError: the dtype is not supported.
    """
    dtype = DType.of(array.dtype).numpy
    base: Any = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    if isinstance(base, bytes | None) and array.dtype == dtype and array.flags.c_contiguous:
        return array
    array = np.array(array, dtype=dtype, order="C")
    array.flags.writeable = False
    return array


type_classes: Namespace[type[Attribute]] = Namespace("type")
"""Base types, and attributes of plugins, by name, for the parser."""

type_classes.add("tensor", TensorType, provider="mplang-core")
type_classes.add("table", TableType, provider="mplang-core")
