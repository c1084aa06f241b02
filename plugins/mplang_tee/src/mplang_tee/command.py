"""CLI command of this package: ``mplang measure``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mplang_core.ext import ConfigError
from mplang_tee import measurement

Files = Annotated[list[Path], typer.Argument(help="The files of the worker's configuration.")]


def measure(files: Files) -> None:
    """Print the SHA-256 of a worker's configuration, and of all that this Python can import.

    The owners of data write it under enclaves.<party>.files. It names the files in the order in
    which enclave.files of the worker has them.
    """
    try:
        typer.echo(measurement.measure(files).hex())
    except OSError as error:
        raise ConfigError(f"mplang measure: {error}", code="C005") from None
