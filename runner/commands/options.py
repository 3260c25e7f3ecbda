"""Define the options and arguments that several commands share, and the console they print to."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.errors import UserError
from runner.commands.completion import complete_context, complete_matrix, complete_profile, complete_run_id
from runner.matrix.builtin import list_builtin_matrices
from runner.profiles.builtin import BUILTIN_PROFILES
from runner.store_urls import BUCKET_URLS
from runner.terminal import make_console

LOCAL = "local"
"""The value of --on for runs on this machine."""
DEFAULT_STORE = "file://results"

PROFILE_HELP = (
    f"What the cluster is like: {', '.join(BUILTIN_PROFILES)}, or the path of a YAML file; "
    "default: as the context's name says."
)
NAMESPACE_HELP = "Namespace of the Jobs; default: the profile's."
QUEUE_HELP = "Kueue's LocalQueue for the Jobs."

CONSOLE = make_console()


def refuse_given(context: typer.Context, names: Collection[str], reason: str) -> None:
    """Raise UserError for the `reason` at one of these parameters that the command line gives."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar
            raise UserError(f"{name}: {reason}")


def make_error_console() -> Console:
    """Return a console for stderr, for what is printed while stdout gets JSON documents."""
    return make_console(to_stderr=True)


MatrixArgument = Annotated[
    str,
    typer.Argument(
        metavar="MATRIX",
        help=f"A built-in matrix ({', '.join(list_builtin_matrices())}) or the path of a YAML file.",
        autocompletion=complete_matrix,
    ),
]
StoredRunArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN_ID", help="Id of a run; default: the newest one in the store.", autocompletion=complete_run_id
    ),
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN_ID", help="Id of a run.", show_default=False, autocompletion=complete_run_id)
]
StoredRunsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN_ID", help="Ids of runs; default: the newest one in the store.", autocompletion=complete_run_id
    ),
]

PythonOption = Annotated[
    list[str] | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="A Python interpreter that has the frameworks, or FRAMEWORK=PATH for one of them; "
        "no virtual environment is made.",
    ),
]
StoreOption = Annotated[
    str, typer.Option("--store", metavar="URL", help=f"Where results are: file://DIRECTORY, {BUCKET_URLS}.")
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", metavar="FOLDER", help="Folder for the files; default: reports/RUN_ID.")
]
ContextOption = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="CONTEXT",
        help="A context of your kubeconfig, `current`, or `in-cluster`.",
        show_default=False,
        autocompletion=complete_context,
    ),
]
ProfileOption = Annotated[
    str | None, typer.Option(metavar="PROFILE", help=PROFILE_HELP, autocompletion=complete_profile)
]
NamespaceOption = Annotated[str | None, typer.Option(metavar="NAME", help=NAMESPACE_HELP)]
QueueOption = Annotated[str | None, typer.Option(metavar="NAME", help=QUEUE_HELP)]
CancellationStoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where the results of the run go. A record of the cancellation is put there, which stops the runner even "
        "if it cannot reach the cluster at present or has no Job there; default: the store that the run's Jobs name.",
    ),
]
PricesOption = Annotated[
    Path | None, typer.Option("--prices", metavar="FILE", help="Your own price table (YAML, see docs/cost.md).")
]
JsonOption = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON document to stdout, and messages to stderr; `benchmatrix schema` describes it."
    ),
]
JsonLinesOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON document per line to stdout, and messages to stderr; `benchmatrix schema` describes it.",
    ),
]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print Markdown.")]
FileOption = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="Write it to a file, and print the conclusion.")
]
WebhookOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND:VARIABLE",
        help="Send confirmed regressions to the URL in this environment variable, as `json:VARIABLE` or "
        "`slack:VARIABLE`. It can be given several times.",
    ),
]
