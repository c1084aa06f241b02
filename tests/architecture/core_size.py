"""Lines of code of the core: without comments, docstrings and blank lines; ``make lint`` checks."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

LIMIT = 7640
LAYOUT = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def code_lines(source: str) -> int:
    """Return how many lines of a module have code on them; documenting strings are none."""
    documents: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documents.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documents)


def main() -> int:
    """Print the size of the core; return 1 where it is too large."""
    root = Path(__file__).parents[2] / "mplang_core"
    total = sum(code_lines(file.read_text(encoding="utf-8")) for file in root.rglob("*.py"))
    print(f"mplang_core: {total} lines of code, at most {LIMIT}")
    return int(total > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
