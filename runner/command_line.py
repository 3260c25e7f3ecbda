"""What the commands have in common: options, exit codes and where they print."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

EXIT_NOT_OK = 1
EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130

CONSOLE = Console(markup=False, emoji=False, highlight=False)

PythonOption = Annotated[
    list[str] | None,
    typer.Option("--python", help="An interpreter that has the frameworks, or FRAMEWORK=PATH; makes no environment."),
]
StoreOption = Annotated[str, typer.Option("--store", help="Where results are: file://DIRECTORY or s3://BUCKET/PREFIX.")]
OutputOption = Annotated[Path | None, typer.Option("--output", help="Folder for the files; default reports/RUN_ID.")]
