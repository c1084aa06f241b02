"""``docs/backends.md`` quotes its example; the tables of workers' pages are complete.

Their Python blocks run in ``test_docs.py``.
"""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml
from quoted import assert_quoted, quotes_in

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "mplang_grpc"
TEXT = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")
OPERATING = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
HTTP = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
README = (ROOT / "plugins" / "mplang_http" / "README.md").read_text(encoding="utf-8")
WORKER = (ROOT / "plugins" / "mplang_worker" / "README.md").read_text(encoding="utf-8")
QUOTES = quotes_in(TEXT)


def rows(text, columns):
    """The rows of the tables whose header is this."""
    table = re.escape("| " + " | ".join(columns) + " |")
    (found,) = re.findall(rf"^{table}\n\|[-| ]+\|\n((?:\|.*\|\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found.splitlines()]


@pytest.mark.parametrize(("file", "quote"), QUOTES, ids=[file for file, _ in QUOTES])
def test_quotes_are_of_the_example(file, quote):
    path = EXAMPLE / file if "/" in file else EXAMPLE / "src" / "mplang_grpc" / file
    assert_quoted(quote, path.read_text(encoding="utf-8"))


def test_all_quotes_were_found():
    assert len(QUOTES) == TEXT.count("```py\n") >= 6


def test_the_entry_point_is_that_of_the_example():
    (quote,) = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert quote in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")


# -- the HTTP backend


def size(number):
    """As the table writes it: 65536 is 64 KiB."""
    from mplang_worker.base.config import MEMORY

    if number is None:
        return "any"
    for part, name in ((2, "half"), (4, "a quarter")):
        if number == MEMORY // part:
            return f"{name} of the machine's memory"
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= unit and number % unit == 0:
            return f"{number // unit} {name}"
    return f"{number:,}"


@pytest.mark.needs("http", "ibis")
def test_every_field_of_a_worker_is_told_with_its_default():
    from mplang_ibis.settings import QuerySettings
    from mplang_worker.base.config import Limits, Quotas, Timeouts, WorkerConfig

    told = {name.strip("`"): default for name, _, default in rows(OPERATING, FIELDS)}
    tables = ("limits", "quotas", "timeouts")
    plain = [name for name in WorkerConfig.model_fields if name not in tables]
    numbers = {f"limits.{name}": size(value) for name, value in Limits()}
    numbers |= {f"quotas.{name}": size(value) for name, value in Quotas()}
    numbers |= {f"timeouts.{name}": f"{value:,g} s" for name, value in Timeouts()}
    queries = "plugins.mplang-ibis.settings"
    of_queries = QuerySettings()
    numbers |= {f"{queries}.{name}": f"{value:,g}" for name, value in of_queries if value}
    numbers[f"{queries}.threads"] = "one for each core"
    numbers[f"{queries}.memory"] = f"{QuerySettings().memory:,}"
    numbers["limits.value"] = "a quarter of the machine's memory, at most 8 GiB"
    assert sorted(told) == sorted([*plain, *numbers])
    assert {name: told[name] for name in numbers} == numbers
    for name in ("host", "port", "mode", "log_format", "log_level"):
        assert told[name] == f"`{WorkerConfig.model_fields[name].default}`"


FIELDS = ("field", "meaning", "default")


@pytest.mark.needs("http")
def test_every_endpoint_is_told():
    from mplang_http import WorkerConfig, create_worker_app

    routes = create_worker_app(WorkerConfig(name="alice"), None).routes
    there = {f"{method} {route.path}" for route in routes for method in route.methods}
    told = {request.strip("`") for request, _ in rows(HTTP, ("request", "what it does"))}
    assert {*told, "GET /openapi.json"} == there


@pytest.mark.needs("http")
@pytest.mark.parametrize("text", [OPERATING, WORKER], ids=["operating.md", "README.md"])
def test_the_configuration_that_is_shown_is_one(text, tmp_path):
    from mplang_http import WorkerConfig

    (block,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "worker.yaml").write_text(block)
    config = WorkerConfig.from_yaml(tmp_path / "worker.yaml")
    assert config.tls.cert == str(tmp_path / "certs/alice.pem")
    assert set(yaml.safe_load(block)) <= set(WorkerConfig.model_fields)


@pytest.mark.needs("http")
def test_every_option_of_the_host_is_told():
    import inspect

    from mplang_http import SimpHttpDriver

    told = [name.strip("`") for name, _, _ in rows(README, ("option", "meaning", "default"))]
    parameters = inspect.signature(SimpHttpDriver).parameters.values()
    assert sorted(told) == sorted(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
