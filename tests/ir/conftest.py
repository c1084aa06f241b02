"""A dialect with attributes of every kind, for text and bytes; its ops compute nothing."""

from __future__ import annotations

import numpy as np
import toy  # noqa: F401  the golden programs use it

from mplang_core import BaseType, Mask, TensorType
from mplang_core.ir import Attr, OpDef, op_defs

op_defs.add(
    "irtest.attrs",
    OpDef(
        "irtest.attrs",
        lambda op, world: [TensorType("i64")],
        attrs={
            "blob": Attr(bytes),
            "count": Attr(int),
            "data": Attr(np.ndarray),
            "flag": Attr(bool),
            "kind": Attr(BaseType),
            "maybe": Attr((int, type(None))),
            "pair": Attr(tuple),
            "ratio": Attr(float),
            "table": Attr(dict),
            "text": Attr(str),
            "who": Attr(Mask),
        },
    ),
    provider="tests",
)
op_defs.add(
    "irtest.any",
    OpDef("irtest.any", lambda op, world: [], attrs={"value": Attr(object)}),
    provider="tests",
)
