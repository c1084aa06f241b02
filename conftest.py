"""What the tests share."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import components
import pytest
from hypothesis import HealthCheck, settings

import mplang_core as mp

pytest_plugins = ["crashes", "flaky", "longest_first", "selection"]

ROOT = Path(__file__).parent

ENGINES = ("architecture", "artifact", "docs", "integration")
"""Folders of ``tests/`` whose tests depend on the plugins that are installed, each in its way."""

TOOLS = ("analysis", "cache", "cli", "passes", "testing", "trace")
"""Packages below ``plugins/`` that need no engine."""

SMOKE = (
    "examples/mplang_hello/tests/test_conformance.py",
    "plugins/mplang_crypto/tests/test_vectors.py",
    "plugins/mplang_data/tests/test_datasets.py",
    "plugins/mplang_dp/tests/test_ops.py",
    "plugins/mplang_guard/tests/test_aggregate.py",
    "plugins/mplang_worker/tests/test_conformance.py",
    "plugins/mplang_worker/tests/test_tls.py",
    "plugins/mplang_ibis/tests/test_run.py",
    "plugins/mplang_jax/tests/test_jax.py",
    "plugins/mplang_policy/tests/test_approvals.py",
    "plugins/mplang_policy/tests/test_rules.py",
    "plugins/mplang_spu/tests/test_spu.py",
    "plugins/mplang_stablehlo/tests/test_admission.py",
    "plugins/mplang_stablehlo/tests/test_functions.py",
    "plugins/mplang_tables/tests/test_put.py",
    "plugins/mplang_trace/tests/test_recording.py",
    "tests/artifact/test_format.py",
    "tests/docs/test_docs.py",
    "tests/integration/test_auction.py",
    "tests/integration/test_four_frontends.py",
    "tests/ir/test_wire_versions.py",
)
"""Tests that are run on other versions of what is installed: some of each engine and backend."""

REASONED = ("slow", "long", "alone")
"""Markers whose argument says why the test has them."""


FEW, MANY = 25, 200
"""Random examples of a test that says no number: in a quick run, and in ``make test-long``."""

settings.register_profile(  # no test fails since a machine is busy
    "mplang", deadline=None, suppress_health_check=list(HealthCheck), max_examples=FEW
)
settings.register_profile("many", settings.get_profile("mplang"), max_examples=MANY)
settings.load_profile("mplang")


def pytest_configure() -> None:
    """Handle SIGINT, which a shell has its background processes, and their children, ignore.

    What hosts keep (receipts) is not written to the home of whoever runs the tests, nor compiled
    code: each process of a test compiles itself.
    """
    os.environ.setdefault("MPLANG_COMPILED_CODE", "off")
    os.environ["XDG_STATE_HOME"] = str(Path(tempfile.gettempdir()) / f"mplang-state-{os.getuid()}")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the garbage collector pass over the tests: all of them stay until the end.

    To look at ten thousand tests and their modules took it a tenth of the time of the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark smoke tests, and tests that need no engine: these run once, by ``make test-core``.

    In :data:`ENGINES`, single tests have the mark themselves.
    """
    for item in items:
        for mark in item.iter_markers():
            if mark.name in REASONED and not mark.args:
                why = f"@pytest.mark.{mark.name}('…')"
                raise pytest.UsageError(f"{item.nodeid}: the marker {mark.name} says why: {why}")
        suite = getattr(item, "cls", None)
        if hasattr(suite, "examples"):  # of the kit
            suite.examples = min(suite.examples, settings.default.max_examples)
        path = item.path.relative_to(ROOT)
        if path.as_posix() in SMOKE and not {"slow", "long"} & {
            m.name for m in item.iter_markers()
        }:
            item.add_marker("smoke")
        if _of_core(path) and item.get_closest_marker("needs") is None:
            item.add_marker("core")


def _of_core(path: Path) -> bool:
    """Return whether the tests of a file need no engine, where they do not say that they do."""
    top, folder, *_ = path.parts
    if top == "tests":
        return folder not in ENGINES
    return top == "plugins" and folder in map("mplang_{}".format, TOOLS)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file for ``make test-engines`` that has tests of the core alone: a third of all."""
    if "not core" not in config.option.markexpr or not collection_path.match("test_*.py"):
        return None
    alone = _of_core(collection_path.relative_to(ROOT)) and (
        "needs" not in collection_path.read_text(encoding="utf-8")
    )
    return True if alone else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option of ``.ci/run``, which installs all components."""
    parser.addoption(
        "--all-components",
        action="store_true",
        help="a test whose component is not installed fails; it is skipped otherwise",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a plugin, a tool or a component that is not in this environment."""
    for mark in item.iter_markers("needs"):
        missing = [f"mplang-{name}" for name in mark.args if find_spec(f"mplang_{name}") is None]
        missing += [tool for tool in mark.kwargs.get("tools", ()) if find_spec(tool) is None]
        if missing:
            pytest.skip(f"needs {', '.join(missing)}")
        components.need(item.config, *mark.kwargs.get("components", ()))


@pytest.fixture(scope="session", autouse=True)
def _shared_forks() -> Iterator[None]:
    """Have local clusters share what they fork workers from."""
    if find_spec("mplang_http") is None:
        yield
        return
    import shared_forks

    shared_forks.share()
    yield
    shared_forks.close()


@pytest.fixture
def simulate() -> Iterator[Callable[..., mp.simp.SimpHost]]:
    """Make simulators that are closed after the test."""
    made: list[mp.simp.SimpHost] = []

    def make(parties: int | mp.ClusterSpec = 3, **options: object) -> mp.simp.SimpHost:
        cluster = mp.ClusterSpec.simple(parties) if isinstance(parties, int) else parties
        made.append(mp.Simulator(cluster, **{"timeout": 10.0, **options}))
        return made[-1]

    yield make
    for sim in made:
        sim.close()


@pytest.fixture(params=["standard", "launch"])
def mode(request: pytest.FixtureRequest) -> str:
    """Run the test in both modes."""
    return str(request.param)
