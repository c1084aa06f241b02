"""CLI command of this package: ``mplang data``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

import mplang_core as mp
from mplang_core.ext import ConfigError, printable
from mplang_data.description import Bound, Description
from mplang_data.holding import DataSet, read_data_sets
from mplang_data.known import Catalogue
from mplang_data.sources import source_of_path
from mplang_data.stored.listing import about, entries_in, members_of
from mplang_data.stored.sink_config import read_sink


class Action(StrEnum):
    """Requested action."""

    LIST = "list"
    CHECK = "check"
    SCHEMA = "schema"
    STORED = "stored"


MAX_SHOWN = 4  # columns by name

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Config = Annotated[
    str | None, typer.Option("--config", "-c", help="A worker's YAML file: as its owner.")
]
Cluster = Annotated[str | None, typer.Option(help="A cluster's YAML file: as one who reads.")]
Tls = Annotated[str | None, typer.Option(help="With --cluster your certificate: certs/host.")]
Source = Annotated[
    str | None, typer.Option(help="With schema a source, such as parquet:people.parquet.")
]
File = Annotated[str | None, typer.Argument(help="With schema a file, such as people.csv.")]
Csv = Annotated[
    str | None,
    typer.Option(help="With schema of a CSV file what you know of it: '{dates: \"%d/%m/%Y\"}'."),
]


def data(
    action: Annotated[Action, typer.Argument(help="list, check, schema or stored.")],
    file: File = None,
    config: Config = None,
    cluster: Cluster = None,
    tls: Tls = None,
    source: Source = None,
    csv: Csv = None,
    as_json: AsJson = False,
) -> None:
    """List data sets or stored values, check data against its sources, or write its schema as YAML.

    list: of a worker's file (-c), or those that you may read (--cluster). check: reads all rows of
    a worker's data sets (-c). schema: what mp.catalogue reads (--cluster), or the fields of a data
    set that offers all of a file (FILE, or --source), and of a CSV file what tells how it is
    written. stored: what programs have left in a worker's sink (-c), or what you have stored
    (--cluster).
    """
    if file is not None and source is None:
        source = source_of_path(file)
    if sum(each is not None for each in (config, cluster, source)) != 1:
        raise ConfigError("mplang data takes one of --config, --cluster and --source", code="C006")
    if action is Action.STORED:
        _list_stored(
            _stored_here(config) if config is not None else _stored_there(cluster, tls), as_json
        )
    elif action is Action.CHECK:
        _check(_owned(config), as_json)
    elif action is Action.SCHEMA and source is not None:
        _propose(source, csv)
    elif action is Action.SCHEMA:
        print(_yaml(_plain(_readable(cluster, tls))), end="")
    elif config is not None:
        _list({"": _owned(config)}, as_json)
    else:
        _list(_readable(cluster, tls), as_json)


def _propose(source: str, csv: str | None) -> None:
    """Print a data set that offers all of a source, and to stderr what tells so."""
    from mplang_data.schema import propose

    known = yaml.safe_load(csv) if csv is not None else {}
    if not isinstance(known, dict):
        raise ConfigError(
            f"--csv has fields, such as '{{decimal: \",\"}}', got {csv!r}", code="C006"
        )
    data_set, reasons, doubts = propose(source, ".", apart=True, csv=known)
    for called, sentences in (("found", reasons), ("not certain", doubts)):
        for sentence in sentences:
            print(printable(f"{called}: {sentence}"), file=sys.stderr)
    offered = data_set.model_dump(mode="json", exclude_defaults=True)
    print(_yaml({"name-it": offered | {"source": source, "readers": []}}), end="")


def _owned(config: str | None) -> dict[str, DataSet]:
    if config is None:
        raise ConfigError(
            "the owner's data sets are in a worker's file: mplang data … -c FILE", code="C006"
        )
    return read_data_sets(_fields(config).get("data") or {}, str(Path(config).parent))


def _fields(config: str) -> dict[str, Any]:
    try:
        fields = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read {config}: {error}", code="C005") from error
    return fields if isinstance(fields, dict) else {}


def _readable(cluster: str | None, tls: str | None) -> Catalogue:
    if cluster is None:
        raise ConfigError(
            "data sets of others are found by --cluster, a cluster's YAML file", code="C006"
        )
    options: dict[str, Any] = {} if tls is None else {"tls": tls}
    with mp.connect("http", mp.ClusterSpec.from_yaml(cluster), **options) as host:
        found: Catalogue = host.catalogue
        return found


def _plain(found: Mapping[str, Mapping[str, Description]]) -> dict[str, dict[str, Any]]:
    return {p: {n: d.public() for n, d in sets.items()} for p, sets in found.items() if sets}


def _yaml(found: Any) -> str:
    """Return YAML; what is not seen in it, or changes what is seen, is escaped."""
    text: str = yaml.safe_dump(found, sort_keys=False, allow_unicode=True)
    if printable(text, keep="\n") == text:
        return text
    escaped: str = yaml.safe_dump(found, sort_keys=False)
    return escaped


def _list(found: Any, as_json: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if as_json:
        print(json.dumps(_plain(found), indent=2))
        return
    table = Table("party", "data set", "type", "rows", "match", "unit", "readers")
    for party, sets in found.items():
        for name, each in sets.items():
            cells = [party, name, _type(each), _rows(each), ", ".join(each.match), each.unit or ""]
            readers = ", ".join(each.readers) if isinstance(each, DataSet) else "you"
            table.add_row(*(escape(printable(cell)) for cell in [*cells, readers or "nobody"]))
    Console().print(table)


def _type(found: Description) -> str:
    """Return a type with the ranges and values that are published."""

    def within(ends: Sequence[float] | None) -> str:
        return "" if ends is None else f" in [{ends[0]:.15g}, {ends[1]:.15g}]"

    if found.array is not None:
        return found.array + within(found.range)
    return ", ".join(
        f"{n}: {k}{within(found.ranges.get(n))}{_among(found.values.get(n, ()))}"
        for n, k in found.columns.items()
    )


def _among(values: Sequence[str | int]) -> str:
    more = ", …" if len(values) > MAX_SHOWN else ""
    listed = json.dumps(values[:MAX_SHOWN], ensure_ascii=False)[1:-1]
    return f" among {listed}{more}" if values else ""


def _stored_here(config: str) -> list[dict[str, Any]]:
    """Return what lies in the sink of a worker, which may be running."""
    fields = _fields(config).get("sink")
    if fields is None:
        raise ConfigError(f"{config} names no sink", code="C006")
    folder = Path(read_sink(fields, str(Path(config).parent)).folder)
    return [
        {"coordinator": owner, "parties": members_of(entry), **about(entry)}
        for owner, entry in entries_in(folder)
    ]


def _stored_there(cluster: str | None, tls: str | None) -> list[dict[str, Any]]:
    found = _readable(cluster, tls).stored
    names = sorted({name for each in found.values() for name in each})
    return [
        {
            "coordinator": "you", "name": name,
            "parties": [party for party, each in found.items() if name in each],
            "type": ", ".join(next(each[name][1] for each in found.values() if name in each)),
        }
        for name in names
    ]  # fmt: skip


def _list_stored(found: list[dict[str, Any]], as_json: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if as_json:
        print(json.dumps(found, indent=2))
        return
    columns = ["coordinator", "name", "type", "parties", "data", "stored", "program"]
    shown = [name for name in columns if any(name in each for each in found)] or columns
    table = Table(*shown)
    for each in found:
        texts = (_cell(name, each.get(name, "")) for name in shown)
        table.add_row(*(escape(printable(text)) for text in texts))
    Console().print(table)


def _columns(names: list[str]) -> str:
    if len(names) > MAX_SHOWN:
        return f": {len(names)} columns"
    return f": {', '.join(names)}" if names else ""


def _cell(name: str, cell: Any) -> str:
    match cell:
        case list():
            return ", ".join(cell)
        case dict():
            return "; ".join(f"{each}{_columns(columns)}" for each, columns in cell.items())
    return str(cell)[:8] if name == "program" else str(cell)


def _rows(each: Description) -> str:
    """Return what is published of the number of rows, and of different values."""
    rows = [f"at most {each.rows.at_most}" if isinstance(each.rows, Bound) else str(each.rows)]
    keys = [f"{name}: at most {bound.at_most}" for name, bound in each.keys.items()]
    return ", ".join([*(rows if each.rows is not None else []), *keys])


def _check(owned: dict[str, DataSet], as_json: bool) -> None:
    from rich.console import Console
    from rich.markup import escape

    from mplang_data.check import check_data_sets

    console, failed = Console(soft_wrap=True), False
    if as_json:
        found = check_data_sets(owned, whole=True)
        print(json.dumps(found, indent=2))
        failed = any(each["error"] for each in found.values())
    else:
        for name, each in owned.items():
            # Notebooks have FORCE_COLOR, where each turn of the wheel would be a line.
            moves = sys.stdout.isatty()
            with console.status(f"reading {name}") if moves else nullcontext():
                told = check_data_sets({name: each}, whole=True)[name]
            failed |= told["error"] is not None
            rows = "an array" if told["rows"] is None else f"{told['rows']} rows"
            console.print(
                f"[red]{name}: {escape(told['error'])}[/]" if told["error"] else f"{name}: {rows}"
            )
    if failed:
        raise typer.Exit(1)
