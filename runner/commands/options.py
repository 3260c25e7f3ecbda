"""What the commands have in common: options, exit codes and where they print."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from runner.matrix.expansion import list_builtin_matrices
from runner.profiles.loading import BUILTIN_PROFILES

EXIT_NOT_OK = 1
EXIT_USER_ERROR = 2
EXIT_TEMPORARY_FAILURE = 75
"""EX_TEMPFAIL of sysexits.h: store or API server are away; the same command may go well later."""
EXIT_FAULT = 70
"""EX_SOFTWARE of sysexits.h: an internal error."""
EXIT_INTERRUPTED = 130

CONSOLE = Console(markup=False, emoji=False, highlight=False)

PythonOption = Annotated[
    list[str] | None,
    typer.Option("--python", help="An interpreter that has the frameworks, or FRAMEWORK=PATH; makes no environment."),
]
StoreOption = Annotated[str, typer.Option("--store", help="Where results are: file://DIRECTORY or s3://BUCKET/PREFIX.")]
OutputOption = Annotated[Path | None, typer.Option("--output", help="Folder for the files; default reports/RUN_ID.")]
MatrixArgument = Annotated[
    str, typer.Argument(help=f"A built-in matrix ({', '.join(list_builtin_matrices())}) or the path of a YAML file.")
]
OnOption = Annotated[
    str,
    typer.Option(
        "--on", help="Where the cells run: `local`, this machine, or a context of your kubeconfig (`current`)."
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        help=f"What the cluster is like: {', '.join(BUILTIN_PROFILES)} or your YAML file; else told by the context."
    ),
]
NamespaceOption = Annotated[str | None, typer.Option(help="Where the Jobs are made; default: the profile's.")]
QueueOption = Annotated[str | None, typer.Option(help="Kueue's LocalQueue that the Jobs are handed to.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document per line on stdout, words on stderr.")]
