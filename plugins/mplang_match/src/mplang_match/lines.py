"""Lines of text by which matchers get tokens: 32 hexadecimal digits each, and an end of line."""

from __future__ import annotations

import numpy as np

from mplang_core.ext import RunError

SIZE = 16  # bytes of a token: of 2^21 different ones two are equal with a chance of 2^-87
TEXT = 2 * SIZE + 1  # bytes of its line


def check_text(text: memoryview) -> None:
    """Check that a text is of whole lines, at least one.

    Raises:
        RunError: it is not.
    """
    is_whole = len(text) >= TEXT and len(text) % TEXT == 0
    if not is_whole or (np.frombuffer(text, np.uint8)[TEXT - 1 :: TEXT] != ord("\n")).any():
        raise RunError(
            f"expected lines of {TEXT} bytes of tokens, got {len(text)} bytes", code="L005"
        )
