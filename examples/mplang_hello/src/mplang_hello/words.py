"""What owners' rules may name of this package: the function of its guard. Imports no engine."""

from __future__ import annotations

import re

from mplang_analysis import Function, Words

NUMBERS = re.compile("u?int|float|double")

WORDS = Words([Function("var", of=lambda kind: NUMBERS.match(kind) is not None)])
"""The entry point ``hello`` of the group ``mplang.words``: ``Aggregate::"var(people.pay)"``."""
