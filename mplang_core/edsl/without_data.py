"""Refusals of Python operations that need a value's data, with what to write instead."""

from __future__ import annotations

import difflib
import sys
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from mplang_core.errors import MissingAttributeError, NoDataError, TraceError
from mplang_core.ir.source_line import at
from mplang_core.tracebacks import of_user
from mplang_core.types import BaseType, TableType

_METHODS = (
    "all any argmax argmin argsort conj copy cumprod cumsum flatten max mean min nonzero prod "
    "ravel round sort squeeze std sum transpose var"
)
_FETCHED = "item tolist numpy to_numpy to_pandas to_pylist execute collect"
_FETCH = "return it from the program, and mp.fetch(host, result)"


class WithoutData:
    """Base class of values whose data is elsewhere; each refusal has the user's line."""

    __slots__ = ()
    __array_priority__ = 1000  # np.ndarray + value is value.__radd__

    device: Any

    @property
    @abstractmethod
    def base_type(self) -> BaseType:
        """The type of the value at each holder."""

    def _not_here(self, what: str, instead: str) -> NoReturn:
        raise TraceError(f"{at()}{what} of {self!s} needs its data; {instead}", code="T002")

    def _at_a_party(self, expression: str) -> str:
        """Return how to run an expression where the data is."""
        name = "t" if isinstance(self.base_type, TableType) else "x"
        call = f"lambda {name}: {expression.format(name)}"
        if self.device is None:
            return f"write mp.invoke({call}, {name})"
        return f"write mp.device({self.device.name!r})({call})({name})"

    if not TYPE_CHECKING:  # to which a misspelt attribute is an error

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if hasattr(type(self), name):  # a property that its type does not have
                raise MissingAttributeError(f"{at()}{self.base_type} has no {name}")
            raise MissingAttributeError(f"{at()}{self!s} has no {name!r}{self._advice(name)}")

    def _advice(self, name: str) -> str:
        if name in _FETCHED.split():
            return f": its data is at the parties; {_FETCH}"
        kind, there = self.base_type, ": its data is at the parties; "
        if isinstance(kind, TableType):
            if name in ("columns", "dtypes", "schema"):
                return ": its type has them, .base_type.columns"
            is_column = name in dict(kind.columns)
            use = f"{{0}}.select({name!r})" if is_column else f"{{0}}.{name}(...)"
            return there + self._at_a_party(use)
        if name == "at" or hasattr(np.ndarray, name):
            called = "()" if name in _METHODS.split() else "(...)"
            called = called if callable(getattr(np.ndarray, name, None)) else ""
            return there + self._at_a_party(f"{{0}}.{name}{called}")
        close = difflib.get_close_matches(name, [n for n in dir(type(self)) if n[0] != "_"], n=1)
        known = f"did you mean {close[0]!r}? " if close else ""
        return f"; {known}What its data can do is done there: {self._at_a_party('{0} + 1')}"

    def __bool__(self) -> bool:
        self._not_here(
            "the truth",
            "for `if` use mp.uniform_cond, or of a secret jnp.where in a function for its device, "
            "for `while` mp.while_loop, with data mp.fetch; `and`, `or`, `not` of predicates are "
            "&, | and ~, and 0 < x < 9 is (0 < x) & (x < 9)",
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        self._not_here("an array", f"{self._at_a_party('{0} + 1')}, or {_FETCH}")

    @property
    def __jax_array__(self) -> Any:
        """JAX asks for it before it refuses what is not an array of its own.

        Its operators ask, too, and leave the operation to this value if there is none.
        """
        if sys._getframe(1).f_code.co_name == "deferring_binary_op":
            raise AttributeError("__jax_array__")
        where = self._at_a_party("jnp.sum({0})")
        raise NoDataError(f"{at()}JAX has no data of {self!s}; {where}, with your function")

    def _number(self) -> Any:
        self._not_here("the number", f"{_FETCH}, or keep computing with mp.device(...)")

    __float__ = __int__ = __complex__ = __index__ = __trunc__ = __floor__ = __ceil__ = _number

    def __deepcopy__(self, memo: object = None) -> Self:
        """Return the value itself: values do not change."""
        return self

    __copy__ = __deepcopy__

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._not_here("a pickle", f"{_FETCH}; mp.store(x, 'name') keeps it at its parties")

    def __round__(self, digits: int = 0) -> Any:
        self._not_here("a rounded number", self._at_a_party(f"{{0}}.round({digits or ''})"))

    def __format__(self, spec: str) -> str:
        if spec:
            self._not_here(f"text in the format {spec!r}", _FETCH)
        return str(self)

    def __contains__(self, item: Any) -> bool:
        self._not_here("the elements", self._at_a_party("({0} == item).any()"))

    def __setitem__(self, index: Any, value: Any) -> None:
        is_table = isinstance(self.base_type, TableType)
        changed = "{0}.mutate(name=...)" if is_table else "{0}.at[index].set(value)"
        self._not_here("an element", f"values do not change: {self._at_a_party(changed)}")


for _name in ("__array__", "__bool__", "__float__", "__int__", "__index__", "__round__"):
    setattr(WithoutData, _name, of_user(vars(WithoutData)[_name]))
