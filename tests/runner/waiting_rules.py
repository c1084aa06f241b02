"""Rules of waiting in tests: by :mod:`mplang_testing.waiting` alone; ``make lint`` checks.

Found are sleeps, fixed ports, deadlines under ten seconds, and clocks that are compared by hand.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXEMPT = {
    ROOT / "plugins/mplang_testing/src/mplang_testing/waiting.py",
    ROOT / "tests/fuzz/run.py",  # runs for a given time, and asserts nothing
    ROOT / "tests/runner/stress.py",  # the same
    ROOT / "tests/runner/test_waiting_rules.py",
}
PLACES = ("tests/**", "plugins/*/tests/**", "plugins/mplang_testing/src/**", "examples/*/tests/**")

LEAST = 10  # seconds: the shortest deadline that a test may wait for something that has to come
WAITS = {"communicate", "exception", "join", "result", "settimeout", "timeout", "wait", "wait_for"}
CLOCKS = {"monotonic", "perf_counter", "process_time", "time"}
FIXED = "a fixed port; let the system choose one (port 0)"

SLEEP = re.compile(r"\bsleep\(")
PORT = re.compile(r"(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\]):(\d{4,5})\b")


def findings(source: str) -> Iterator[tuple[int, str]]:
    """Return the line and the text of each finding in a module."""
    tree = ast.parse(source)
    durations = _durations(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                yield from ((node.lineno, text) for text in _of_call(node))
            case ast.Compare() if _is_upper_bound(node, durations):
                yield node.lineno, "a clock is compared; use wait_until, or in_time"
            case ast.Constant(value=str() as text):
                if SLEEP.search(text):
                    yield node.lineno, "code in a string sleeps; use pause, or wait for an end"
                if any(int(port) < 1 << 16 for port in PORT.findall(text)):
                    yield node.lineno, FIXED


def _of_call(node: ast.Call) -> Iterator[str]:
    name = _name(node.func)
    if name == "sleep" and not (node.args and _is_zero(node.args[0])):
        yield "a sleep; use wait_until, stays or pause"
    if name in ("bind", "connect", "create_connection") and node.args:
        address = node.args[0]
        if isinstance(address, ast.Tuple) and len(address.elts) == 2 and _number(address.elts[1]):
            yield FIXED
    given = {each.arg: each.value for each in node.keywords}
    if _number(given.get("port")):
        yield FIXED
    deadline = given.get("timeout")
    if name in WAITS and deadline is None and node.args:
        deadline = node.args[1 if name == "wait_for" and len(node.args) > 1 else 0]
    if name in {*WAITS, "acquire", "get", "put", "run"} and 0 < _number(deadline) < LEAST:
        yield f"a deadline under {LEAST} s; use waiting.DEADLINE"


def _name(function: ast.expr) -> str:
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _number(node: ast.expr | None) -> float:
    """Return a literal number; 0 for everything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    return 0.0


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0  # other tasks run, and no time passes


def _reads_clock(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Call) and _name(each.func) in CLOCKS and not each.args
        for each in ast.walk(node)
    )


def _durations(tree: ast.Module) -> set[str]:
    """Return the names that a difference of clocks is bound to."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(value=ast.BinOp(op=ast.Sub())) if _reads_clock(node.value):
                found.update(each.id for each in node.targets if isinstance(each, ast.Name))
    return found


def _is_upper_bound(node: ast.Compare, durations: set[str]) -> bool:
    """Return whether a comparison says that a time is short: ``clock < x`` or ``x > clock``."""
    sides = [node.left, *node.comparators]
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        small = left if isinstance(operator, (ast.Lt, ast.LtE)) else right
        if isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) and (
            _reads_clock(small) or (isinstance(small, ast.Name) and small.id in durations)
        ):
            return True
    return False


def main() -> int:
    """Print all findings; return 1 where there is one."""
    found_in = (file for place in PLACES for file in ROOT.glob(f"{place}/*.py"))
    files = {ROOT / "conftest.py", *found_in} - EXEMPT
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text}"
        for file in sorted(files)
        for line, text in sorted(findings(file.read_text(encoding="utf-8")))
    ]
    print("\n".join([*found, f"waiting in tests: {len(files)} files, {len(found)} findings"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
