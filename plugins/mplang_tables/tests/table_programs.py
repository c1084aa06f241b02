"""What the tests of tables share."""

from __future__ import annotations

import mplang_core as mp

KIND = mp.TableType((("a", "int64"),))


def at(party, op, *args, **attrs):
    return mp.device(party)(op)(*args, **attrs)
