"""The command ``mplang``.

What one command needs is imported when it runs: help, completion and the commands of plugins start
without it.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

import mplang_core
from mplang_cli.version import version_text
from mplang_core import MPLangError, Program
from mplang_core.ext import COMMANDS, ConfigError, PluginError, SimpHost, plugin_manager, printable

if TYPE_CHECKING:
    from mplang_analysis import Report


class _Commands(typer.core.TyperGroup):
    """The commands of the core, and those that plugins add by entry points ``mplang.commands``."""

    def list_commands(self, ctx: Any) -> list[str]:
        mine = super().list_commands(ctx)
        return mine + [name for name in plugin_manager.names(COMMANDS) if name not in mine]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, cmd_name) or _of_plugin(cmd_name)


def _of_plugin(name: str) -> Any:
    one = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    try:
        function = plugin_manager.entry(COMMANDS, name)
    except PluginError as error:
        failure = error  # told when it is called, so that it does not spoil the others

        @one.command(name, help="Does not work: see mplang doctor.", context_settings=_ANYTHING)
        def fail() -> None:
            raise failure

    else:
        if function is None:
            return None
        if isinstance(function, typer.Typer):  # commands of its own
            return typer.main.get_command(function)
        one.command(name)(function)
    return typer.main.get_command(one)


def _own_commands() -> list[str]:
    """Return the names of the commands that those of plugins do not replace."""
    group: Any = typer.main.get_command(app)
    return list(group.commands)


_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Pack, look at and run programs; ask what is installed, and why something is not.",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(version_text())
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print versions and exit."
        ),
    ] = False,
) -> None:
    """Parse the options that stand before a command."""


def _families() -> list[str]:
    from mplang_cli import introspect

    return introspect.list_frontends()


def _ops() -> list[str]:
    from mplang_cli import introspect

    return [row["name"] for row in introspect.list_ops()]


def _codes() -> list[str]:
    from mplang_cli.explain import error_pages

    return [*error_pages()]


def _analyses() -> list[str]:
    from mplang_analysis import analyses

    return analyses()


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


Family = Annotated[str | None, typer.Argument(help="For example jax.", autocompletion=_families)]
Op = Annotated[str, typer.Argument(help="For example jax.compile.", autocompletion=_ops)]

Packed = Annotated[str, typer.Argument(help="An artifact, prog.mpl.")]
Cluster = Annotated[str, typer.Option(help="A YAML file, or a number of parties.")]
Args = Annotated[
    list[str] | None,
    typer.Option("--arg", help="NAME[@PLACE]=VALUE, where VALUE is @file.npy, JSON, or a type."),
]


def _show(data: Any, as_json: bool, title: str = "") -> None:
    if as_json:
        typer.echo(json.dumps(data, indent=2, default=str))
        return
    from rich.console import Console

    console = Console()
    if title:
        console.print(title, style="bold")
    console.print(data)


@app.command()
def plugins(as_json: AsJson = False) -> None:
    """List the plugins: where they come from, and whether they work."""
    from mplang_cli import introspect

    _show(introspect.list_plugins(), as_json)


@app.command()
def ops(family: Family = None, as_json: AsJson = False) -> None:
    """List the feops, of all families or of one."""
    from mplang_cli import introspect

    found = introspect.list_ops(family)
    if family is not None and not found:
        mplang_core.registry.get(f"{family}.")  # raises, and says what to install
    _show(found, as_json)


@app.command()
def describe(op: Op, as_json: AsJson = False) -> None:
    """Show all that is known of one feop, or of an op of programs."""
    from mplang_cli import introspect

    facts = introspect.describe(op)
    if as_json:
        _show(facts, True)
        return
    doc = facts.pop("doc")
    del facts["example"]  # it is part of the doc
    _show(_record(facts), False)
    typer.echo(printable(f"\n{doc}", keep="\n"))


def _record(facts: dict[str, Any]) -> Any:
    """Return lines of rich, one per fact."""
    from rich.table import Column, Table
    from rich.text import Text

    lines = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2, 0, 0))
    for name, value in facts.items():
        shown = value if isinstance(value, str) else json.dumps(value, default=str)
        lines.add_row(Text(name, "bold"), Text(printable(shown)))
    return lines


@app.command()
def devices(as_json: AsJson = False) -> None:
    """List the kinds of devices."""
    from mplang_cli import introspect

    _show(introspect.list_devices(), as_json)


@app.command()
def backends(as_json: AsJson = False) -> None:
    """List the backends."""
    from mplang_cli import introspect

    _show(introspect.list_backends(), as_json)


@app.command()
def doctor(
    config: Annotated[
        str | None, typer.Option("--config", "-c", help="A worker's configuration to check, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check versions and plugins; exits with 1 if something is wrong."""
    from mplang_cli.doctor import examine

    checks = examine(config, _own_commands())
    _show(checks, as_json)
    if any(check["status"] == "failed" for check in checks):
        raise typer.Exit(1)


@app.command()
def new_plugin(
    name: Annotated[str, typer.Argument(help="The family of its feops, for example weather.")],
    path: Annotated[str, typer.Option(help="The folder to put the package in.")] = ".",
    compiler: Annotated[
        bool, typer.Option("--compiler", help="A feop that compiles Python functions.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the package of a new plugin, with a feop, a kernel, a type and tests."""
    from mplang_cli import authoring

    made = authoring.new_plugin(name, path, compiler=compiler)
    if as_json:
        facts = {"name": made.name, "distribution": made.distribution, "path": str(made.path)}
        _show({**facts, "files": made.files, "next": made.next}, True)
        return
    _show(made, False)


@app.command()
def stubs() -> None:
    """Write the names that installed packages add to mplang_core, for type checkers and editors."""
    from mplang_cli.stubs import installed_file, stub

    file = installed_file()
    file.write_text(stub(), encoding="utf-8")
    typer.echo(str(file))


@app.command()
def explain(
    code: Annotated[
        str, typer.Argument(help="The code of an error, such as D001.", autocompletion=_codes)
    ] = "",
) -> None:
    """Explain an error by its code: what is wrong, and how to repair it; without one list all."""
    from rich.console import Console
    from rich.markdown import Markdown

    from mplang_cli.explain import error_pages, explain

    if not code:
        typer.echo("\n".join(f"{each.code}  {each.title}" for each in error_pages().values()))
        return
    text = explain(code).text
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        typer.echo(text, nl=False)


@app.command("compile")
def compile_(
    source: Annotated[str, typer.Argument(help="A function, prog.py:fn.")],
    cluster: Cluster,
    out: Annotated[str, typer.Option("--out", "-o", help="The file to write, prog.mpl.")],
    arg: Args = None,
    locations: Annotated[bool, typer.Option(help="Keep file names and lines.")] = True,
    catalogue: Annotated[
        str | None, typer.Option(help="The data sets that it may name, of mplang data schema.")
    ] = None,
) -> None:
    """Pack a program into one file, which runs without its source."""
    from mplang_cli import artifact
    from mplang_cli.artifact.arguments import read_given
    from mplang_cli.artifact.source import cluster_of, compile_source

    with _known(catalogue):
        made = compile_source(source, cluster_of(cluster), read_given(arg or []))
    artifact.save(out, made, locations=locations)
    typer.echo(f"{out}: {made.name}{made.signature}, digest {made.digest[:12]}")


def _known(catalogue: str | None) -> AbstractContextManager[object]:
    """Return a context in which programs are traced by a catalogue, if one is given."""
    return contextlib.nullcontext() if catalogue is None else mplang_core.catalogue(catalogue)


@app.command()
def inspect(
    path: Packed,
    ir: Annotated[bool, typer.Option("--ir", help="Print the program as text, too.")] = False,
    picture: Annotated[
        bool, typer.Option("--picture", help="Draw who sends what to whom, line by line.")
    ] = False,
    html: Annotated[
        str | None, typer.Option(help="Write it as a page, which has the picture, to this file.")
    ] = None,
    analysis: Annotated[
        str | None,
        typer.Option(
            help="Show what one analysis finds: costs, ranges, or one of a plugin.",
            autocompletion=_analyses,
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            help="Show what it costs on a network, protocols included: lan, wan, or RTT,RATE in "
            "ms, Mbit/s."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what an artifact takes, gives, needs and discloses."""
    from mplang_cli import artifact

    if analysis is not None or link is not None:
        if ir or html is not None:
            raise ConfigError(
                "--analysis and --link show one report only: leave out --ir and "
                "--html, or call mplang inspect without --analysis and --link",
                code="C006",
            )
        report = _analyzed(artifact.load(path).program, analysis, link)
        _show(report.to_dict() if as_json else report.rich(drawings=picture), as_json)
        return
    found = artifact.inspect(path)
    text = str(found.program) if ir and found.program is not None else ""
    if html is not None:
        _write(html, found.to_html())
    if as_json:
        _show({**found.to_dict(), **({"ir": text} if ir else {})}, True)
        return
    _show(found.rich(drawings=picture), False)
    if ir:
        typer.echo(text)


def _analyzed(program: Program, analysis: str | None, link: str | None) -> Report:
    """Return what an analysis finds; a network is for that of costs alone."""
    from mplang_analysis import analyze, costs, network_named

    if link is None:
        return analyze(analysis or "costs", program)
    if analysis not in (None, "costs"):
        raise ConfigError(
            f"--link is the network of --analysis costs, got --analysis {analysis}; leave one out",
            code="C006",
        )
    return costs(program, network_named(link))


def _write(path: str, page: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}", code="C005") from None


@app.command()
def run(
    target: Annotated[str, typer.Argument(help="An artifact, or a function, prog.py:fn.")],
    cluster: Annotated[str, typer.Option(help="As compile takes it; the artifact's own.")] = "",
    backend: Annotated[
        str, typer.Option(help="See mplang backends; by default what the nodes' addresses say.")
    ] = "",
    option: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE, of the backend, as timeout=300.")
    ] = None,
    tls: Annotated[
        str | None, typer.Option(help="Your certificate, certs/host: short for --option tls=….")
    ] = None,
    arg: Args = None,
    mode: Annotated[
        str | None, typer.Option(help="standard or launch; what the backend prefers.")
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(help="Write what took how long: FILE.html, FILE.svg, or for Perfetto."),
    ] = None,
    catalogue: Annotated[
        str | None,
        typer.Option(help="The data sets that a function may name, as its workers list them."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run an artifact, or a program from its source, and show its results."""
    from mplang_analysis.ext import watched_by_a_person

    from mplang_cli import artifact
    from mplang_cli.artifact.arguments import read_given
    from mplang_cli.artifact.running import run_given, shown
    from mplang_cli.artifact.source import backend_of, cluster_of, compile_source, is_source

    given = read_given(arg or [])
    packed = None if is_source(target) else artifact.load(target)
    if packed is not None and catalogue is not None:
        raise ConfigError(
            f"--catalogue is for a function, prog.py:fn; {target} was compiled for the data sets "
            "that it names",
            code="C006",
        )
    where = cluster_of(cluster) if cluster or packed is None else packed.cluster.spec()
    options = dict(map(_option, option or []))
    if tls is not None and options.setdefault("tls", tls) != tls:
        raise ConfigError(
            f"--tls {tls} and --option tls={options['tls']} are two; give one", code="C006"
        )
    with (
        mplang_core.connect(backend or backend_of(where), where, **options) as host,
        _traced(host, trace),
        mplang_core.watch(host),
        watched_by_a_person(),
    ):
        if packed is None:  # by the data sets that the host knows
            with _known(catalogue):
                packed = compile_source(target, where, given, host)
        results = run_given(packed, host, given, mode)  # type: ignore[arg-type]
    _show(results if as_json else shown(results), as_json)


@contextlib.contextmanager
def _traced(host: SimpHost, path: str | None) -> Iterator[None]:
    """Write a trace of what runs inside, also if it fails."""
    if path is None:
        yield
        return
    try:
        open(path, "ab").close()  # so that nothing runs in vain
    except OSError as error:
        raise ConfigError(f"cannot write the trace: {error}", code="C005") from None
    with mplang_core.record(host) as recording:
        try:
            yield
        finally:
            recording.save(path)
            shows = "a browser" if path.lower().endswith((".html", ".svg")) else "ui.perfetto.dev"
            typer.echo(f"{path}: {recording!r}; {shows} shows it", err=True)


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ConfigError(f"an option of a backend is NAME=VALUE, got {text!r}", code="C006")
    import yaml

    return name, yaml.safe_load(value)


@app.command()
def diff(
    a: Packed,
    b: Packed,
    locations: Annotated[bool, typer.Option(help="Compare source lines, too.")] = False,
) -> None:
    """Compare two artifacts; exits with 1 if they differ, with 2 if one cannot be read."""
    from mplang_cli import artifact

    try:
        one, other = artifact.load(a), artifact.load(b)
    except MPLangError as error:
        typer.echo(printable(_line_of(error), keep="\n"), err=True)
        raise typer.Exit(2) from None
    lines = artifact.diff(one, other, (a, b), locations=locations)
    same = one.digest == other.digest
    typer.echo(
        f"{'the same' if same else 'another'} program, {one.digest[:12]} {other.digest[:12]}"
    )
    typer.echo("\n".join(lines), nl=bool(lines))
    if lines or not same:
        raise typer.Exit(1)


def main() -> None:
    """Run the command; our own errors are told in one line."""
    try:
        app()
    except MPLangError as error:
        typer.echo(_line_of(error), err=True)
        sys.exit(1)


def _line_of(error: MPLangError) -> str:
    """Return the line that tells of an error of ours, with its page."""
    hint = f" (mplang explain {error.code})" if error.code else ""
    return f"mplang: {error}{hint}"


if __name__ == "__main__":
    main()
