"""What several commands share: options and arguments, what shells complete, consoles, exit codes, what to do next."""

import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from bench.errors import UserError
from bench.registry import Device
from runner.profiles import BUCKET_URLS, BUILTIN_PROFILES
from runner.sources import list_builtin_matrices
from runner.terminal import echo, make_console

if TYPE_CHECKING:  # a shell that completes options waits for what is imported here
    from bench.schema import Run

EXIT_NOT_OK = 1
"""A repeat did not end well or is missing, the run was cancelled, a check of `doctor` failed, or B is worse than A; of
`watch`: the newest night confirmed a regression."""
EXIT_USER_ERROR = 2
EXIT_PENDING = 3
"""`watch`: something is suspected and has to be measured again."""
EXIT_INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h: an error in the tool."""
EXIT_TEMPORARY_FAILURE = 75
"""EX_TEMPFAIL of sysexits.h: the store or the API server is unreachable; the same command may succeed later."""
LOCAL = "local"
"""The value of --on for runs on this machine."""
DEFAULT_STORE = "file://results"

CONSOLE = make_console()


def refuse_given(context: typer.Context, names: Collection[str], reason: str) -> None:
    """Raise UserError for the `reason` at one of these parameters that the command line gives."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar
            raise UserError(f"{name}: {reason}")


def make_error_console() -> Console:
    """Return a console for what is printed while stdout gets JSON documents."""
    return make_console(to_stderr=True)


def print_shipped(shipped: Mapping[str, str]) -> None:
    for name, text in shipped.items():
        CONSOLE.print(f"{name}: {text}", soft_wrap=True)


def show(page: str | None, print_document: Callable[[Console], None], output: Path | None) -> bool:
    """Print a document, or write it to the file `output` if one is given; return whether it was written.

    `page`: the document as JSON or Markdown; None for the text that `print_document` prints.
    """
    if page is None and output is None:
        print_document(CONSOLE)
        return False
    if page is None:
        text = StringIO()
        print_document(make_console(text))
        page = text.getvalue()
    if output is None:
        echo(page, nl=False)
        return False
    from collector.files import replace_text

    replace_text(output, page)
    CONSOLE.print(str(output), soft_wrap=True)
    return True


MAX_RUN_IDS = 100
"""Shown at once; a shell asks whether to list more than about as many (`completion-query-items` of readline)."""


def complete_run_id(ctx: Any, incomplete: str) -> list[str]:
    """Return the runs of the store that was typed, the newest first; none of a bucket, which would have to be asked."""
    scheme, _, path = str(ctx.params.get("store") or DEFAULT_STORE).partition("://")
    try:
        found = [entry for entry in os.scandir(Path(path).expanduser() / "runs") if entry.name.startswith(incomplete)]
        found.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
    except OSError:
        return []
    return [entry.name for entry in found[:MAX_RUN_IDS]] if scheme == "file" else []


SECONDS_PER_UNIT = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
DURATION = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?)(?P<unit>ms|[smhdw]?)", re.ASCII)
MAX_SECONDS = 1e9
"""31 years: far from where dates overflow."""


def parse_duration(option: str, text: str, *, least: str = "") -> float:
    """Return the seconds of a length of time; UserError, which names the `option`, if it is none.

    `least`: the shortest that is taken, in the same words; empty: anything above 0.
    """
    found = DURATION.fullmatch(text)
    seconds = float(found["number"]) * SECONDS_PER_UNIT[found["unit"]] if found else 0.0
    if not (parse_duration(option, least) if least else 0) <= seconds <= MAX_SECONDS or seconds == 0:
        bound = f"of at least {least}" if least else "above 0"
        raise UserError(
            f"{option} {text}: expected a time {bound}, at most 31 years, such as 20ms, 90s, 45m, 8h, 2d or 12w "
            "(a bare number is seconds)"
        )
    return seconds


def read_durations(option: str, *, least: str = "") -> Callable[[str | float], float]:
    """Return a function that reads an option's text (`90m`) as seconds, and takes a default in seconds as it is."""
    return lambda value: parse_duration(option, str(value), least=least)


MatrixArgument = Annotated[
    str,
    typer.Argument(
        metavar="MATRIX",
        help=f"A built-in matrix ({', '.join(list_builtin_matrices())}) or the path of a YAML file.",
        autocompletion=list_builtin_matrices,
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
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        metavar="PROFILE",
        help=f"What the cluster is like: {', '.join(BUILTIN_PROFILES)}, or the path of a YAML file; default: as the "
        "context's name says.",
        autocompletion=lambda: list(BUILTIN_PROFILES),
    ),
]
NamespaceOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Namespace of the Jobs; default: the profile's.")
]
QueueOption = Annotated[str | None, typer.Option(metavar="NAME", help="Kueue's LocalQueue for the Jobs.")]
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
DEVICES: tuple[Device, ...] = ("cpu", "gpu")

MachinesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--machine",
        metavar="DEVICE=MACHINE",
        help="Machine type whose price counts for the cells of a device, such as cpu=m6i.xlarge; repeatable.",
    ),
]


def parse_machines(texts: list[str]) -> dict[Device, str]:
    machines: dict[Device, str] = {}
    for text in texts:
        word, separator, name = text.partition("=")
        device = next((known for known in DEVICES if known == word), None)
        if device is None or not separator or not name:
            raise UserError(f"--machine {text}: expected cpu=MACHINE or gpu=MACHINE, such as cpu=m6i.xlarge")
        if device in machines:
            raise UserError(f"--machine {text}: {device} is given twice, first {machines[device]}; give it once")
        machines[device] = name
    return machines


def say_next(*commands: str) -> None:
    """Print what to do next in dim letters to stderr, if that is a terminal: logs and pipes get results only."""
    console = make_error_console()
    if console.is_terminal:
        console.print(f"next: {'; or '.join(commands)}", style="dim", soft_wrap=True)


def format_place(on: str, profile: str | None, namespace: str | None, queue: str | None = None) -> str:
    """Return the options that lead a command to the same place on a cluster, quoted for a shell."""
    given = {"--on": on, "--profile": profile, "--namespace": namespace, "--queue": queue}
    return shlex.join(word for name, value in given.items() if value is not None for word in (name, value))


def format_resumption(run: "Run", store: str, on: str | None, namespace: str | None) -> str:
    """Return the command that measures what a run lacks, in its store and where it ran.

    `on`, `namespace`: what the options of the command at hand say; the run's own cluster counts where they are None.
    """
    words = ["benchmatrix", "run", _name_matrix(run)]
    if run.cluster is not None:
        profile = _find_file(run.cluster.profile) or run.cluster.profile
        words += shlex.split(format_place(on or run.cluster.context, profile, namespace, run.cluster.queue))
    words += ["--store", store] if store != DEFAULT_STORE else []
    return shlex.join([*words, "--run-id", run.run_id])


def _name_matrix(run: "Run") -> str:
    """Return the run's matrix as `run` takes it: a run knows its name, not in which file it was."""
    if run.matrix in list_builtin_matrices():
        return run.matrix
    return _find_file(run.matrix) or "MATRIX"


def _find_file(name: str) -> str | None:
    file = f"{name}.yaml"
    return file if Path(file).exists() else None
