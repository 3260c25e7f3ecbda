"""The command line: its commands and how errors become exit codes."""

import os
import re
import sys
from contextlib import suppress
from typing import Annotated, Any, Never

import typer

from bench import __version__
from bench.errors import TransientError, UserError
from runner.command_loading import PROGRAM, CatalogGroup
from runner.commands.exit_codes import EXIT_INTERNAL_ERROR, EXIT_TEMPORARY_FAILURE, EXIT_USER_ERROR
from runner.completion_files import install_completion
from runner.exhaustion import explain_exhaustion
from runner.output import OutputClosedError, OutputError, abandon_output, guard_output
from runner.terminal import clean_variables
from runner.terminal_text import echo, format_message

COMPLETION_VARIABLE = f"_{PROGRAM}_COMPLETE".upper()
"""Set by the script of a shell that asks what could be typed next."""
BUILD_TIME = "SOURCE_DATE_EPOCH"
"""The time of a build, which programs put into files instead of their own (https://reproducible-builds.org/specs)."""

app = typer.Typer(
    name=PROGRAM,
    cls=CatalogGroup,
    help="Deep-learning benchmarks that anyone can repeat: a matrix of cells in, a report out. "
    f"`{PROGRAM} COMMAND --help` has examples of every command.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


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


def make_command() -> Any:
    """Return the command line as one command; `--install-completion` is ours."""
    command = typer.main.get_command(app)
    for param in command.params:
        if param.name == "install_completion":
            param.callback = install_completion
    return command


def main() -> None:
    """Run the command line. An error of the user is one message on stderr; one of the tool keeps its traceback."""
    clean_variables()
    try:
        with guard_output():
            _call()
    except OutputError as error:
        if not isinstance(error, OutputClosedError):
            with suppress(OSError):
                echo(format_message(f"error: {error}"), err=True)
        abandon_output()
        sys.exit(EXIT_USER_ERROR)


def _call() -> None:
    try:
        _check_build_time()
        make_command()(sys.argv[1:])
    except OutputError:
        raise
    except UserError as error:
        echo(format_message(f"error: {error}"), err=True)
        sys.exit(EXIT_TEMPORARY_FAILURE if isinstance(error, TransientError) else EXIT_USER_ERROR)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001  (Rust's panics are no Exception; Python's own exit code would be 1)
        if interrupt := _find_interrupt(error):
            raise interrupt from None
        _end_with_fault(error)


def _check_build_time() -> None:
    """Raise UserError where the variable that libraries read as the time of a build, when imported, is no such time."""
    found = os.environ.get(BUILD_TIME)
    if found is not None and not re.fullmatch("-?[0-9]{1,11}", found):
        raise UserError(
            f"{BUILD_TIME}: is {found!r}, expected whole seconds since 1970, such as 1767225600; or unset it"
        )


def _find_interrupt(error: BaseException | None) -> BaseException | None:
    """Return the Ctrl-C or the end asked for that an error follows from; None for any other error.

    A library in C++ that is interrupted while it is imported says that its initialization failed.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        error = error.__cause__ or error.__context__
    return error


def _end_with_fault(error: BaseException) -> Never:
    if COMPLETION_VARIABLE in os.environ:  # a shell asks while somebody types: a traceback would be in their way
        asked = f"{COMPLETION_VARIABLE}: {type(error).__name__} {error}"
        echo(format_message(f"error: {asked}; unset it, unless the script of a shell has set it"), err=True)
        sys.exit(EXIT_USER_ERROR)
    if reason := explain_exhaustion(error):
        echo(f"error: {reason}", err=True)
        sys.exit(EXIT_USER_ERROR)
    import traceback

    echo("".join(traceback.format_exception(error)), err=True, nl=False)
    sys.exit(EXIT_INTERNAL_ERROR)


if __name__ == "__main__":
    main()
