"""What the commands have in common: the option that names interpreters, and the exit codes."""

from typing import Annotated

import typer

EXIT_NOT_OK = 1
EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130

PythonOption = Annotated[
    list[str] | None,
    typer.Option("--python", help="An interpreter that has the frameworks, or FRAMEWORK=PATH; makes no environment."),
]
