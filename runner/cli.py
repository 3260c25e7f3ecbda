"""The command line: its commands with their examples, and how errors and signals become exit codes."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer

from bench import __version__
from bench.errors import TransientError, UserError
from runner.commands.access import access
from runner.commands.audit import audit
from runner.commands.clean import clean
from runner.commands.cluster import cancel, doctor, setup
from runner.commands.compare import compare
from runner.commands.cost import cost
from runner.commands.forecast import forecast
from runner.commands.images import build, push
from runner.commands.options import EXIT_INTERNAL_ERROR, EXIT_TEMPORARY_FAILURE, EXIT_USER_ERROR
from runner.commands.probe import probe
from runner.commands.render import render
from runner.commands.report import report
from runner.commands.run import OF_CLUSTERS, run
from runner.commands.schema import schema
from runner.commands.status import status
from runner.commands.watch import watch
from runner.processes import end_like_interrupt, end_programs, explain_exhaustion, find_end_code, list_children
from runner.terminal import echo, format_message, hide_credentials

PROGRAM = "benchmatrix"
COMPLETION_VARIABLE = f"_{PROGRAM}_COMPLETE".upper()
"""Set by the script of a shell that asks what could be typed next."""
MEASURE = "Measure"
READ = "Read what was measured"
DECIDE = "Decide"
CLUSTER = "Run on a cluster"
TOOL = "The tool itself"
MORE = "More options"
MAX_EVERYDAY = 11
"""Options that the help of a command shows first, --help aside, in the order of its function."""

app = typer.Typer(
    name=PROGRAM,
    help="Deep-learning benchmarks that anyone can repeat: a matrix of cells in, a report out. "
    f"`{PROGRAM} COMMAND --help` has examples of every command.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
images = typer.Typer(no_args_is_help=True, help="Build and push the container images of benchmatrix.")


def _add(
    function: Callable[..., None], panel: str, examples: str, *, group: typer.Typer = app, name: str | None = None
) -> None:
    """Add a command. `examples`: the words after `benchmatrix` of each, and what it does."""
    lines = [line.strip().partition("  # ") for line in examples.strip().splitlines()]
    epilog = "\n".join(f"# {purpose}\n{PROGRAM} {words}" for words, _, purpose in lines)
    group.command(name, rich_help_panel=panel, epilog=epilog)(function)


_add(run, MEASURE, """
    run smoke  # measure the built-in matrix `smoke` on this machine
    run smoke --dry-run  # say first how long it takes, and measure nothing
    run smoke --run-id RUN_ID --retry-failed  # resume a run by its name, and measure again what failed
    run smoke --run-id RUN_ID --retry-contaminated  # measure again, in the same run, only what others disturbed
    run my.yaml --python pytorch=/opt/torch/bin/python  # use a Python of your own; nothing is installed
    run smoke --on current --store s3://BUCKET/runs --max-cost 20  # run on a cluster, with a limit
""")  # fmt: skip
_add(render, MEASURE, """
    render smoke  # see the cells of a matrix
    render my.yaml --json  # every field of each cell, for a program
    render paper-gpu --earlier file://results  # what it will take, by the runs of a store
    render smoke --manifests manifests --profile gke --store gs://BUCKET/runs  # write the manifests, for a pipeline
""")  # fmt: skip
_add(probe, MEASURE, """
    probe resnet18  # the largest batch for training on the GPU, or the CPU where there is none
    probe vit-b-16 --phase infer --precision bf16 --device gpu  # inference in half precision
    probe resnet18 --framework jax --deadline 10m --json  # in another framework, with every trial
    probe --run RUN_ID  # predict it from the cells of a run
""")  # fmt: skip
_add(status, MEASURE, """
    status  # the newest run of this folder's results
    status RUN_ID --store s3://BUCKET/runs --on current  # a run in a bucket, and what its cluster does
""")  # fmt: skip
_add(report, READ, """
    report  # of the newest run, into reports/RUN_ID
    report RUN_ID --store gs://BUCKET/runs --output report  # of a run in a bucket, into a folder
    report RUN_ID --format csv,parquet --output tables  # its numbers, for pandas or DuckDB
    report RUN_ID --format latex  # the report's tables for a paper
    report RUN_ID --figure roofline --output roofline.pdf --columns 2  # one figure, two columns wide
    report --store s3://BUCKET/runs --site pages  # pages of all runs and nights of a store
""")  # fmt: skip
_add(compare, READ, """
    compare RUN_A RUN_B  # two runs
    compare RUN_A  # the newest run against an earlier one
    compare --a framework=pytorch --b framework=jax --where mode=compiled  # two frameworks within one run
    compare RUN_A RUN_B --floor 5 --markdown --output compare.md  # fail a pipeline if it got slower
""")  # fmt: skip
_add(audit, READ, """
    audit  # list the tables that come with the tool
    audit nvidia-t4-resnet50  # one of them, by arithmetic alone
    audit mine.csv --run RUN_ID --output audit.md  # your own table, against a run of yours
""")  # fmt: skip
_add(cost, DECIDE, """
    cost  # what a million samples of the newest run cost
    cost RUN_ID --dataset imagenet --epochs 90 --deadline 24h  # the cheapest machine for a job in a day
    cost --cloud aws --region us-east-1 --spot  # in one region, spot prices too
""")  # fmt: skip
_add(access, DECIDE, """
    access  # list the scenarios that come with the tool
    access one-h100-or-t4s  # one of them
    access ours.yaml --markdown --output answer.md  # your own, as a page
""")  # fmt: skip
_add(forecast, DECIDE, """
    forecast --year 2030  # the memory of the largest GPU of a year
    forecast --table mine.csv --value price --date day --unit USD  # a series of your own
    forecast --demand models.csv --year 2030  # how many GPUs one model needs
""")  # fmt: skip
_add(watch, READ, """
    watch --store s3://BUCKET/runs  # the newest night of a store
    watch --store s3://BUCKET/runs --matrix nightly --webhook slack:SLACK_URL  # and tell a channel
""")  # fmt: skip
_add(doctor, CLUSTER, """
    doctor --on current  # the cluster of your current context
    doctor smoke --on CONTEXT --profile gke --store gs://BUCKET/runs  # all that a run would use
""")  # fmt: skip
_add(setup, CLUSTER, """
    setup --on current --profile gke --dry-run  # see what would be applied
    setup --on current --profile gke --user ana@example.org  # apply it, and let somebody run
""")  # fmt: skip
_add(cancel, CLUSTER, """
    cancel RUN_ID --on current --dry-run  # see what would be deleted
    cancel RUN_ID --on current --store s3://BUCKET/runs  # stop it
""")  # fmt: skip
_add(clean, CLUSTER, """
    clean RUN_ID --on current  # the Jobs of a run
    clean --store s3://BUCKET/runs --raw-older-than 90d  # see which raw results are old
    clean --store s3://BUCKET/runs --raw-older-than 90d --delete  # delete them
""")  # fmt: skip
_add(build, CLUSTER, """
    images build  # all images for CPUs
    images build pytorch:cuda control --dry-run  # their names, for a script
""", group=images)  # fmt: skip
_add(push, CLUSTER, """
    images push registry.example/team  # all images for CPUs
""", group=images)  # fmt: skip
_add(schema, TOOL, """
    schema  # of the documents in the store
    schema status  # of what `benchmatrix status --json` prints
""")  # fmt: skip

app.add_typer(images, name="images", rich_help_panel=CLUSTER)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        echo(__version__)
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version of the tool.")
    ] = False,
) -> None:
    """Take the options before the command; there is none but those that end the program."""


def main() -> None:
    """Run the command line. No program that it has started outlives it, however it ends.

    Ctrl-C ends it with 130, SIGTERM and SIGHUP with 143 and 129; a signal that was ignored stays ignored.
    """
    others = list_children()  # of a shell that became this process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that is not UTF-8, or a terminal that knows ASCII alone
            stream.reconfigure(errors="backslashreplace")
    try:
        with end_like_interrupt():
            try:
                code = _run()
            finally:
                end_programs(list_children() - others)
    except KeyboardInterrupt as interrupt:
        code = find_end_code(interrupt)
    sys.exit(code)


def _run() -> int:
    try:
        _invoke(sys.argv[1:] or ["--help"])
        sys.stdout.flush()
        return 0
    except typer.Exit as end:
        return end.exit_code
    except BrokenPipeError:  # nobody reads any more, as after `| head`
        _abandon_output()
        return EXIT_USER_ERROR
    except UserError as error:
        _print_error(str(error))
        return EXIT_TEMPORARY_FAILURE if isinstance(error, TransientError) else EXIT_USER_ERROR
    except Exception as error:
        if isinstance(cause := error.__cause__ or error.__context__, KeyboardInterrupt):
            return find_end_code(cause)  # a library in C++ that is interrupted while it is imported says that it failed
        if hasattr(error, "format_message"):  # a usage error; typer exports no class of it
            context = getattr(error, "ctx", None)
            usage = f"{context.get_usage()}\nTry `{context.command_path} --help`.\n" if context else ""
            if message := error.format_message():  # none where a group has shown its help
                _print_error(message, before=usage)
            return EXIT_USER_ERROR
        if reason := explain_exhaustion(error):
            _print_error(reason)
            _abandon_output()
            return EXIT_USER_ERROR
        import traceback

        echo(hide_credentials("".join(traceback.format_exception(error))), err=True, nl=False)
        return EXIT_INTERNAL_ERROR


def make_command() -> Any:
    command: Any = typer.main.get_command(app)  # of a class that typer does not export
    _arrange_help(command)
    return command


def _arrange_help(command: Any) -> None:
    """Put all but the first options of a command into a panel of their own, and remove the type of flags."""
    for param in command.params if command.name == "run" else ():
        if param.name in OF_CLUSTERS:
            param.rich_help_panel = "On a cluster"
    options = [param for param in command.params if param.param_type_name == "option" and not param.rich_help_panel]
    for param in options[MAX_EVERYDAY:]:
        param.rich_help_panel = MORE
    for param in command.params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""  # `--json <bool>` would look as if it took a value
    for below in getattr(command, "commands", {}).values():
        _arrange_help(below)


def _invoke(words: list[str]) -> None:
    command = make_command()
    if COMPLETION_VARIABLE in os.environ:
        command.main(words, prog_name=PROGRAM)
    with command.make_context(PROGRAM, words) as context:
        command.invoke(context)


def _print_error(message: str, *, before: str = "") -> None:
    with suppress(OSError):
        echo(f"{before}{format_message(f'error: {message}')}", err=True)


def _abandon_output() -> None:
    """Drop what can no longer be written: Python would try it again at its end, and end with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


if __name__ == "__main__":
    main()
