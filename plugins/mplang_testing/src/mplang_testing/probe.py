"""What is asked in a process of its own: other hash seeds, other lines, nothing imported yet."""

from __future__ import annotations

import json
import linecache
import os
import subprocess
import sys
import traceback
import types
from collections.abc import Callable, Iterable
from typing import Any

from mplang_analysis import Declassifies, HasLineage
from mplang_cli import introspect

from mplang_core import registry
from mplang_core.ext import (
    HOOKED,
    NAMESPACES,
    Level,
    OpDef,
    PluginError,
    PluginRecord,
    host_kernels,
    native_of,
    op_defs,
    plugin_manager,
    worker_kernels,
)
from mplang_testing.sample import text_of

TIMEOUT = 300.0  # seconds


def ask(question: str, *args: Any, seed: int = 0, timeout: float = TIMEOUT) -> Any:
    """Call ``module:function`` in a new process, with this one's import path.

    Args:
        question: what to call; gives data that JSON can write.
        *args: data for it.
        seed: of the hashes of strings.
        timeout: how many seconds it gets.

    Raises:
        RuntimeError: it failed; with the end of what it wrote.
    """
    module, _, function = question.partition(":")
    code = (
        f"import json, sys; from {module} import {function} as f; "
        "found = f(*json.load(sys.stdin)); print('\\n' + json.dumps(found))"
    )
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(args),  # an argument of a process is limited to 128 KiB on Linux
        capture_output=True,
        text=True,
        env=env,
        timeout=timeout,
    )
    if done.returncode:
        raise RuntimeError("\n".join(done.stderr.strip().split("\n")[-8:]))
    return json.loads(done.stdout.rstrip().rpartition("\n")[2])


def texts(file: str, module: str, suite: str, shift: int) -> dict[str, str]:
    """Return the text of each sample of a suite, whose file begins with so many empty lines."""
    with open(file, encoding="utf-8") as source:
        text = "\n" * shift + source.read()
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    made = types.ModuleType(module)
    made.__file__, made.__package__ = file, module.rpartition(".")[0]
    sys.modules[module] = made
    exec(compile(text, file, "exec"), vars(made))
    found: Any = made
    for name in suite.split("."):
        found = getattr(found, name)
    return {name: text_of(sample.build()) for name, sample in found().cases()["sample"].items()}


def installed(distribution: str, heavy: list[str]) -> dict[str, Any]:
    """Return what :func:`plugin` gives, and what :func:`rolled_back` gives in a fork before it."""
    left = _in_fork(rolled_back, distribution)
    return {**plugin(distribution, heavy), "left": left}


def _in_fork(look: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a fork, which saves a start and its imports; return what it gives."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with open(writer, "w", encoding="utf-8") as out:
                json.dump(look(*args), out)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    with open(reader, encoding="utf-8") as file:
        text = file.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"{look.__name__} ended with {os.waitstatus_to_exitcode(status)}")
    return json.loads(text)


def plugin(distribution: str, heavy: list[str]) -> dict[str, Any]:
    """Load the plugins of a distribution, and tell what they are and what they brought."""
    records = _records(distribution)
    before = _names()
    errors = {}
    for record in records:
        try:
            plugin_manager.load(record.name, record.group)
        except PluginError as error:
            errors[f"{record.group}: {record.name}"] = str(error)
    loaded = [name for name in heavy if name in sys.modules]
    after = _names()
    others = _others(distribution)
    brought = {
        what: {
            name: provider
            for name, provider in names.items()
            if name not in before[what] and provider not in others
        }
        for what, names in after.items()
    }
    return {
        "entries": [[r.group, r.name, r.module, r.requires_core] for r in records],
        "errors": errors,
        "loaded": loaded,
        "brought": brought,
        "local kernels": [op for op in brought["worker kernel"] if _is_local(op)],
        "unmarked": _unmarked({r.module.partition(":")[0] for r in records}),
        "described": {name: introspect.describe(name) for name in brought["feop"]},
        "docs": _docs(brought),
        "settings": _settings({r.module.partition(":")[0] for r in records}),
        "believed": believed(brought["op"]),
        "no kernel": [op for op in brought["op"] if not _has_kernel(op)],
        "no op": [
            op
            for table in ("host kernel", "worker kernel")
            for op in brought[table]
            if op not in op_defs
        ],
    }


def believed(ops: Iterable[str]) -> dict[str, list[str]]:
    """Return by suite of the kit the ops that declare what this suite tries."""
    defined = {name: op_def for name in ops if (op_def := op_defs.get(name)) is not None}
    declares: dict[str, Callable[[OpDef], bool]] = {
        "GuardSuite": lambda op_def: op_def.interface(Declassifies) is not None,
        "LineageSuite": lambda op_def: op_def.interface(HasLineage) is not None,
        # who calls the service of another family does not bring it
        "NativeSuite": lambda op_def: native_of(op_def.name) == op_def.name.partition(".")[0],
        "PartyOpSuite": lambda op_def: op_def.level is Level.PARTY,
    }
    found = {
        suite: sorted(name for name, op_def in defined.items() if asks(op_def))
        for suite, asks in declares.items()
    }
    return {suite: names for suite, names in found.items() if names}


def rolled_back(distribution: str) -> dict[str, list[str]]:
    """Fail the plugins of a distribution at the end of loading; return what they left behind."""
    before, add = _names(), plugin_manager._add

    def fail_at_last(contributed: Any, record: PluginRecord) -> None:
        add(contributed, record)
        if record.distribution == distribution:
            raise RuntimeError("the kit has it fail here")

    plugin_manager._add = fail_at_last  # type: ignore[method-assign]
    for record in _records(distribution):
        if record.group not in HOOKED:  # a module without hooks
            continue
        try:
            plugin_manager.load(record.name, record.group)
        except PluginError:
            continue
    others = _others(distribution)
    left = {
        what: [n for n, by in names.items() if n not in before[what] and by not in others]
        for what, names in _names().items()
    }
    return {what: names for what, names in left.items() if names}


def _others(distribution: str) -> set[str]:
    """Return the distributions of other plugins, and their packages, which it may import."""
    records = [r for r in plugin_manager.records() if r.distribution != distribution]
    return {name for r in records for name in (r.distribution, r.module.partition(".")[0])}


def _records(distribution: str) -> list[PluginRecord]:
    return [r for r in plugin_manager.records() if r.distribution == distribution]


def _names() -> dict[str, dict[str, str | None]]:
    return {
        space.what: {name: space.provider(name) for name in space.names()} for space in NAMESPACES
    }


def _unmarked(modules: set[str]) -> list[str]:
    """Return functions that are named like hooks, and are none to pluggy."""
    return [
        f"{module}.{name}"
        for module in sorted(modules & sys.modules.keys())
        for name, item in vars(sys.modules[module]).items()
        if name.startswith("mplang_")
        and isinstance(item, types.FunctionType)
        and not hasattr(item, "mplang_impl")
    ]


def _settings(modules: set[str]) -> list[str]:
    """Return the names of the settings that all workers have to have alike."""
    asked = [
        getattr(sys.modules[name], "mplang_settings", None)
        for name in sorted(modules)
        if name in sys.modules
    ]
    return [name for ask in asked if ask is not None for name in ask()]


def _is_local(op: str) -> bool:
    """Return whether an op runs at one party, and is not among parties."""
    op_def = op_defs.get(op)
    return op_def is not None and op_def.level is Level.LOCAL


def _has_kernel(op: str) -> bool:
    """Return whether an op has a kernel."""
    return any(table.get(op) is not None for table in (host_kernels, worker_kernels))


def _docs(brought: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the line that says what each thing is, for what has one."""
    found = {f"the feop {name}": registry.get(name).__doc__ or "" for name in brought["feop"]}
    for name in brought["op"]:
        op = op_defs.get(name)
        found[f"the op {name}"] = op.doc if op is not None else ""
    for what, rows, key in (
        ("device kind", introspect.list_devices(), "kind"),
        ("backend", introspect.list_backends(), "name"),
    ):
        mine = [row for row in rows if row[key] in brought[what]]
        found |= {f"the {what} {row[key]}": row["doc"] for row in mine}
    return found
